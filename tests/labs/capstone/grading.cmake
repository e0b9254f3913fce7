# What `./rush lab capstone` adds to a project, which includes this at its end: the programs that grade it. RUSHLIGHT_TREE is Rushlight's
# folder, RUSHLIGHT_BUILD a build folder of it, which has the checks and the emulated grid.
include_guard()
add_executable(example EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/example.cpp")  # of page.md, taken out by tools/capstone
target_link_libraries(example PRIVATE operator)
foreach(target operator benchmark tests example)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${RUSHLIGHT_TREE}/tests/labs/capstone/include")
  # The CPU that the library is compiled for, because the linker keeps one copy of each inline function; and its kernels' options.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Werror ${RUSHLIGHT_FLAGS} -fno-math-errno
    -fno-trapping-math -ftree-vectorize $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
  if(target STREQUAL "operator")
    rushlight_precompile(operator)
  else()
    rushlight_precompile(${target} AS operator)
  endif()
endforeach()

# The kernel for the emulated grid: Note [The emulated grid] in tests/labs/grid/grid.h.
set_source_files_properties(kernel.cu PROPERTIES LANGUAGE CXX)
add_library(fused OBJECT kernel.cu)
target_compile_features(fused PRIVATE cxx_std_20)
target_include_directories(fused PRIVATE "${RUSHLIGHT_TREE}" "${RUSHLIGHT_TREE}/tests/labs/capstone/include")
target_compile_options(fused PRIVATE -Wall -Wextra -Werror -fsanitize=thread -fwrapv -fno-strict-aliasing -Og -g
  -Wno-unknown-pragmas -Wno-deprecated-copy -Wno-unused-parameter)

# The checks and the test runner, which call the project's functions.
add_library(checks STATIC IMPORTED)
set_target_properties(checks PROPERTIES IMPORTED_LOCATION "${RUSHLIGHT_BUILD}/labs/librush_lab_capstone.a")
target_link_libraries(checks INTERFACE operator $<TARGET_OBJECTS:fused> "${RUSHLIGHT_BUILD}/tests/labs/librush_grid.a")
target_link_libraries(tests PRIVATE checks)

add_executable(check "${RUSHLIGHT_TREE}/tests/labs/capstone/check_main.cpp")
target_include_directories(check PRIVATE "${RUSHLIGHT_TREE}")
target_link_libraries(check PRIVATE checks)

# The tests with a fault beneath them.
add_executable(faulty_tests $<TARGET_OBJECTS:tests>)
set_target_properties(faulty_tests PROPERTIES LINKER_LANGUAGE CXX)
target_link_options(faulty_tests PRIVATE LINKER:--wrap=main LINKER:--wrap=_ZN8capstone5fusedEPKPKffPfll)
target_link_libraries(faulty_tests PRIVATE checks)
