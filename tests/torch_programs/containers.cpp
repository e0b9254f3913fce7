// AnyModule, and the containers of modules and of parameters.
#include <torch/torch.h>

#include <iostream>

#include "show.h"

namespace nn = torch::nn;

namespace mine {

struct SumImpl : nn::Module {
  int forward(int a, int b = 2, double c = 3.5) { return a + b + static_cast<int>(2 * c); }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(2)}, {2, torch::nn::AnyValue(3.5)})
};
TORCH_MODULE(Sum);

struct ScaleImpl : nn::Module {
  explicit ScaleImpl(double factor) : factor(factor) {}
  torch::Tensor forward(torch::Tensor x) { return x * factor; }
  double factor;
};
TORCH_MODULE(Scale);

struct CountImpl : nn::Cloneable<CountImpl> {
  void reset() override { weight = register_parameter("weight", torch::ones({2})); }
  int forward(const std::string& text, bool twice) { return static_cast<int>(text.size()) * (twice ? 2 : 1); }
  torch::Tensor weight;
};

}  // namespace mine

static void any_modules() {
  nn::AnyModule any;
  std::cout << any.is_empty() << "\n";
  any = nn::AnyModule(mine::Scale(2.0));
  show("scaled", any.forward(wave({2, 2}, 0.3)));
  show("value", any.any_forward(torch::ones({2})).get<torch::Tensor>());
  std::cout << any.get<mine::Scale>()->factor << any.get<mine::ScaleImpl>().factor << any.ptr<mine::ScaleImpl>()->factor
            << any.ptr()->name() << (any.type_info() == typeid(mine::ScaleImpl)) << "\n";
  any.get<mine::ScaleImpl>().factor = 3;
  show("scaled again", any.forward(torch::ones({2})));

  any = std::make_shared<mine::SumImpl>();
  std::cout << any.forward<int>(1) << " " << any.forward<int>(1, 1) << " " << any.forward<int>(1, 1, 1.0) << " "
            << any.forward<int>(torch::nn::AnyValue(5)) << "\n";
  nn::AnyModule count(std::make_shared<mine::CountImpl>());
  std::cout << count.forward<int>(std::string("four"), true) << "\n";
  nn::AnyModule copy = count;
  std::cout << (copy.ptr() == count.ptr()) << "\n";
  for (const auto& wrong : {0, 1, 2, 3}) {
    try {
      if (wrong == 0) count.forward<int>(std::string("one argument"));
      if (wrong == 1) count.forward<int>(1, true);
      if (wrong == 2) count.forward<double>(std::string("x"), true);
      if (wrong == 3) count.get<mine::ScaleImpl>();
      std::cout << "nothing thrown\n";
    } catch (const c10::Error&) {
      std::cout << "thrown " << wrong << "\n";
    }
  }
  torch::nn::AnyValue value(std::string("text"));
  std::cout << value.get<std::string>() << (value.try_get<int>() == nullptr) << *value.try_get<std::string>()
            << (value.type_info() == typeid(std::string)) << "\n";
}

static void module_dicts() {
  nn::ModuleDict dict;
  std::cout << dict->empty() << dict->size() << "\n";
  torch::OrderedDict<std::string, std::shared_ptr<nn::Module>> modules = {
      {"linear", nn::Linear(3, 4).ptr()},
      {"relu", nn::ReLU().ptr()},
  };
  dict->update(modules);
  std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>> pairs = {{"relu", nn::Tanh().ptr()},
                                                                            {"last", nn::GELU().ptr()}};
  dict->update(pairs);
  for (const auto& item : *dict) std::cout << item.key() << ": " << *item.value() << "\n";
  for (const auto& item : dict->items()) std::cout << item.first << " ";
  for (const auto& key : dict->keys()) std::cout << key << " ";
  std::cout << dict->values().size() << dict->contains("relu") << dict->contains("gelu") << "\n";
  std::cout << dict->at<nn::LinearImpl>("linear").weight.sizes() << dict[std::string("linear")]->name() << "\n";
  std::cout << dict->pop("linear")->name() << dict->size() << "\n";
  nn::ModuleDict other(pairs);
  other->update(*dict);
  std::cout << other << dict->clone()->children().size() << "\n";
  dict->clear();
  std::cout << dict->size() << "\n";
}

static void parameter_containers() {
  nn::ParameterList list(torch::ones({2}), torch::zeros({3}).requires_grad_());
  list->append(torch::full({1}, 7.0));
  list->extend(std::vector<torch::Tensor>{torch::ones({4})});
  for (const auto& item : *list) std::cout << item.key() << item.value().sizes() << item.value().requires_grad() << " ";
  std::cout << list->size() << list->is_empty() << list->at(2).item<float>() << list[1].sizes() << "\n";

  nn::ParameterDict dict;
  std::cout << dict->empty() << "\n";
  dict->insert("a", torch::ones({2}));
  dict->insert("b", torch::ones({3}).requires_grad_());
  torch::OrderedDict<std::string, torch::Tensor> more = {{"b", torch::zeros({4})}};
  dict->update(more);
  for (const auto& item : *dict) std::cout << item.key() << item.value().sizes() << item.value().requires_grad() << " ";
  std::cout << dict->size() << dict->contains("a") << dict->get("b").sizes() << dict["a"].sizes() << "\n";
  std::cout << dict->pop("a").sizes() << dict->keys()[0] << dict->values().size() << "\n";
  nn::ParameterDict copy(more);
  std::cout << copy << "\n";
  dict->clear();
  std::cout << dict->size() << "\n";
}

static void lists() {
  nn::ModuleList list(nn::Linear(2, 3), mine::Scale(0.5));
  list->push_back(nn::ReLU());
  list->extend(*nn::ModuleList(nn::Sigmoid()));
  std::cout << list << list->size() << list->is_empty() << list[0]->name() << list->at<nn::LinearImpl>(0).bias.sizes()
            << list->ptr<mine::ScaleImpl>(1)->factor << "\n";
  nn::Sequential sequential(nn::Linear(2, 3), nn::ReLU());
  sequential->push_back("named", nn::Linear(3, 1));
  std::cout << sequential << sequential->size() << sequential->at<nn::LinearImpl>(0).weight.sizes()
            << sequential->ptr<nn::LinearImpl>(2)->weight.sizes() << sequential[1]->name() << "\n";
}

static void expanding_arrays() {
  torch::ExpandingArray<2> pair(3), other({3, 4});
  std::cout << pair << other << (*pair)[0] << pair->at(1) << other.size() << "\n";
  const torch::ExpandingArray<3> from_vector(std::vector<int64_t>{1, 2, 3});
  std::cout << from_vector << torch::ExpandingArray<1>(5) << torch::IntArrayRef(from_vector).size() << "\n";
  torch::ExpandingArrayWithOptionalElem<2> optional({5, std::nullopt});
  std::cout << optional << (*optional)[1].has_value() << optional->at(0).value() << "\n";
  const auto options = nn::Conv2dOptions(1, 2, 3).stride(2).padding(1);
  std::cout << options.stride() << options.kernel_size() << options.bias() << options.groups() << "\n";
  nn::LSTM lstm(nn::LSTMOptions(3, 4).num_layers(2));
  nn::RNN rnn(3, 4);
  std::cout << lstm->options.hidden_size() << lstm->options_base.num_layers() << lstm->options_base.input_size()
            << lstm->options_base.bidirectional() << rnn->options_base.hidden_size() << "\n";
}

int main() {
  std::cout << std::boolalpha;
  any_modules();
  module_dicts();
  parameter_containers();
  lists();
  expanding_arrays();
  return 0;
}
