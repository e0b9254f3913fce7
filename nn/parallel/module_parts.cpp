#include "nn/parallel/module_parts.h"

#include "nn/parallel/sharded_unit.h"
#include "nn/parallel/tensor_parallel.h"

namespace rush::nn::parallel {

using distributed::TensorPart;

// The place of a SplitModule's part in the whole parameter.
static void place_in_whole(TensorPart& part, const SplitModule& owner, std::string_view parameter) {
  const std::optional<int64_t> dim = owner.split_dim(parameter);
  if (!dim) return;
  const auto d = static_cast<size_t>(*dim);
  part.offsets[d] += owner.group()->rank() * part.sizes[d];
  part.sizes[d] *= owner.group()->size();
}

std::vector<TensorPart> module_parts(const Module& module) {
  const auto modules = module.named_modules();
  std::vector<TensorPart> parts;
  for (const auto& parameter : module.named_parameters()) {
    TensorPart& part = parts.emplace_back(TensorPart::whole(parameter.key(), parameter.value()));
    if (const ShardedUnit::Owner sharded = ShardedUnit::owner_of(part.local); sharded.unit) {
      part.sizes = sharded.parameter().sizes;
      part.offsets[0] = sharded.unit->first_row(sharded.parameter());
    }
    const size_t dot = part.name.rfind('.');
    const std::string owner = dot == part.name.npos ? "" : part.name.substr(0, dot);
    if (const auto* split = modules[owner]->as<SplitModule>()) place_in_whole(part, *split, part.name.substr(dot + 1));
  }
  for (const auto& buffer : module.named_buffers()) parts.push_back(TensorPart::whole(buffer.key(), buffer.value()));
  return parts;
}

}  // namespace rush::nn::parallel
