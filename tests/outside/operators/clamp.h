#pragma once
#include <rushlight.h>

#include "autograd/library/register_autograd.h"

rush::Tensor clamp_on_gpu(const rush::Tensor& x, double limit);
