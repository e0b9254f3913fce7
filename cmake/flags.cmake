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
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlapping copies inside `"literal" + std::string` (GCC bug 105651), and of the deliberately
  # undefined registers in its own AVX-512 headers, which only the kernels use (GCC bug 105593).
  target_compile_options(rush_flags INTERFACE -Wno-restrict)
  set(kernel_warnings -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

if(RUSH_NATIVE)
  target_compile_options(rush_flags INTERFACE -march=native)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(rush_flags INTERFACE -march=x86-64-v3)
endif()

# Kernels are compiled at -O3 for its vectoriser, the rest at -O2 for its build time. Without errno and trapping
# arithmetic, loops over sqrt and over comparisons vectorise; IEEE results, NaN and infinity included, are untouched.
function(rush_optimize target)
  set(kernels ${ARGN})
  list(FILTER kernels INCLUDE REGEX "/backends/cpu/")
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  set_source_files_properties(${kernels} PROPERTIES
    COMPILE_OPTIONS "$<$<CONFIG:Release,RelWithDebInfo>:-O3>;-fno-math-errno;-fno-trapping-math;${kernel_warnings}")
endfunction()

# Public, because one program must not mix sanitized and plain objects.
function(rush_sanitize target)
  if(NOT RUSH_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${RUSH_SANITIZE}>
    $<BUILD_INTERFACE:-fno-sanitize-recover=all> $<BUILD_INTERFACE:-fno-omit-frame-pointer>
    $<BUILD_INTERFACE:-O1> $<BUILD_INTERFACE:-g>)
  target_compile_definitions(${target} PUBLIC $<BUILD_INTERFACE:_GLIBCXX_ASSERTIONS>)
  target_link_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${RUSH_SANITIZE}>)
endfunction()
