#pragma once
#include "torch/cuda.h"
#include "torch/mps.h"
#include "torch/serialize.h"
#include "torch/special.h"
#include "torch/types.h"
#include "torch/utils.h"
#include "torch/xpu.h"
