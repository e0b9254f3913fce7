#pragma once
#include "ATen/TensorUtils.h"
#include "torch/types.h"
