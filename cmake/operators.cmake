# Shared libraries of operators, which rush::load_library opens: see docs/own_operators.md.

# rush_add_operators(TARGET SOURCE...): builds one. It is compiled as what links to rushlight::rushlight is, and finds
# Rushlight in the program that loads it. Where Rushlight was built with CUDA, .cu sources are compiled too, and all sources
# see RUSH_HAS_CUDA; elsewhere .cu sources are left out.
function(rush_add_operators target)
  set(sources ${ARGN})
  get_target_property(has_cuda rushlight::rushlight RUSH_HAS_CUDA)
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  if(NOT has_cuda)
    list(FILTER sources EXCLUDE REGEX "\\.cu$")
  elseif(kernels AND NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "rush_add_operators(${target}): ${kernels} need the language CUDA: project(... LANGUAGES CXX CUDA)")
  endif()
  add_library(${target} MODULE ${sources})
  get_target_property(type rushlight::rushlight TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_libraries(${target} PRIVATE rushlight::rushlight)
  else()
    # Without what it links: a copy of the library would have a state of its own.
    foreach(property INCLUDE_DIRECTORIES SYSTEM_INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES)
      set(of_rushlight "$<TARGET_PROPERTY:rushlight::rushlight,INTERFACE_${property}>")
      set_property(TARGET ${target} APPEND PROPERTY ${property} "${of_rushlight}")
    endforeach()
    target_compile_features(${target} PRIVATE cxx_std_20)
  endif()
  if(has_cuda)
    target_compile_definitions(${target} PRIVATE RUSH_HAS_CUDA)
  endif()
  if(has_cuda AND kernels)
    # A CUDA runtime of its own, apart from the one in the program: both work in the same context.
    target_link_options(${target} PRIVATE "LINKER:--exclude-libs,ALL")
    set_property(TARGET ${target} PROPERTY CUDA_STANDARD)  # CMake before 3.26 does not know that nvcc has C++20
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr>")
  endif()
endfunction()

# rush_keep_all(PROGRAM): links all of Rushlight into a program, for the operators that it loads. By default it has only
# what it uses, and what operators use: not every module of nn, for example.
function(rush_keep_all program)
  get_target_property(type rushlight::rushlight TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_options(${program} PRIVATE "LINKER:--whole-archive,$<TARGET_FILE:rushlight::rushlight>,--no-whole-archive")
  endif()
endfunction()
