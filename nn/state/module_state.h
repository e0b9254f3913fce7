// State dicts of modules.
#pragma once
#include "nn/state/state_dict.h"

namespace rush {

namespace nn {
class Module;
}

/// The parameters and buffers of a module by name ("conv1.weight"), detached. They are the module's own memory: clone
/// them to keep them over a step.
StateDict state_dict(const nn::Module& module);

/// Copies the values of `dict` into the module's parameters and buffers, converting between floating-point types.
/// Throws ValueError, and changes nothing, unless `dict` has exactly the module's names with the module's shapes; the
/// message lists all that are missing, unexpected or of a wrong shape. A tensor that is registered in two places (a
/// tied weight) needs its first name only; further ones, as PyTorch's dicts have them, must hold the same numbers.
void load_state_dict(nn::Module& module, const StateDict& dict);

}  // namespace rush
