# find_package(asterism CONFIG) for C++ projects, from the install tree or from inside the Python package.
include(CMakePackageConfigHelpers)
set(config_dir ${package_dir}/lib/cmake/asterism)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/asterismConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/asterismConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/asterismTargets.cmake)\n")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/asterismConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/asterismConfigVersion.cmake
        DESTINATION ${config_dir})
install(EXPORT asterismTargets NAMESPACE asterism:: DESTINATION ${config_dir})
