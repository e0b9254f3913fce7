// rush::nn::functional: what modules compute, as functions with options. Programs shorten it to F.
#pragma once
#include "nn/functional/activation.h"
#include "nn/functional/attention.h"
#include "nn/functional/conv.h"
#include "nn/functional/dropout.h"
#include "nn/functional/embedding.h"
#include "nn/functional/linear.h"
#include "nn/functional/loss.h"
#include "nn/functional/norm.h"
#include "nn/functional/pad.h"
#include "nn/functional/pool.h"
