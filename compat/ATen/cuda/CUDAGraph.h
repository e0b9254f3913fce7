#pragma once
#include "ATen/cuda/CUDAContext.h"
#include "backends/cuda/devices.h"
