#include "optim/archived.h"

#include "nn/state/archive.h"
#include "optim/optimizer.h"

namespace rush::optim {

template <>
void Archived<OptimizerOptions>::serialize(rush::serialize::InputArchive& archive) {
  const StateDict dict = rush::serialize::load_state(archive);
  StateFields fields(dict);
  static_cast<OptimizerOptions&>(*this).visit(fields);
  fields.finish("OptimizerOptions::serialize");
}

template <>
void Archived<OptimizerOptions>::serialize(rush::serialize::OutputArchive& archive) const {
  StateDict dict("options");
  StateFields fields(&dict);
  static_cast<const OptimizerOptions&>(*this).clone()->visit(fields);
  rush::serialize::save_state(archive, dict);
}

static const char* const kNoArchive = "optimizer: this state is not for archives; override serialize";

template <>
void Archived<OptimizerParamState>::serialize(rush::serialize::InputArchive& /*archive*/) {
  RUSH_THROW(NotImplementedError, kNoArchive);
}

template <>
void Archived<OptimizerParamState>::serialize(rush::serialize::OutputArchive& /*archive*/) const {
  RUSH_THROW(NotImplementedError, kNoArchive);
}

}  // namespace rush::optim
