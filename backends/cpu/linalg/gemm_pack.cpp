#include "backends/cpu/linalg/gemm_pack.h"

#include "backends/cpu/nn/conv_image.h"

namespace rush::cpu {

template struct MatrixSource<float>;
template struct MatrixSource<double>;
template struct ImageSource<float>;
template struct ImageSource<double>;

}  // namespace rush::cpu
