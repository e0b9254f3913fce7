# What kernels compiled at run time need: NVRTC, which is opened when the first one is compiled, by its name or where it is
# now; and the headers that the library carries for them, see Note [Functors compiled at run time].

set(RUSH_JIT_HEADERS
  backends/cuda/complex_math.h
  backends/cuda/jit/device_code.h
  backends/cuda/jit/standard_library.h
  backends/cuda/kernels/reduce/block_combine.h
  backends/functors/activation.h
  backends/functors/bessel.h
  backends/functors/binary.h
  backends/functors/compare.h
  backends/functors/complex.h
  backends/functors/convert.h
  backends/functors/ctc.h
  backends/functors/distance.h
  backends/functors/divisor.h
  backends/functors/histogram.h
  backends/functors/incomplete_gamma.h
  backends/functors/index.h
  backends/functors/loss.h
  backends/functors/random.h
  backends/functors/reduce.h
  backends/functors/scan.h
  backends/functors/select.h
  backends/functors/sort_key.h
  backends/functors/special.h
  backends/functors/ternary.h
  backends/functors/unary.h
  core/box_muller.h
  core/complex.h
  core/complex_functions.h
  core/complex_math.h
  core/float8.h
  core/half.h
  core/integer.h
  core/macros.h
  core/ops/libtorch_complex.inc
  core/philox.h
  core/scalar_type.h)

find_library(RUSH_NVRTC_LIBRARY NAMES nvrtc libnvrtc.so.${CUDAToolkit_VERSION_MAJOR} HINTS "${CUDAToolkit_LIBRARY_DIR}")
mark_as_advanced(RUSH_NVRTC_LIBRARY)

set(lines "")
set(files "")
foreach(header IN LISTS RUSH_JIT_HEADERS)
  string(MAKE_C_IDENTIFIER "${header}" symbol)
  string(APPEND lines "RUSH_HEADER(${symbol}, \"${header}\", \"${PROJECT_SOURCE_DIR}/${header}\")\n")
  list(APPEND files "${PROJECT_SOURCE_DIR}/${header}")
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/jit_headers.inc" CONTENT "${lines}" @ONLY)
set_source_files_properties(backends/cuda/jit/headers.cpp PROPERTIES OBJECT_DEPENDS "${files}"
  COMPILE_DEFINITIONS "RUSH_JIT_HEADERS=\"${PROJECT_BINARY_DIR}/jit_headers.inc\"")
set_source_files_properties(backends/cuda/jit/nvrtc.cpp PROPERTIES
  COMPILE_DEFINITIONS "RUSH_NVRTC_LIBRARY=\"${RUSH_NVRTC_LIBRARY}\"")
