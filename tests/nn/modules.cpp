// Every module against PyTorch's numbers: names and shapes of parameters, outputs, gradients, changes of buffers.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "rushlight.h"
#include "tests/fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using json = nlohmann::json;

using Outputs = std::vector<Tensor>;

void flatten_into(Outputs& all, const Tensor& output) { all.push_back(output); }
template <class... T>
void flatten_into(Outputs& all, const std::tuple<T...>& outputs) {
  std::apply([&](const auto&... each) { (flatten_into(all, each), ...); }, outputs);
}

// A module and how to call it.
struct Subject {
  std::shared_ptr<Module> module;
  std::function<Outputs(const Outputs& inputs)> forward;

  template <class Impl>
  Subject(const ModuleHolder<Impl>& holder)
      : module(holder.ptr()), forward([impl = holder.ptr()](const Outputs& inputs) {
          Outputs all;
          if constexpr (requires { impl->forward(inputs[0], inputs[1]); }) {
            flatten_into(all, impl->forward(inputs[0], inputs[1]));
          } else {
            flatten_into(all, impl->forward(inputs[0]));
          }
          return all;
        }) {}
};

Subject evaluated(const Subject& subject) {
  subject.module->eval();
  return subject;
}

Tensor from_json(const json& fixture, bool integers = false) {
  if (integers)
    return tensor(ArrayRef<int64_t>(fixture["data"].get<std::vector<int64_t>>()))
        .view(fixture["shape"].get<std::vector<int64_t>>());
  const auto data = fixture["data"].get<std::vector<double>>();
  return tensor(ArrayRef<double>(data), kFloat64).view(fixture["shape"].get<std::vector<int64_t>>());
}

void check_close(const Tensor& got, const json& expected) {
  REQUIRE(got.defined() == !expected.is_null());
  if (expected.is_null()) return;
  const auto shape = expected["shape"].get<std::vector<int64_t>>();
  REQUIRE(got.sizes() == IntArrayRef(shape));
  const Tensor flat = got.detach().reshape(-1).to(kFloat64);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double value = flat[i].item<double>(), should = expected["data"][static_cast<size_t>(i)];
    CHECK_MESSAGE(std::abs(value - should) <= 1e-8 * (1 + std::abs(should)), "element ", i, ": ", value, " instead of ",
                  should);
  }
}

// All parameters and buffers by name.
OrderedDict<std::string, Tensor> state_of(const Module& module) {
  OrderedDict<std::string, Tensor> state = module.named_parameters();
  state.update(module.named_buffers());
  return state;
}

void load_state(const Module& module, const json& state) {
  const NoGradGuard no_grad;
  const auto own = state_of(module);
  REQUIRE(own.size() == state.size());
  for (const auto& item : own) {
    CAPTURE(item.key());
    REQUIRE(state.contains(item.key()));
    const json& value = state[item.key()];
    REQUIRE(item->sizes() == IntArrayRef(value["shape"].get<std::vector<int64_t>>()));
    item->copy_(from_json(value));
  }
}

void check_subject(const Subject& subject, const json& fixture) {
  subject.module->to(kFloat64);
  load_state(*subject.module, fixture["state"]);
  CHECK(subject.module->named_parameters().keys() == fixture["parameters"].get<std::vector<std::string>>());

  Outputs inputs;
  for (const json& input : fixture["inputs"]) {
    const bool integers = input["data"][0].is_number_integer();
    inputs.push_back(from_json(input, integers));
    if (!integers) inputs.back().requires_grad_();
  }
  const Outputs outputs = subject.forward(inputs);
  REQUIRE(outputs.size() == fixture["outputs"].size());
  Tensor loss = zeros({}, kFloat64);
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_close(outputs[i], fixture["outputs"][i]);
    std::vector<double> wave;
    for (int64_t k = 1; k <= outputs[i].numel(); ++k) wave.push_back(std::sin(static_cast<double>(k)));
    loss = loss + (outputs[i] * tensor(ArrayRef<double>(wave), kFloat64).view(outputs[i].sizes())).sum();
  }
  loss.backward();
  for (size_t i = 0; i < inputs.size(); ++i) check_close(inputs[i].grad(), fixture["input_grads"][i]);
  for (const auto& parameter : subject.module->named_parameters()) {
    CAPTURE(parameter.key());
    check_close(parameter->grad(), fixture["grads"][parameter.key()]);
  }
  const auto state = state_of(*subject.module);
  for (const auto& item : state) {
    CAPTURE(item.key());
    const json& changed = fixture["changed_state"];
    check_close(item.value(), changed.contains(item.key()) ? changed[item.key()] : fixture["state"][item.key()]);
  }
}

Tensor loss_weight(const json& fixture, const char* name) { return from_json(fixture["state"][name]); }

using Make = std::function<Subject(const json& fixture)>;

