#pragma once
#include "torch/optim/serialize.h"
