// What every optimiser asks of the tensors of a state before it uses them.
#pragma once
#include "core/tensor.h"

namespace rush::optim {

/// Throws ValueError, or TypeError for the dtype, unless `state` is a dense tensor with the shape, dtype and device of
/// `like`. The message starts with `who...`, which says which state it is.
template <class... Who>
void check_state(const Tensor& state, const Tensor& like, Who... who) {
  const char* way_out = "; load a state that fits, or erase it";
  RUSH_CHECK_VALUE(state.sizes() == like.sizes(), who..., " has shape ", state.sizes(), ", its parameter ",
                   like.sizes(), way_out);
  RUSH_CHECK_TYPE(state.scalar_type() == like.scalar_type(), who..., " is of ", state.scalar_type(),
                  ", its parameter of ", like.scalar_type(), way_out);
  RUSH_CHECK_VALUE(state.device() == like.device(), who..., " is on ", state.device(), ", its parameter on ",
                   like.device(), way_out);
  RUSH_CHECK_VALUE(state.layout() == kStrided, who..., " has layout ", state.layout(), ", its parameter is dense",
                   way_out);
}

}  // namespace rush::optim
