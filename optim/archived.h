// The options and states of optimisers in archives, by virtual functions of libtorch's names: optim/archives.h.
#pragma once

namespace rush::serialize {
class InputArchive;
class OutputArchive;
}  // namespace rush::serialize

namespace rush::optim {

class OptimizerOptions;
class OptimizerParamState;

/// The base of options, and of states, which a program's own override. By default options write what `visit` names;
/// states throw NotImplementedError, for they have a state dict.
template <class Part>
class Archived {
 public:
  virtual ~Archived() = default;
  virtual void serialize(rush::serialize::InputArchive& archive);
  virtual void serialize(rush::serialize::OutputArchive& archive) const;
};

template <>
void Archived<OptimizerOptions>::serialize(rush::serialize::InputArchive& archive);
template <>
void Archived<OptimizerOptions>::serialize(rush::serialize::OutputArchive& archive) const;
template <>
void Archived<OptimizerParamState>::serialize(rush::serialize::InputArchive& archive);
template <>
void Archived<OptimizerParamState>::serialize(rush::serialize::OutputArchive& archive) const;

}  // namespace rush::optim
