# Third-party code. Each library comes from an installed package, else from its bare headers wherever
# CMAKE_PREFIX_PATH leads, else from its own release by FetchContent.

include(FetchContent)

# Downloads the release without running its own CMake project: SOURCE_SUBDIR names a folder that is not there.
function(rush_download name repository tag)
  message(NOTICE "${name} is not installed: downloading ${tag} from ${repository}")
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW TRUE SOURCE_SUBDIR sources-only)
  FetchContent_MakeAvailable(${name})
  set(${name}_SOURCE_DIR "${${name}_SOURCE_DIR}" PARENT_SCOPE)
endfunction()

# rush_header_library(rush::NAME PACKAGE p VERSION v TARGET t HEADER h REPOSITORY url TAG tag INCLUDE folder)
# makes the imported target rush::NAME for a header-only library. It being imported, its headers count as the
# system's and are spared our warnings.
function(rush_header_library target)
  cmake_parse_arguments(ARG "" "PACKAGE;VERSION;TARGET;HEADER;SUFFIX;REPOSITORY;TAG;INCLUDE" "" ${ARGN})
  add_library(${target} INTERFACE IMPORTED)
  find_package(${ARG_PACKAGE} ${ARG_VERSION} CONFIG QUIET)
  if(TARGET ${ARG_TARGET})
    target_link_libraries(${target} INTERFACE ${ARG_TARGET})
    return()
  endif()
  find_path(RUSH_${ARG_PACKAGE}_INCLUDE "${ARG_HEADER}" PATH_SUFFIXES "${ARG_SUFFIX}")
  mark_as_advanced(RUSH_${ARG_PACKAGE}_INCLUDE)
  set(include "${RUSH_${ARG_PACKAGE}_INCLUDE}")
  if(NOT include)
    string(TOLOWER "${ARG_PACKAGE}" name)
    rush_download(${name} ${ARG_REPOSITORY} ${ARG_TAG})
    set(include "${${name}_SOURCE_DIR}/${ARG_INCLUDE}")
  endif()
  target_include_directories(${target} INTERFACE "${include}")
endfunction()

find_package(Threads REQUIRED)

if(RUSH_EIGEN_DIR)
  if(NOT EXISTS "${RUSH_EIGEN_DIR}/Eigen/Dense")
    message(FATAL_ERROR "RUSH_EIGEN_DIR is ${RUSH_EIGEN_DIR}, where there is no Eigen/Dense")
  endif()
  add_library(rush::eigen INTERFACE IMPORTED)
  target_include_directories(rush::eigen INTERFACE "${RUSH_EIGEN_DIR}")