// The cases of make_fixtures.py.
const std::map<std::string, Make> kCases = {
    {"Linear(4, 3)", [](auto&) { return Linear(4, 3); }},
    {"Linear(4, 3) without bias", [](auto&) { return Linear(LinearOptions(4, 3).bias(false)); }},
    {"Bilinear(2, 3, 4)", [](auto&) { return Bilinear(2, 3, 4); }},
    {"Flatten", [](auto&) { return Flatten(); }},
    {"Unflatten",
     [](auto&) {
       return Unflatten(1, std::vector<int64_t>{2, 3});
     }},
    {"Conv1d", [](auto&) { return Conv1d(Conv1dOptions(2, 4, 3).stride(2).padding(1)); }},
    {"Conv2d",
     [](auto&) {
       return Conv2d(Conv2dOptions(4, 6, {3, 2}).stride({2, 1}).padding({1, 0}).dilation({1, 2}).groups(2));
     }},
    {"Conv2d unbatched", [](auto&) { return Conv2d(1, 2, 3); }},
    {"Conv2d same",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 2, {3, 4}).padding(kSame).dilation(2).bias(false));
     }},
    {"Conv2d valid", [](auto&) { return Conv2d(Conv2dOptions(1, 2, 2).padding(kValid)); }},
    {"Conv2d reflect",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 2, 3).padding({2, 1}).padding_mode(kReflect));
     }},
    {"Conv1d replicate", [](auto&) { return Conv1d(Conv1dOptions(1, 2, 3).padding(3).padding_mode(kReplicate)); }},
    {"Conv2d circular same",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 1, {2, 3}).padding(kSame).padding_mode(kCircular));
     }},
    {"Conv3d", [](auto&) { return Conv3d(1, 2, 2); }},
    {"BatchNorm1d(3)", [](auto&) { return BatchNorm1d(3); }},
    {"BatchNorm1d(3) of sequences", [](auto&) { return BatchNorm1d(3); }},
    {"BatchNorm2d(2) cumulative", [](auto&) { return BatchNorm2d(BatchNorm2dOptions(2).momentum(std::nullopt)); }},
    {"BatchNorm2d(2) evaluated", [](auto&) { return evaluated(BatchNorm2d(2)); }},
    {"BatchNorm2d(2) untracked",
     [](auto&) { return BatchNorm2d(BatchNorm2dOptions(2).track_running_stats(false).affine(false)); }},
    {"BatchNorm3d(1)", [](auto&) { return BatchNorm3d(BatchNorm3dOptions(1).eps(0.1).momentum(0.5)); }},
    {"LayerNorm({3, 4})",
     [](auto&) {
       return LayerNorm(LayerNormOptions({3, 4}));
     }},
    {"LayerNorm({4}) without bias", [](auto&) { return LayerNorm(LayerNormOptions({4}).bias(false).eps(0.1)); }},
    {"GroupNorm(2, 4)", [](auto&) { return GroupNorm(2, 4); }},
    {"RMSNorm({4})", [](auto&) { return RMSNorm(RMSNormOptions({4})); }},
    {"Embedding(5, 3)", [](auto&) { return Embedding(EmbeddingOptions(5, 3).padding_idx(-4)); }},
    {"Embedding(5, 3) limited", [](auto&) { return Embedding(EmbeddingOptions(5, 3).max_norm(1.0)); }},
    {"LSTM(3, 4)", [](auto&) { return LSTM(3, 4); }},
    {"LSTM(3, 2) of all kinds",
     [](auto&) { return LSTM(LSTMOptions(3, 2).num_layers(2).bidirectional(true).batch_first(true)); }},
    {"LSTM(3, 2) unbatched", [](auto&) { return LSTM(LSTMOptions(3, 2).bias(false)); }},
    {"LSTMCell(3, 2)", [](auto&) { return LSTMCell(3, 2); }},
    {"MaxPool1d", [](auto&) { return MaxPool1d(MaxPool1dOptions(3).stride(2).padding(1)); }},
    {"MaxPool2d",
     [](auto&) {
       return MaxPool2d(MaxPool2dOptions({2, 3}).stride({2, 1}).padding({0, 1}).ceil_mode(true));
     }},
    {"MaxPool3d", [](auto&) { return MaxPool3d(2); }},
    {"AvgPool1d", [](auto&) { return AvgPool1d(AvgPool1dOptions(2).padding(1)); }},
    {"AvgPool2d", [](auto&) { return AvgPool2d(AvgPool2dOptions(3).stride(2).padding(1).count_include_pad(false)); }},
    {"AvgPool3d", [](auto&) { return AvgPool3d(AvgPool3dOptions(2).divisor_override(3)); }},
    {"AdaptiveAvgPool1d", [](auto&) { return AdaptiveAvgPool1d(3); }},
    {"AdaptiveAvgPool2d",
     [](auto&) {
       return AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({2, std::nullopt}));
     }},
    {"AdaptiveAvgPool3d", [](auto&) { return AdaptiveAvgPool3d(1); }},
    {"ReLU", [](auto&) { return ReLU(); }},
    {"ReLU6", [](auto&) { return ReLU6(); }},
    {"ELU", [](auto&) { return ELU(ELUOptions().alpha(0.7)); }},
    {"SELU", [](auto&) { return SELU(); }},
    {"CELU", [](auto&) { return CELU(CELUOptions().alpha(1.5)); }},
    {"LeakyReLU", [](auto&) { return LeakyReLU(LeakyReLUOptions().negative_slope(0.2)); }},
    {"GELU", [](auto&) { return GELU(); }},
    {"GELU tanh", [](auto&) { return GELU(GELUOptions().approximate("tanh")); }},
    {"SiLU", [](auto&) { return SiLU(); }},
    {"Mish", [](auto&) { return Mish(); }},
    {"Hardswish", [](auto&) { return Hardswish(); }},
    {"Hardsigmoid", [](auto&) { return Hardsigmoid(); }},
    {"Hardtanh", [](auto&) { return Hardtanh(HardtanhOptions().min_val(-0.5).max_val(0.8)); }},
    {"Softplus", [](auto&) { return Softplus(SoftplusOptions().beta(2).threshold(1)); }},
    {"GLU", [](auto&) { return GLU(1); }},
    {"Sigmoid", [](auto&) { return Sigmoid(); }},
    {"Tanh", [](auto&) { return Tanh(); }},
    {"LogSigmoid", [](auto&) { return LogSigmoid(); }},
    {"Softsign", [](auto&) { return Softsign(); }},
    {"Tanhshrink", [](auto&) { return Tanhshrink(); }},
    {"Softmax", [](auto&) { return Softmax(1); }},
    {"Softmin", [](auto&) { return Softmin(0); }},
    {"LogSoftmax", [](auto&) { return LogSoftmax(-1); }},
    {"CrossEntropyLoss", [](auto&) { return CrossEntropyLoss(); }},
    {"CrossEntropyLoss weighted",
     [](auto& fixture) {
       return CrossEntropyLoss(CrossEntropyLossOptions()
                                   .weight(loss_weight(fixture, "weight"))
                                   .ignore_index(2)
                                   .label_smoothing(0.1)
                                   .reduction(kSum));
     }},
    {"CrossEntropyLoss of probabilities", [](auto&) { return CrossEntropyLoss(); }},
    {"NLLLoss",
     [](auto& fixture) { return NLLLoss(NLLLossOptions().weight(loss_weight(fixture, "weight")).reduction(kNone)); }},
    {"MSELoss", [](auto&) { return MSELoss(); }},
    {"L1Loss", [](auto&) { return L1Loss(L1LossOptions(kSum)); }},
    {"SmoothL1Loss", [](auto&) { return SmoothL1Loss(SmoothL1LossOptions().beta(0.5)); }},
    {"HuberLoss", [](auto&) { return HuberLoss(HuberLossOptions().delta(0.6)); }},
    {"BCELoss", [](auto& fixture) { return BCELoss(BCELossOptions().weight(loss_weight(fixture, "weight"))); }},
    {"BCEWithLogitsLoss",
     [](auto& fixture) {
       return BCEWithLogitsLoss(BCEWithLogitsLossOptions().pos_weight(loss_weight(fixture, "pos_weight")));
     }},
    {"KLDivLoss", [](auto&) { return KLDivLoss(KLDivLossOptions(kBatchMean)); }},
};

TEST_CASE("modules have PyTorch's parameters, outputs and gradients") {
  const json fixtures = read_fixtures("nn/fixtures.json");
  CHECK(fixtures.size() == kCases.size());
  for (const auto& [name, make] : kCases) {
    CAPTURE(name);
    REQUIRE(fixtures.contains(name));
    try {
      check_subject(make(fixtures[name]), fixtures[name]);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("a clone computes the same, and shares nothing") {
  const json fixtures = read_fixtures("nn/fixtures.json");
  for (const auto& [name, make] : kCases) {
    CAPTURE(name);
    const auto original = make(fixtures[name]).module;
    const auto clone = original->clone();
    CHECK(clone->name() == original->name());
    CHECK(clone->is_training() == original->is_training());
    const auto a = state_of(*original), b = state_of(*clone);
    REQUIRE(a.keys() == b.keys());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(!a[i]->is_same(b[i].value()));
      CHECK(!a[i]->is_alias_of(b[i].value()));
      CHECK(a[i]->requires_grad() == b[i]->requires_grad());
      CHECK((a[i].value() - b[i].value()).abs().sum().item<double>() == 0);
    }
  }
}

}  // namespace
