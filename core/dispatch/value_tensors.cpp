#include "core/dispatch/value_tensors.h"

namespace rush {

using Tensors = std::vector<Tensor>;
using OptionalTensors = std::vector<std::optional<Tensor>>;

bool holds_tensors(const Value& value) {
  return value.is<Tensor>() || value.is<Tensors>() || value.is<OptionalTensors>();
}

std::vector<Tensor> tensors_of(const Value& value) {
  if (value.is<Tensor>()) return {value.as<Tensor>()};
  if (value.is<Tensors>()) return value.as<Tensors>();
  Tensors tensors;
  if (!value.is<OptionalTensors>()) return tensors;
  for (const std::optional<Tensor>& each : value.as<OptionalTensors>()) tensors.push_back(each.value_or(Tensor()));
  return tensors;
}

Value with_tensors(const Value& value, std::vector<Tensor> tensors) {
  if (value.is<Tensor>()) return tensors.empty() ? Tensor() : std::move(tensors[0]);
  if (value.is<Tensors>()) return tensors;
  if (!value.is<OptionalTensors>()) return value;
  OptionalTensors list;
  for (Tensor& each : tensors) list.push_back(each.defined() ? std::optional(std::move(each)) : std::nullopt);
  return list;
}

}  // namespace rush
