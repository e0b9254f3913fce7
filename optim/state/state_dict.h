// State dicts of optimisers and schedules: see Note [State dicts] in nn/state/state_dict.h.
#pragma once
#include "nn/state/state_dict.h"

namespace rush::optim {

using rush::StateDict;
using rush::StateFields;

}  // namespace rush::optim
