#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/stream/stream.h"
#include "torch/types.h"
