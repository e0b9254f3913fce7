// The choice of a kernel by dtype: the same for every device, in namespace rush. Files under backends/cuda/kernels
// include it by this name.
#pragma once
#include "backends/functors/pick.h"  // IWYU pragma: export
