# The CUDA backend: RUSH_HAS_CUDA says whether it is built, rush_cuda holds its objects, rush_link_cuda links what it
# needs. The driver's library is never linked: see backends/cuda/driver.h.

set(RUSH_CUDA AUTO CACHE STRING "Build the CUDA backend: ON, OFF, or AUTO: where there is a CUDA toolkit")
set_property(CACHE RUSH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(RUSH_CUDA_ARCHITECTURE "" CACHE STRING "The GPU architecture to compile for, such as 90; empty: this machine's")
set(RUSH_CUDNN_DIR "$ENV{RUSH_CUDNN_DIR}" CACHE PATH "Folder with cuDNN's include and lib, where the toolkit has none")
set(RUSH_HAS_CUDA OFF)

if(NOT RUSH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "RUSH_CUDA is '${RUSH_CUDA}'; expected AUTO, ON or OFF")
endif()
if(NOT RUSH_CUDA STREQUAL "OFF")
  # nvcc is found on the PATH, in CUDA_HOME, or where the toolkit's installer puts it.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(RUSH_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(RUSH_NVCC)
    if(RUSH_NVCC)
      set(CMAKE_CUDA_COMPILER "${RUSH_NVCC}")
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    set(RUSH_HAS_CUDA ON)
  elseif(RUSH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RUSH_CUDA is ON and there is no nvcc: put it on the PATH, or set CUDA_HOME")
  endif()
endif()
if(NOT RUSH_HAS_CUDA)
  return()
endif()

# One architecture: this machine's, or Hopper's where there is no GPU.
if(RUSH_CUDA_ARCHITECTURE)
  set(CMAKE_CUDA_ARCHITECTURES "${RUSH_CUDA_ARCHITECTURE}")
elseif(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE capability
    RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0 AND capability MATCHES "^([0-9]+)\\.([0-9]+)")
    set(CMAKE_CUDA_ARCHITECTURES "${CMAKE_MATCH_1}${CMAKE_MATCH_2}-real")
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90-real)
  endif()
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake before 3.26 does not know that nvcc 12 has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
message(NOTICE "CUDA ${CUDAToolkit_VERSION}, compiling for sm_${CMAKE_CUDA_ARCHITECTURES}")

# cuDNN by its header and library, beside the toolkit or wherever RUSH_CUDNN_DIR says (the layout of its archive and of
# its wheel: include/ and lib/).
find_path(RUSH_CUDNN_INCLUDE cudnn_version.h HINTS "${RUSH_CUDNN_DIR}/include" NO_DEFAULT_PATH)
find_path(RUSH_CUDNN_INCLUDE cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(RUSH_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS "${RUSH_CUDNN_DIR}/lib" "${RUSH_CUDNN_DIR}/lib64"
  NO_DEFAULT_PATH)
find_library(RUSH_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS "${CUDAToolkit_LIBRARY_DIR}")
mark_as_advanced(RUSH_CUDNN_INCLUDE RUSH_CUDNN_LIBRARY)
# Its graph API is used through the headers of NVIDIA's cudnn-frontend: where RUSH_CUDNN_FRONTEND_DIR says (a folder with
# cudnn_frontend.h, or one with include/), beside cuDNN, or else from its release.
set(RUSH_CUDNN_FRONTEND_DIR "$ENV{RUSH_CUDNN_FRONTEND_DIR}" CACHE PATH "Folder that holds cudnn_frontend.h")
set(RUSH_HAS_CUDNN OFF)
if(RUSH_CUDNN_INCLUDE AND RUSH_CUDNN_LIBRARY)
  find_path(RUSH_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
    HINTS "${RUSH_CUDNN_FRONTEND_DIR}" "${RUSH_CUDNN_FRONTEND_DIR}/include" "${RUSH_CUDNN_INCLUDE}")
  mark_as_advanced(RUSH_CUDNN_FRONTEND_INCLUDE)
  if(NOT RUSH_CUDNN_FRONTEND_INCLUDE AND RUSH_CUDA STREQUAL "ON")
    rush_download(cudnn_frontend https://github.com/NVIDIA/cudnn-frontend.git v1.32.0)
    set(RUSH_CUDNN_FRONTEND_INCLUDE "${cudnn_frontend_SOURCE_DIR}/include")
  endif()
  if(RUSH_CUDNN_FRONTEND_INCLUDE)
    set(RUSH_HAS_CUDNN ON)
  endif()
endif()
if(NOT RUSH_HAS_CUDNN)
  message(NOTICE "cuDNN or the headers of cudnn-frontend were not found (RUSH_CUDNN_DIR and RUSH_CUDNN_FRONTEND_DIR say "
    "where they are): convolutions on CUDA will be slower")
endif()

# cuSPARSELt, for 2:4 semi-structured matrices, likewise: a wheel of it is laid out as include/ and lib/ too, in a folder
# of its own or in the toolkit's.
set(RUSH_CUSPARSELT_DIR "$ENV{RUSH_CUSPARSELT_DIR}" CACHE PATH "Folder with cuSPARSELt's include and lib")
set(RUSH_HAS_CUSPARSELT OFF)
find_path(RUSH_CUSPARSELT_INCLUDE cusparseLt.h HINTS "${RUSH_CUSPARSELT_DIR}/include" NO_DEFAULT_PATH)
find_library(RUSH_CUSPARSELT_LIBRARY NAMES cusparseLt libcusparseLt.so.0 HINTS "${RUSH_CUSPARSELT_DIR}/lib"
  "${RUSH_CUSPARSELT_DIR}/lib64" NO_DEFAULT_PATH)
if(RUSH_CUSPARSELT_DIR AND NOT (RUSH_CUSPARSELT_INCLUDE AND RUSH_CUSPARSELT_LIBRARY))
  message(FATAL_ERROR "RUSH_CUSPARSELT_DIR is ${RUSH_CUSPARSELT_DIR}, where there is no include/cusparseLt.h with its "
    "library in lib/")
endif()
find_path(RUSH_CUSPARSELT_INCLUDE cusparseLt.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_BIN_DIR}/../../cusparselt/include")
find_library(RUSH_CUSPARSELT_LIBRARY NAMES cusparseLt libcusparseLt.so.0
  HINTS "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_BIN_DIR}/../../cusparselt/lib")
mark_as_advanced(RUSH_CUSPARSELT_INCLUDE RUSH_CUSPARSELT_LIBRARY)
if(RUSH_CUSPARSELT_INCLUDE AND RUSH_CUSPARSELT_LIBRARY)
  set(RUSH_HAS_CUSPARSELT ON)
endif()

# CUPTI, which the profiler opens at run time: by its name, or where it is now.
set(RUSH_HAS_CUPTI OFF)
find_path(RUSH_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_BIN_DIR}/../extras/CUPTI/include")
find_library(RUSH_CUPTI_LIBRARY NAMES cupti libcupti.so.13
  HINTS "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_BIN_DIR}/../extras/CUPTI/lib64")
mark_as_advanced(RUSH_CUPTI_INCLUDE RUSH_CUPTI_LIBRARY)
if(RUSH_CUPTI_INCLUDE AND RUSH_CUPTI_LIBRARY AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
  set(RUSH_HAS_CUPTI ON)
endif()

# NCCL, which init_process_group opens at run time, likewise.
set(RUSH_HAS_NCCL OFF)
find_path(RUSH_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(RUSH_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS "${CUDAToolkit_LIBRARY_DIR}")
mark_as_advanced(RUSH_NCCL_INCLUDE RUSH_NCCL_LIBRARY)
if(RUSH_NCCL_INCLUDE AND RUSH_NCCL_LIBRARY)
  set(RUSH_HAS_NCCL ON)
endif()

# rush_cuda_flags(TARGET): how this tree's CUDA sources are compiled.
function(rush_cuda_flags target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:rush_flags,INTERFACE_COMPILE_OPTIONS>>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-include;${PROJECT_SOURCE_DIR}/backends/cuda/device_code.h>"
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${RUSH_WERROR}>>:--Werror=all-warnings;-Xcompiler=-Werror>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-lineinfo>"
    # A quarter of the size: kernels are many, and each is unpacked when it is first launched.
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,12.8>>:--compress-mode=size>"
    # A recursion is not unrolled then, and ptxas warns that it cannot tell how deep it goes.
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${RUSH_CHECK_KERNELS}>,$<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,13>>:--Ofast-compile=max;-Xptxas=--suppress-stack-size-warning>"
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O2>")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  if(RUSH_HAS_CUDNN)
    target_include_directories(${target} SYSTEM PRIVATE "${RUSH_CUDNN_INCLUDE}" "${RUSH_CUDNN_FRONTEND_INCLUDE}")
    target_compile_definitions(${target} PRIVATE RUSH_HAS_CUDNN)
  endif()
endfunction()

# rush_batch_cuda_sources(LIST): in place of the kernels' sources in this list, files that include four of a folder each,
# for most of a source's time goes into parsing headers. CMake does so for C++ alone (before 3.31). Not those of nn, whose
# few large ones would keep one core busy when all others have ended.
function(rush_batch_cuda_sources list)
  if(NOT RUSH_UNITY)
    return()
  endif()
  set(at_a_time 4)
  set(left "")
  foreach(source IN LISTS ${list})
    if(NOT source MATCHES "/backends/cuda/kernels/([a-z]+)/[^/]+\\.cu$" OR CMAKE_MATCH_1 STREQUAL "nn")
      list(APPEND left "${source}")
      continue()
    endif()
    math(EXPR number "0${count_${CMAKE_MATCH_1}} / ${at_a_time}")
    math(EXPR count_${CMAKE_MATCH_1} "0${count_${CMAKE_MATCH_1}} + 1")
    set(batch "${CMAKE_CURRENT_BINARY_DIR}/Unity/kernels_${CMAKE_MATCH_1}_${number}.cu")
    list(APPEND batches "${batch}")
    string(APPEND "includes_${batch}" "#include \"${source}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES batches)
  foreach(batch IN LISTS batches)
    file(CONFIGURE OUTPUT "${batch}" CONTENT "${includes_${batch}}" @ONLY)
  endforeach()
  set(${list} ${left} ${batches} PARENT_SCOPE)
endfunction()

# rush_link_cuda(TARGET): the runtime inside, the libraries beside.
function(rush_link_cuda target)
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  foreach(library cublas cublasLt cufft cusparse cusolver)
    if(TARGET CUDA::${library})
      target_link_libraries(${target} PRIVATE CUDA::${library})
    endif()
  endforeach()
  if(RUSH_HAS_CUSPARSELT)
    target_link_libraries(${target} PRIVATE "${RUSH_CUSPARSELT_LIBRARY}")
  endif()
  if(RUSH_HAS_CUDNN)
    # cudnn-frontend compiles kernels of its own at run time.
    target_link_libraries(${target} PRIVATE "${RUSH_CUDNN_LIBRARY}" CUDA::nvrtc)
    # NVRTC opens its libnvrtc-builtins by name: of the paths in a program only the older kind, RPATH, counts for that.
    target_link_options(${target} PUBLIC "LINKER:--disable-new-dtags")
  endif()
endfunction()
