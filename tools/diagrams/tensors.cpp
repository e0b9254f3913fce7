// Views, and loops over operands that broadcast.
#include "core/iterator/tensor_iterator.h"
#include "rushlight.h"
#include "tools/diagrams/facts.h"

namespace rush::diagrams {

namespace {

std::vector<int64_t> list(IntArrayRef values) { return {values.begin(), values.end()}; }

// Of a view of arange(n), whose elements are their positions in the storage.
Json describe(const char* code, const Tensor& view) {
  const Tensor elements = view.contiguous();
  const auto* positions = elements.const_data_ptr<int64_t>();
  return {{"code", code},
          {"sizes", list(view.sizes())},
          {"strides", list(view.strides())},
          {"offset", view.storage_offset()},
          {"positions", std::vector<int64_t>(positions, positions + elements.numel())}};
}

}  // namespace

Json view_facts() {
  const Tensor x = arange(12).view({3, 4});
  return {describe(RUSH_SHOWN(x)), describe(RUSH_SHOWN(x.t())), describe(RUSH_SHOWN(x[1])),
          describe(RUSH_SHOWN(x.slice(1, 1, 4, 2))), describe(RUSH_SHOWN(x.select(1, 0).expand({2, 3})))};
}

Json iterator_facts() {
  const Tensor counts = arange(24).view({2, 3, 4}), weights = full({4}, 0.5);
  const TensorIterator iterator = TensorIterator::pointwise("add", {}, {&counts, &weights}, Promotion::Common);
  Json runs = Json::array();
  iterator.for_each([&](char** data, const int64_t* strides, int64_t n) {
    Json run = {{"n", n}};
    for (int i = 0; i < iterator.ntensors(); ++i)
      run["operands"].push_back({{"begin", data[i] - iterator.operand(i).data}, {"stride", strides[i]}});
    runs.push_back(run);
  });
  Json operands = Json::array();
  const auto add = [&](const char* name, const Tensor& tensor) {
    const TensorIterator::Operand& operand = iterator.operand(static_cast<int>(operands.size()));
    operands.push_back({{"name", name},
                        {"dtype", str(tensor.scalar_type())},
                        {"sizes", list(tensor.sizes())},
                        {"strides", list(tensor.strides())},
                        {"loop_dtype", str(operand.dtype)},
                        {"loop_strides", list(operand.strides)}});
  };
  add("result", iterator.output());
  add("counts", counts);
  add("weights", weights);
  return {{"operands", operands}, {"shape", list(iterator.shape())}, {"runs", runs}};
}

}  // namespace rush::diagrams
