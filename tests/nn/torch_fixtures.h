// Modules against the numbers of PyTorch's that torch_fixtures.py wrote: names and shapes of parameters, outputs,
// gradients, changes of buffers; and against their own clones.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rushlight.h"
#include "tests/fixtures.h"

namespace rush_tests {

using namespace rush;
using nn::Module;
using json = nlohmann::json;

using Outputs = std::vector<Tensor>;

inline void flatten_into(Outputs& all, const Tensor& output) {
  if (output.defined()) all.push_back(output);
}
inline void flatten_into(Outputs& all, const nn::utils::rnn::PackedSequence& output) { all.push_back(output.data()); }
template <class... T>
void flatten_into(Outputs& all, const std::tuple<T...>& outputs) {
  std::apply([&](const auto&... each) { (flatten_into(all, each), ...); }, outputs);
}

// All tensors that a module returned.
template <class Output>
Outputs flattened(const Output& output) {
  Outputs all;
  flatten_into(all, output);
  return all;
}

// A module and how to call it.
struct Subject {
  std::shared_ptr<Module> module;
  std::function<Outputs(const Outputs& inputs)> forward;

  template <class Impl>
  Subject(const nn::ModuleHolder<Impl>& holder)
      : module(holder.ptr()), forward([impl = holder.ptr()](const Outputs& inputs) -> Outputs {
          if constexpr (requires { impl->forward(inputs[0]); }) {
            if (inputs.size() == 1) return flattened(impl->forward(inputs[0]));
          }
          if constexpr (requires { impl->forward(inputs[0], inputs[1]); }) {
            if (inputs.size() == 2) return flattened(impl->forward(inputs[0], inputs[1]));
          }
          if constexpr (requires { impl->forward(inputs[0], inputs[1], inputs[2]); }) {
            if (inputs.size() == 3) return flattened(impl->forward(inputs[0], inputs[1], inputs[2]));
          }
          FAIL("forward does not take ", inputs.size(), " inputs");
          return Outputs();
        }) {}
  // `call` takes the module and its inputs, and returns tensors, alone or in tuples.
  template <class Impl, class Call>
  Subject(const nn::ModuleHolder<Impl>& holder, Call call)
      : module(holder.ptr()),
        forward([impl = holder.ptr(), call](const Outputs& inputs) { return flattened(call(*impl, inputs)); }) {}
};

inline Subject evaluated(const Subject& subject) {
  subject.module->eval();
  return subject;
}

inline Tensor from_json(const json& fixture, bool integers = false) {
  if (integers)
    return tensor(ArrayRef<int64_t>(fixture["data"].get<std::vector<int64_t>>()))
        .view(fixture["shape"].get<std::vector<int64_t>>());
  const auto data = fixture["data"].get<std::vector<double>>();
  return tensor(ArrayRef<double>(data), kFloat64).view(fixture["shape"].get<std::vector<int64_t>>());
}

inline void check_close(const Tensor& got, const json& expected) {
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
inline OrderedDict<std::string, Tensor> state_of(const Module& module) {
  OrderedDict<std::string, Tensor> state = module.named_parameters();
  state.update(module.named_buffers());
  return state;
}

inline void load_state(const Module& module, const json& state) {
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

inline void check_subject(const Subject& subject, const json& fixture) {
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

using Make = std::function<Subject(const json& fixture)>;
using FixtureCases = std::map<std::string, Make>;

// Every case of the file has the numbers that stand there, and every case that stands there is one.
inline void check_fixtures(const char* file, const FixtureCases& cases) {
  const json fixtures = read_fixtures(file);
  CHECK(fixtures.size() == cases.size());
  for (const auto& [name, make] : cases) {
    CAPTURE(name);
    REQUIRE(fixtures.contains(name));
    try {
      check_subject(make(fixtures[name]), fixtures[name]);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

// A clone has the same state and computes the same from it, but shares nothing.
inline void check_clones(const char* file, const FixtureCases& cases) {
  const json fixtures = read_fixtures(file);
  for (const auto& [name, make] : cases) {
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

// What a module or its holder prints.
template <class M>
std::string printed(const M& module) {
  std::ostringstream stream;
  stream << module;
  return stream.str();
}

}  // namespace rush_tests