else()
  rush_header_library(rush::eigen
    PACKAGE Eigen3 VERSION 3.4 TARGET Eigen3::Eigen HEADER Eigen/Dense SUFFIX eigen3
    REPOSITORY https://gitlab.com/libeigen/eigen.git TAG 3.4.0 INCLUDE .)
endif()

rush_header_library(rush::json
  PACKAGE nlohmann_json VERSION 3.9 TARGET nlohmann_json::nlohmann_json HEADER nlohmann/json.hpp
  REPOSITORY https://github.com/nlohmann/json.git TAG v3.11.3 INCLUDE single_include)

if(RUSH_BUILD_EXAMPLES OR RUSH_BUILD_TESTS OR RUSH_BUILD_BENCHMARKS)  # for the programs' options
  rush_header_library(rush::cli11
    PACKAGE CLI11 VERSION 2.1 TARGET CLI11::CLI11 HEADER CLI/CLI.hpp
    REPOSITORY https://github.com/CLIUtils/CLI11.git TAG v2.4.2 INCLUDE include)
endif()

if(RUSH_BUILD_TESTS)
  rush_header_library(rush::doctest
    PACKAGE doctest VERSION 2.4 TARGET doctest::doctest HEADER doctest/doctest.h
    REPOSITORY https://github.com/doctest/doctest.git TAG v2.4.11 INCLUDE .)
endif()

# zlib and libzip are linked. Where they are downloaded they become part of ours, so that an installed Rushlight still
# needs nothing that is not on the machine.
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  set(RUSH_ZLIB ZLIB::ZLIB)
else()
  rush_download(zlib https://github.com/madler/zlib.git v1.3.1)
  enable_language(C)
  file(GLOB zlib_sources "${zlib_SOURCE_DIR}/*.c")
  add_library(rush_zlib OBJECT ${zlib_sources})
  target_include_directories(rush_zlib SYSTEM PUBLIC "${zlib_SOURCE_DIR}")
  target_compile_definitions(rush_zlib PRIVATE HAVE_UNISTD_H)
  set_target_properties(rush_zlib PROPERTIES C_STANDARD 99 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
  set(RUSH_ZLIB $<BUILD_INTERFACE:rush_zlib>)
  # What libzip's own CMake project finds, if it is downloaded too: the headers.
  set(ZLIB_INCLUDE_DIR "${zlib_SOURCE_DIR}")
  set(ZLIB_LIBRARY rush_zlib)
  add_library(ZLIB::ZLIB INTERFACE IMPORTED)
  target_include_directories(ZLIB::ZLIB INTERFACE "${zlib_SOURCE_DIR}")
endif()

# A function, so that its options for libzip are nobody else's.
function(rush_download_libzip repository tag)
  message(NOTICE "libzip is not installed: downloading ${tag} from ${repository}")
  foreach(option BUILD_SHARED_LIBS BUILD_TOOLS BUILD_REGRESS BUILD_OSSFUZZ BUILD_EXAMPLES BUILD_DOC LIBZIP_DO_INSTALL
      ENABLE_COMMONCRYPTO ENABLE_GNUTLS ENABLE_MBEDTLS ENABLE_OPENSSL ENABLE_BZIP2 ENABLE_LZMA ENABLE_ZSTD)
    set(${option} OFF)
  endforeach()
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # libzip's option() heeds these variables
  FetchContent_Declare(libzip GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW TRUE)
  FetchContent_MakeAvailable(libzip)
  set_target_properties(zip PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_library(rush_libzip INTERFACE)
  target_sources(rush_libzip INTERFACE $<TARGET_OBJECTS:zip>)
  target_include_directories(rush_libzip SYSTEM INTERFACE "${libzip_SOURCE_DIR}/lib" "${libzip_BINARY_DIR}")
endfunction()

list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_package(LibZip QUIET)
if(LibZip_FOUND)
  set(RUSH_LIBZIP LibZip::zip)
else()
  enable_language(C)
  rush_download_libzip(https://github.com/nih-at/libzip.git v1.11.4)
  set(RUSH_LIBZIP $<BUILD_INTERFACE:rush_libzip>)
endif()

# For the tokenizer of the example gpt2 alone, which is left out where it is missing.
if(RUSH_GPT2)
  find_path(RUSH_PCRE2_INCLUDE pcre2.h)
  find_library(RUSH_PCRE2_LIBRARY pcre2-8)
  mark_as_advanced(RUSH_PCRE2_INCLUDE RUSH_PCRE2_LIBRARY)
  if(RUSH_PCRE2_INCLUDE AND RUSH_PCRE2_LIBRARY)
    add_library(rush::pcre2 INTERFACE IMPORTED)
    target_include_directories(rush::pcre2 INTERFACE "${RUSH_PCRE2_INCLUDE}")
    target_link_libraries(rush::pcre2 INTERFACE "${RUSH_PCRE2_LIBRARY}")
  else()
    message(NOTICE "PCRE2 is not installed (Debian: libpcre2-dev): the example gpt2 is left out")
  endif()
endif()

if(RUSH_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    message(NOTICE "Google Benchmark is not installed: downloading v1.8.3")
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    FetchContent_Declare(benchmark
      GIT_REPOSITORY https://github.com/google/benchmark.git GIT_TAG v1.8.3 GIT_SHALLOW TRUE)
    FetchContent_MakeAvailable(benchmark)
  endif()
endif()
