// Names in profiles for parts of a program.
#pragma once
#include "core/profiler/record.h"
#include "torch/types.h"

/// Until the end of the scope; the inputs, which libtorch shows beside it, are not recorded.
#define RECORD_FUNCTION(name, ...) const ::rush::record_function C10_ANONYMOUS_VARIABLE(recorded)(name)
#define RECORD_USER_SCOPE(name) RECORD_FUNCTION(name)
