# Compiler flags. rush_flags carries those of everything built in this tree: warnings, and the CPU to compile for. The
# library, the tests and the benchmarks must agree on the CPU, because the linker keeps one copy of each inline function.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "Rushlight needs GCC 11 or newer; this is GCC ${CMAKE_CXX_COMPILER_VERSION}")
endif()

add_library(rush_flags INTERFACE)
target_compile_options(rush_flags INTERFACE -Wall -Wextra -Wpedantic)
if(RUSH_WERROR)
  target_compile_options(rush_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A twelfth of the compiler's time goes into collecting garbage that fits into memory: 0.9 GB instead of 0.7 for the
  # largest source.
  target_compile_options(rush_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  # For some CPUs (AMD's Zen; by GCC 13 also Intel's since Alder Lake) GCC rounds each product of a loop's only sum, where
  # the same loop with wider vectors or several sums has fused multiply-adds: a result would depend on how an operator is
  # split over threads.
  target_compile_options(rush_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=avoid-fma-max-bits=0>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlapping copies inside `"literal" + std::string` (GCC bug 105651), and of the deliberately
  # undefined registers in its own AVX-512 headers, which only the kernels use (GCC bug 105593).
  target_compile_options(rush_flags INTERFACE -Wno-restrict)
  set(kernel_warnings -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Pragmas and warnings that are GCC's, and loops that clang was asked to vectorise and did not.
  target_compile_options(rush_flags INTERFACE -Wno-unknown-warning-option -Wno-unknown-pragmas -Wno-pass-failed)
endif()

if(RUSH_NATIVE)
  target_compile_options(rush_flags INTERFACE -march=native)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(rush_flags INTERFACE -march=x86-64-v3)
endif()

# -O2 rather than CMake's -O3, whose rarer transformations cost build time. Kernels get the vectoriser with the cost
# model that lets it check at run time whether it applies. Without errno and trapping arithmetic, loops over sqrt and
# over comparisons vectorise; IEEE results, NaN and infinity included, are untouched.
function(rush_optimize target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
endfunction()
# For programs and tests, whose time goes into what they call: GCC's -Og with two of -O1's transformations takes two
# thirds of -O1's time.
function(rush_optimize_lightly target)
  set(options $<IF:$<CXX_COMPILER_ID:GNU>,-Og;-ftree-sra;-finline-functions-called-once,-O1>)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:${options}>")
endfunction()
function(rush_optimize_kernels target)
  rush_optimize(${target})
  if(RUSH_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math ${kernel_warnings} -ftree-vectorize -fopenmp-simd
    $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
endfunction()

# rush_precompile(TARGET HEADER... | AS OTHER): the standard library's usual headers and these (the project's by their
# paths, others in angle brackets), parsed once for the target; AS shares what another target, compiled with the same
# options, has parsed. Sources still include what they use: -DRUSH_PRECOMPILE=OFF builds them without.
function(rush_precompile target)
  if(NOT RUSH_PRECOMPILE)
    return()
  endif()
  if(ARGV1 STREQUAL "AS")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
    return()
  endif()
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" REGEX "^[^<]")
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <functional> <memory> <numeric> <optional>
    <string> <tuple> <vector> ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # which ccache asks for
endfunction()

# rush_compile_in_batches(TARGET SOURCES...): these of its sources are compiled several at a time, each batch of one folder:
# of several, the linker would keep modules of nn in a program that has none of them. Of fewer at a time, so that a change
# compiles little again, the whole would take a quarter longer.
function(rush_compile_in_batches target)
  set(at_a_time 12)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${RUSH_UNITY} UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${path}")
    cmake_path(GET path PARENT_PATH folder)
    string(REPLACE "/" "_" folder "${folder}")
    math(EXPR batch "0${count_${folder}} / ${at_a_time}")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

# Sanitized code is that of a Debug build, since to optimise it takes twice as long; but kernels are optimised a little,
# and so is all that a fuzzer runs.
if(RUSH_SANITIZE AND RUSH_FUZZ)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-O1>")
endif()

# Public, because one program must not mix sanitized and plain objects.
function(rush_sanitize target)
  if(NOT RUSH_SANITIZE)
    return()
  endif()
  # Reports name lines; what a debugger wants besides would double the size of what is linked.
  set(options -fsanitize=${RUSH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  if(RUSH_SANITIZE MATCHES "undefined" AND NOT RUSH_FUZZ)
    # Asking of each pointer whether it is null, aligned and of the type and size that it is taken for makes code twice
    # as large, in half as much time again. What AddressSanitizer does not see of it, a wrong alignment above all, comes
    # of the bytes of files, and the fuzzers' builds ask.
    list(APPEND options -fno-sanitize=null,alignment,vptr,object-size)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # A number that a dtype cannot hold becomes what the machine makes of it, as in PyTorch. GCC does not ask for this.
    list(APPEND options -fno-sanitize=float-cast-overflow)
  endif()
  target_compile_options(${target} PUBLIC "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:${options}>>")
  # GCC's manual warns that sanitized code draws false reports of this kind.
  target_compile_options(${target} PUBLIC $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>>)
  target_compile_definitions(${target} PUBLIC $<BUILD_INTERFACE:_GLIBCXX_ASSERTIONS>)
  target_link_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${RUSH_SANITIZE}>)
  if(RUSH_SANITIZE MATCHES "address")
    # UBSan's reports need seven million relocations in a position-independent program: without them one is linked in
    # three quarters of the time, and starts in half of it. ThreadSanitizer's stay position-independent.
    set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    target_link_options(${target} PUBLIC $<BUILD_INTERFACE:$<${is_program}:-no-pie>>)
  endif()
endfunction()

# rush_build_tools(SOURCE): tells a source which compilers build this tree, and how, for what load_inline compiles.
function(rush_build_tools source)
  set(flags -std=c++20 -O2 -fPIC -Wall)
  if(RUSH_NATIVE)
    list(APPEND flags -march=native)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND flags -march=x86-64-v3)
  endif()
  if(RUSH_SANITIZE)
    list(APPEND flags -fsanitize=${RUSH_SANITIZE} -D_GLIBCXX_ASSERTIONS)
  endif()
  set(device_compiler "")
  set(device_flags "")
  set(device_runtime "")
  if(RUSH_HAS_CUDA)
    list(APPEND flags -DRUSH_HAS_CUDA)
    set(device_compiler "${CMAKE_CUDA_COMPILER}")
    set(device_flags -std=c++20 -O2 --expt-relaxed-constexpr -Xcompiler=-fPIC -DRUSH_HAS_CUDA "-ccbin=${CMAKE_CUDA_HOST_COMPILER}")
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
      string(REGEX MATCH "^[0-9]+[af]?" number "${architecture}")
      list(APPEND device_flags "-gencode=arch=compute_${number},code=sm_${number}")
    endforeach()
    set(device_runtime "${CUDA_cudart_static_LIBRARY}" -Wl,--exclude-libs,ALL -lrt -ldl -pthread)
  endif()
  set(definitions "")
  foreach(name flags device_compiler device_flags device_runtime)
    string(TOUPPER "RUSH_BUILD_${name}" macro)
    string(REPLACE ";" "\\;" text "${${name}}")
    list(APPEND definitions "${macro}=\"${text}\"")
  endforeach()
  list(APPEND definitions "RUSH_BUILD_COMPILER=\"${CMAKE_CXX_COMPILER}\"")
  set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS "${definitions}")
endfunction()
