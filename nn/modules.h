// Every module.
#pragma once
#include "nn/modules/activation.h"
#include "nn/modules/container.h"
#include "nn/modules/conv.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/loss.h"
#include "nn/modules/norm.h"
#include "nn/modules/pool.h"
#include "nn/modules/rnn.h"
