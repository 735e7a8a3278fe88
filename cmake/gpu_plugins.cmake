# Plug-ins for GPUs: the kernels that have a form there, and the table of gpu/api.hpp. -DASTERISM_CUDA=ON needs nvcc, -DASTERISM_HIP=ON
# hipcc. Objects are made by custom commands: CMake's own language support would look for a driver and link its own runtime.
option(ASTERISM_CUDA "Build the plug-in for CUDA (nvcc)" OFF)
option(ASTERISM_HIP "Build the plug-in for HIP (hipcc)" OFF)
set(ASTERISM_CUDA_ARCH "75;80;90;100" CACHE STRING "Compute capabilities: machine code for each, PTX for the last")
set(ASTERISM_CUDA_FLAGS "" CACHE STRING "More options of nvcc")
set(ASTERISM_HIP_ARCH "gfx90a" CACHE STRING "AMD architectures")

# one list for nvcc, hipcc and the emulation in the tests
set(gpu_sources
  src/asterism/device/gpu/gpu_plugin.cpp
  src/asterism/comm/gpu/ipc.kernels.cpp
  src/asterism/comm/forest/queued_forest.kernels.cpp
  src/asterism/comm/reduction.kernels.cpp
  src/asterism/device/scalar.kernels.cpp
  src/asterism/krylov/verdict.kernels.cpp
  src/asterism/la/vectors/vector.kernels.cpp
  src/asterism/la/vectors/row_parts.kernels.cpp
  src/asterism/la/assembly/assembly.kernels.cpp
  src/asterism/grid/interpolation.kernels.cpp
  src/asterism/grid/bricks/point_transfer.kernels.cpp
  src/asterism/precond/level_sweep.kernels.cpp
  src/asterism/precond/multigrid/smoothers/gauss_seidel.kernels.cpp
  src/asterism/direct/triangular/gpu/gpu_factors.kernels.cpp)
list(TRANSFORM gpu_sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
file(GLOB_RECURSE gpu_forms CONFIGURE_DEPENDS src/asterism/*.gpu.cpp)  # kernels whose form for a GPU is a file of its own
list(APPEND gpu_sources ${gpu_forms})
file(GLOB_RECURSE gpu_headers CONFIGURE_DEPENDS src/asterism/*.hpp)

function(asterism_gpu_plugin name compiler)
  set(flags ${ARGN})
  set(objects "")
  foreach(source IN LISTS gpu_sources)
    get_filename_component(base ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}/${base}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${gpu_headers} VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${name}
      COMMAND ${compiler} ${flags} -I${CMAKE_CURRENT_SOURCE_DIR}/src -c ${source} -o ${object}
      COMMENT "${name}: ${base}")
    list(APPEND objects ${object})
  endforeach()
  set(library ${CMAKE_CURRENT_BINARY_DIR}/libasterism_${name}.so)
  set(link_flags "")
  if(name STREQUAL cuda)
    set(link_flags -cudart=static -Xlinker -Bsymbolic)
  else()
    set(link_flags -Wl,-Bsymbolic)
  endif()
  add_custom_command(OUTPUT ${library} DEPENDS ${objects} VERBATIM
    COMMAND ${compiler} -shared ${link_flags} ${objects} -o ${library} COMMENT "libasterism_${name}.so")
  add_custom_target(asterism_${name} ALL DEPENDS ${library})
  install(FILES ${library} DESTINATION ${package_dir}/lib)
  message(STATUS "GPU plug-in: ${name} (${compiler})")
endfunction()

if(ASTERISM_CUDA)
  find_program(ASTERISM_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin REQUIRED)
  set(architectures "")
  foreach(a IN LISTS ASTERISM_CUDA_ARCH)
    list(APPEND architectures "-gencode=arch=compute_${a},code=sm_${a}")
    set(newest ${a})
  endforeach()
  list(APPEND architectures "-gencode=arch=compute_${newest},code=compute_${newest}")
  # 20012: defaulted functions need no __host__ __device__; 177, 550: host-only helpers seen by the device pass
  asterism_gpu_plugin(cuda ${ASTERISM_NVCC} -x cu -std=c++20 -O3 --extended-lambda --threads 0 -Werror all-warnings
    -diag-suppress 20012,177,550 -Xcompiler -fPIC ${architectures} ${ASTERISM_CUDA_FLAGS})
endif()
if(ASTERISM_HIP)
  find_program(ASTERISM_HIPCC hipcc REQUIRED)
  set(architectures "")
  foreach(a IN LISTS ASTERISM_HIP_ARCH)
    list(APPEND architectures --offload-arch=${a})
  endforeach()
  asterism_gpu_plugin(hip ${ASTERISM_HIPCC} -x hip -std=c++20 -O3 -fPIC ${architectures})
endif()
