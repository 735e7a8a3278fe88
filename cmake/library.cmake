# One shared library with everything but MPI, in the package's own folder so that a wheel carries it. Its kernels are compiled for the instruction
# set that ASTERISM_ARCH names, all else for any CPU; the same library with other kernels costs a compilation of those alone.
file(GLOB_RECURSE host_sources CONFIGURE_DEPENDS src/asterism/*.cpp)
list(FILTER host_sources EXCLUDE REGEX "(mpi_plugin|mpi_plugin_baselines|gpu_plugin|[.]gpu)[.]cpp$")
set(kernels_sources ${host_sources})
list(FILTER kernels_sources INCLUDE REGEX "kernels.cpp$")
list(FILTER host_sources EXCLUDE REGEX "kernels.cpp$")

find_package(Threads REQUIRED)
set(sanitizer "")
if(ASTERISM_SANITIZE)
  set(sanitizer -fsanitize=${ASTERISM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -DNDEBUG")  # galerkin.kernels.cpp with thread: two thirds of the time of -O1
  if(ASTERISM_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # calls in place of checks in the code: kernels compile in three quarters of the time
    list(APPEND sanitizer "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  if(ASTERISM_SANITIZE MATCHES "undefined")
    # the address sanitizer reports the first two with a stack too; the others were two fifths of the compilation of galerkin.kernels.cpp
    list(APPEND sanitizer -fno-sanitize=null,object-size,alignment,pointer-overflow,vptr)
  endif()
endif()

function(asterism_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE src)
  # nobody replaces our functions: calls inside the library need no table
  target_compile_options(${name} PRIVATE -fno-semantic-interposition ${sanitizer})
  target_link_libraries(${name} PRIVATE asterism_warnings asterism_openblas)
endfunction()

asterism_objects(asterism_host ${host_sources})
target_compile_definitions(asterism_host PRIVATE ASTERISM_VERSION="${PROJECT_VERSION}")
# The same headers again and again are a good part of a cold build. ccache works better without this, and shows an include that
# is missing.
set(FEWER_HEADERS OFF)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(FEWER_HEADERS ON)
  target_precompile_headers(asterism_host PRIVATE <algorithm> <cmath> <complex> <functional> <map> <memory> <mutex> <optional> <span>
    <sstream> <string> <unordered_map> <vector>)
  set_target_properties(asterism_host PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # files of a room together: their helpers in anonymous namespaces have names of their own
  foreach(room apps base comm comm/communicator comm/forest comm/gpu comm/mpi comm/node comm/transport device device/host
      direct/symbolic direct/multifrontal direct/distributed direct/foreign direct/triangular direct/triangular/gpu direct/triangular/model grid grid/bricks krylov krylov/methods la la/assembly
      la/formats la/formats/csr la/ordering la/products la/vectors precond precond/amg precond/amg/coarsening precond/direct precond/incomplete
      precond/multigrid precond/multigrid/smoothers solve)
    file(GLOB room_sources CONFIGURE_DEPENDS src/asterism/${room}/*.cpp)
    list(FILTER room_sources EXCLUDE REGEX "kernels.cpp$")
    list(FILTER room_sources EXCLUDE REGEX "/(star_forest|star_forest_set_up|forest_algebra|channels|product_plan|message_driven_sweep|mpi_plugin|mpi_plugin_baselines|gpu_plugin)[.]cpp$|[.]gpu[.]cpp$")  # by themselves: long, or with types of their own in an Impl
    string(REPLACE "/" "_" group ${room})
    set_source_files_properties(${room_sources} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endif()

# contraction stays as the compiler has it, but one setting for all: bits must not depend on the file, nor on the loop. Tuned for
# AMD's processors g++ fuses in some sums of rows and not in others: found by comparing bits between ranks
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("--param=avoid-fma-max-bits=0" CAN_FUSE_ALIKE)
# loops over sparse rows: left to itself g++ makes gathers and lane by lane sums of them, at a third of the speed. Loops that
# gain from vectors say so (vector types, omp simd)
set(row_kernels_sources ${kernels_sources})
set(of_rows "/(.*_format|rows|row_shapes|galerkin|sparse_product|aggregation|prolongation|classical|pairwise|strength|independent_set|items|index_set).kernels.cpp$")
list(FILTER row_kernels_sources INCLUDE REGEX ${of_rows})
list(FILTER kernels_sources EXCLUDE REGEX ${of_rows})
if(FEWER_HEADERS)  # all but the long ones
  set(short_kernels ${kernels_sources})
  list(FILTER short_kernels EXCLUDE REGEX "/(vector|symmetric_half).kernels.cpp$")
  set_source_files_properties(${short_kernels} PROPERTIES UNITY_GROUP kernels)
  foreach(room comm la/products precond)  # those of la/formats are long, and gain nothing together
    set(of_room ${row_kernels_sources})
    list(FILTER of_room INCLUDE REGEX "/src/asterism/${room}/")
    string(REPLACE "/" "_" group ${room})
    set_source_files_properties(${of_room} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endif()

# The library with kernels for an instruction set.
function(asterism_library name arch)
  foreach(part kernels row_kernels)
    set(objects ${name}_${part})
    asterism_objects(${objects} ${${part}_sources})
    target_compile_definitions(${objects} PRIVATE ASTERISM_ARCH_NAME="${arch}")
    set_target_properties(${objects} PROPERTIES UNITY_BUILD ${FEWER_HEADERS} UNITY_BUILD_MODE GROUP)
    if(ASTERISM_SANITIZE)  # instrumented -O3 takes minutes a file
      target_compile_options(${objects} PRIVATE -march=${arch} -fopenmp-simd)
    else()
      target_compile_options(${objects} PRIVATE -O3 -march=${arch} -mprefer-vector-width=512 -fno-math-errno -fopenmp-simd
        $<$<BOOL:${CAN_FUSE_ALIKE}>:--param=avoid-fma-max-bits=0>)
    endif()
    if(FEWER_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it takes the files of a unity for headers
      target_compile_options(${objects} PRIVATE -Wno-subobject-linkage)
    endif()
  endforeach()
  if(NOT ASTERISM_SANITIZE)
    target_compile_options(${name}_row_kernels PRIVATE -fno-tree-vectorize -fno-tree-slp-vectorize)
  endif()
  add_library(${name} SHARED $<TARGET_OBJECTS:asterism_host> $<TARGET_OBJECTS:${name}_kernels> $<TARGET_OBJECTS:${name}_row_kernels>)
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions ${sanitizer})
  target_link_libraries(${name} PRIVATE asterism_openblas Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME asterism)
endfunction()

list(POP_FRONT ASTERISM_ARCH first_arch)
asterism_library(asterism ${first_arch})
add_library(asterism::asterism ALIAS asterism)
target_include_directories(asterism PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${package_dir}/include>)
target_compile_features(asterism PUBLIC cxx_std_20)
target_compile_options(asterism PUBLIC ${sanitizer})
target_link_options(asterism PUBLIC ${sanitizer})
set_target_properties(asterism PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../scipy_openblas32/lib")
install(TARGETS asterism EXPORT asterismTargets LIBRARY DESTINATION ${package_dir}/lib)

# Beside it, where glibc (2.33 and newer) looks first, those that the CPU may have; for tests, out of its sight.
set(chosen_by_glibc x86-64-v2 x86-64-v3 x86-64-v4)
foreach(arch IN LISTS ASTERISM_ARCH)
  if(NOT arch IN_LIST chosen_by_glibc)
    message(FATAL_ERROR "ASTERISM_ARCH: '${arch}' is not one of those that glibc chooses from: ${chosen_by_glibc}")
  endif()
  asterism_library(asterism_${arch} ${arch})
  set_target_properties(asterism_${arch} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/glibc-hwcaps/${arch}
    INSTALL_RPATH "$ORIGIN;$ORIGIN/../../../../scipy_openblas32/lib")
  install(TARGETS asterism_${arch} LIBRARY DESTINATION ${package_dir}/lib/glibc-hwcaps/${arch})
endforeach()
# By tests: those that this CPU runs, but for the newest of them, for which native stands.
set(tested_kernels "")
if(ASTERISM_TESTS AND NOT ASTERISM_SANITIZE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  execute_process(COMMAND /lib64/ld-linux-x86-64.so.2 --help OUTPUT_VARIABLE of_cpu ERROR_QUIET)
  foreach(arch IN LISTS chosen_by_glibc)
    if(of_cpu MATCHES "${arch} \\(supported")
      list(APPEND tested_kernels ${arch})
    endif()
  endforeach()
  if(first_arch STREQUAL "native")
    list(POP_BACK tested_kernels)
  endif()
  if(NOT of_cpu MATCHES "\\(supported")
    message(WARNING "the loader does not tell which instruction sets this CPU has: kernels for older ones are not tested")
  endif()
  foreach(arch IN LISTS tested_kernels)
    asterism_library(asterism_test_${arch} ${arch})
    set_target_properties(asterism_test_${arch} asterism_test_${arch}_kernels asterism_test_${arch}_row_kernels PROPERTIES EXCLUDE_FROM_ALL ON)
    set_target_properties(asterism_test_${arch} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/instruction_sets/${arch})
  endforeach()
endif()
