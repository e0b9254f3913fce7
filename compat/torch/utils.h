#pragma once
#include "torch/types.h"
#include "torch/version.h"
