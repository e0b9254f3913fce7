#pragma once
#include "backends/cuda/stream/stream.h"
#include "torch/types.h"
