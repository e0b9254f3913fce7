#pragma once
#include "c10/core/WrapDimMinimal.h"

namespace at {
using c10::maybe_wrap_dim;
}
