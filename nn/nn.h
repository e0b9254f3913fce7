// Modules, functional, initialisation, gradient clipping.
#pragma once
#include "nn/clip_grad.h"
#include "nn/convert_parameters.h"
#include "nn/functional.h"
#include "nn/graphs/graphed_callables.h"
#include "nn/init.h"
#include "nn/modules.h"
#include "nn/packed_sequence.h"
