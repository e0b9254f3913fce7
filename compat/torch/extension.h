// What an extension includes; there is no Python here to bind it to.
#pragma once
#include "torch/all.h"
#include "torch/library.h"
