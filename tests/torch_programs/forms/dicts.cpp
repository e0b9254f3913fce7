// c10::Dict, and files of tensors by name; holders of modules that derive in private, and of what is no module.
#include <torch/torch.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "../show.h"

struct HiddenImpl : private torch::nn::Module {
  HiddenImpl() { register_parameter("weight", torch::full({2}, 3.0)); }
  torch::Tensor forward(const torch::Tensor& x) { return x * named_parameters()["weight"]; }
};
TORCH_MODULE(Hidden);

struct RowsImpl : torch::data::Dataset<RowsImpl> {
  explicit RowsImpl(torch::Tensor rows) : rows(std::move(rows)) {}
  torch::data::Example<> get(size_t index) override {
    return {rows[static_cast<int64_t>(index)], torch::tensor(static_cast<int64_t>(index))};
  }
  std::optional<size_t> size() const override { return rows.size(0); }
  torch::Tensor rows;
};
TORCH_MODULE(Rows);

static_assert(std::is_same_v<at::scalar_value_type<c10::complex<float>>::type, float>);
static_assert(std::is_same_v<c10::scalar_value_type<c10::Half>::type, c10::Half>);

static void shared_entries() {
  c10::Dict<std::string, torch::Tensor> dict;
  dict.insert("fc.weight", torch::ones({2}));
  dict.insert("fc.bias", torch::zeros({1}));
  const auto same = dict;
  std::cout << same.insert("fc.bias", torch::ones({1})).second << same.size() << dict.contains("none") << "\n";
  same.insert_or_assign("fc.bias", torch::full({1}, 5.0));
  show("assigned", dict.at("fc.bias"));
  const auto copy = dict.copy();
  std::cout << dict.erase("fc.weight") << "\n";
  std::cout << dict.size() << copy.size() << (dict.find("fc.weight") == dict.end()) << copy.empty() << same.is(dict)
            << copy.is(dict) << "\n";
  for (const auto& entry : copy) std::cout << entry.key() << entry.value().sizes() << "\n";
}

// As programs load the weights that a Python program saved.
static void weights_by_name() {
  torch::nn::Linear source(2, 1), net(2, 1);
  fill_parameters(*source);
  c10::Dict<std::string, torch::Tensor> dict;
  for (const auto& parameter : source->named_parameters()) dict.insert(parameter.key(), parameter.value().detach());
  const std::vector<char> bytes = torch::pickle_save(dict);
  const c10::Dict<c10::IValue, c10::IValue> weights = torch::pickle_load(bytes).toGenericDict();
  net->to(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto parameters = net->named_parameters();
  for (const auto& entry : weights) {
    const std::string name = entry.key().toStringRef();
    const torch::Tensor value = entry.value().toTensor();
    if (torch::Tensor* found = parameters.find(name)) found->copy_(value);
    std::cout << name << value.sizes() << "\n";
  }
  std::cout << net->weight.equal(source->weight) << net->bias.equal(source->bias) << "\n";
  const c10::impl::GenericDict again(weights);
  const c10::IValue value(again);
  std::cout << value.isGenericDict() << value.isNone() << value.toGenericDict().contains("bias") << "\n";
}

static void holders() {
  Hidden hidden;
  show("hidden", hidden(torch::ones({2})) + hidden->forward(torch::ones({2})));
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Rows(torch::arange(6.0).view({3, 2}))->map(torch::data::transforms::Stack<>()), 2);
  for (const auto& batch : *loader) show("rows", batch.data);
}

static void optional_indices() {
  const std::optional<torch::Tensor> rows = torch::tensor({1, 0}), none;
  const torch::Tensor x = torch::arange(6).view({3, 2});
  show("rows", x.index({rows}));
  show("columns", x.index({none, rows}));
  show("distinct", std::get<0>(torch::_unique(torch::tensor({3, 1, 3}))));
}

int main() {
  shared_entries();
  weights_by_name();
  holders();
  optional_indices();
}
