// Casts of weights under autocast, all at once.
#pragma once
#include "core/tensor.h"

namespace rush::autocast {

/// Casts what Note [The cache of casts] would keep of `weights`, and does not hold yet, with one operator instead of
/// one for each when it is first used, and one more for each gradient. For small nets on a GPU, where a launch takes
/// longer than its conversion. Call it within the scope of the autocast, with the weights that will be used there:
/// casts that are not cost their time. Their gradients arrive together, at the end of the backward pass; where they are
/// to travel between processes meanwhile, call it for each block of the net. Does nothing where autocast is off for the
/// weights' device, or its cache is.
void cast_weights(TensorList weights);

}  // namespace rush::autocast
