// Optimisers of a program's own in archives, as libtorch's programs write theirs: torch/optim/serialize.h.
#pragma once
#include <memory>

#include "core/str.h"
#include "nn/state/archive.h"
#include "optim/optimizer.h"

namespace rush::optim {

/// Writes the options of every group, and the states by their parameters' places, through the virtual functions
/// `serialize` of `Options` and `ParamState`.
template <class ParamState, class Options>
void serialize(rush::serialize::OutputArchive& archive, const Optimizer& optimizer) {
  size_t position = 0;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const OptimizerParamGroup& group = optimizer.param_groups()[g];
    rush::serialize::OutputArchive options;
    static_cast<const Options&>(group.options()).serialize(options);
    archive.write(str("param_groups.", g), options);
    for (const Tensor& param : group.params()) {
      const std::string name = str("state.", position++);
      const auto found = optimizer.state().find(param.impl());
      if (found == optimizer.state().end()) continue;
      rush::serialize::OutputArchive state;
      static_cast<const ParamState&>(*found->second).serialize(state);
      archive.write(name, state);
    }
  }
}

/// Reads what that wrote into an optimiser with the same groups. Throws ValueError when one of them is missing.
template <class ParamState, class Options>
void serialize(rush::serialize::InputArchive& archive, Optimizer& optimizer) {
  size_t position = 0;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    OptimizerParamGroup& group = optimizer.param_groups()[g];
    rush::serialize::InputArchive options;
    archive.read(str("param_groups.", g), options);
    static_cast<Options&>(group.options()).serialize(options);
    for (const Tensor& param : group.params()) {
      rush::serialize::InputArchive read;
      if (!archive.try_read(str("state.", position++), read)) continue;
      auto state = std::make_unique<ParamState>();
      state->serialize(read);
      optimizer.state()[param.impl()] = std::move(state);
    }
  }
}

}  // namespace rush::optim
