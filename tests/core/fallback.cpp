// One function that serves a dispatch key for every operator.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/dispatch/registry.h"
#include "rushlight.h"

using namespace rush;

namespace {

std::map<std::string_view, int> calls;

DispatchKey key() {
  static const DispatchKey taken = registry().take_key("Counter");
  return taken;
}

// Counts what a program calls, not what that calls in turn.
void count_whole(const OpBase& op, KeySet keys, Stack& stack) {
  CHECK(keys.has(key()));
  ++calls[op.name()];
  const DispatchStateGuard once{KeySet(key())};
  op.call_boxed(stack);
}

// Counts those, too.
void count_each(const OpBase& op, KeySet, Stack& stack) {
  ++calls[op.name()];
  op.call_boxed(stack, key());
}

std::vector<std::string> stops;

// Writes down where a call stops next.
void note_stop(const OpBase& op, KeySet keys, Stack& stack) {
  stops.push_back(str(op.name(), " -> ", name(op.served_by(keys.without(DispatchKey::Profiler)))));
  op.call_boxed(stack, stops_behind(keys) | DispatchKey::Profiler);
}

}  // namespace

TEST_CASE("a fallback sees every operator that a program calls, with the same results") {
  registry().fallback(key(), count_whole);
  calls.clear();
  const Tensor x = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}), w = tensor({{0.5f, -1.0f}, {2.0f, 1.0f}}).requires_grad_();
  const auto loss = [&] {
    Tensor hidden = ops::linear(x, w, std::nullopt).sin();
    hidden.mul_(2);
    const auto [largest, at] = hidden.max(1);
    return hidden.split(1)[0].sum() + largest.mean() + hidden.masked_fill(at.eq(0).unsqueeze(1), 0.5).sum();
  };
  const Tensor expected = loss();
  CHECK(calls.empty());
  expected.backward();
  const Tensor expected_grad = w.grad().clone();
  w.mutable_grad() = Tensor();
  {
    const IncludeDispatchKeyGuard counting(key());
    const Tensor counted = loss();
    CHECK(calls["aten::linear"] == 1);
    CHECK(calls["aten::t"] == 0);  // which linear calls
    CHECK(calls["aten::mul_.Tensor"] == 1);
    CHECK(calls["aten::max.dim"] == 1);
    CHECK(calls["aten::split.Tensor"] == 1);
    CHECK(calls["aten::masked_fill.Scalar"] == 1);
    CHECK(equal(counted, expected));
    calls.clear();
    counted.backward();
    CHECK(calls["aten::mm"] + calls["aten::matmul"] >= 1);
  }
  CHECK(equal(w.grad(), expected_grad));
  calls.clear();
  loss();
  CHECK(calls.empty());
}

TEST_CASE("a fallback sees composite operators whole, or what they are made of") {
  registry().fallback(key(), count_each);
  const Tensor x = ones({2, 3}), y = ones({4, 3});
  const IncludeDispatchKeyGuard counting(key());
  CHECK_FALSE(ops::cdist.is_composite());
  CHECK(ops::tensordot.is_composite());
  CHECK_FALSE(ops::add.is_composite());
  calls.clear();
  tensordot(x, y, IntArrayRef({1}), IntArrayRef({1}));
  CHECK(calls["aten::tensordot"] == 1);
  CHECK(calls["aten::mm"] == 1);
  registry().fallthrough(ops::tensordot, key());
  calls.clear();
  tensordot(x, y, IntArrayRef({1}), IntArrayRef({1}));
  CHECK(calls["aten::tensordot"] == 0);
  CHECK(calls["aten::mm"] == 1);
}

TEST_CASE("a call that a fallback passes on does not come back to it from the kernels of other keys") {
  registry().fallback(key(), count_each);
  const Tensor x = ones({2, 3}).requires_grad_(), w = ones({4, 3});
  const autocast::Autocast lower(kCPU);
  const IncludeDispatchKeyGuard counting(key());
  calls.clear();
  mm(x, w.t()).sum().backward();
  CHECK(calls["aten::mm"] == 2);  // forward, and the gradient by x
  CHECK(calls["aten::sum"] == 1);
}

TEST_CASE("the fallback of a watching key sees every stop of a call, also those at other fallbacks") {
  const BoxedFallback before = registry().fallback_of(DispatchKey::Profiler);
  registry().fallback(DispatchKey::Profiler, note_stop);
  registry().fallback(key(), count_each);
  const Tensor x = ones({2}).requires_grad_(), y = ones({2});
  stops.clear();
  watching |= DispatchKey::Profiler;
  {
    const IncludeDispatchKeyGuard counting(key());
    x.mul(y);
  }
  watching = watching.without(DispatchKey::Profiler);
  CHECK(stops == std::vector<std::string>{"aten::mul.Tensor -> Counter", "aten::mul.Tensor -> Autograd",
                                          "aten::mul.Tensor -> Dense"});
  x.mul(y);
  CHECK(stops.size() == 3);
  if (before) registry().fallback(DispatchKey::Profiler, before);
}

TEST_CASE("a fallback that watches once sees the first stop of a call, and what its kernels call in turn") {
  const BoxedFallback before = registry().fallback_of(DispatchKey::Profiler);
  registry().fallback(DispatchKey::Profiler, note_stop);
  const Tensor x = ones({2}).requires_grad_(), y = ones({2}).requires_grad_();
  stops.clear();
  watching |= DispatchKey::Profiler;
  watching_once |= DispatchKey::Profiler;
  x.mul(y);
  tensordot(x, y, IntArrayRef({0}), IntArrayRef({0}));
  watching = watching.without(DispatchKey::Profiler);
  watching_once = watching_once.without(DispatchKey::Profiler);
  const auto count = [](std::string_view stop) { return std::count(stops.begin(), stops.end(), stop); };
  CHECK(stops.at(0) == "aten::mul.Tensor -> Autograd");
  CHECK(count("aten::mul.Tensor -> Dense") == 0);
  CHECK(count("aten::tensordot -> Autograd") == 1);
  CHECK(count("aten::mm -> Autograd") == 1);
  CHECK(count("aten::mm -> Dense") == 0);
  if (before) registry().fallback(DispatchKey::Profiler, before);
}

TEST_CASE("a fallback is a function, and only what it serves passes by it") {
  CHECK_THROWS_AS(registry().fallback(key(), nullptr), ValueError);
  CHECK_THROWS_AS(registry().fallthrough(ops::add, DispatchKey::Sparse), ValueError);
  registry().fallback(key(), count_whole);
  CHECK(std::string(ops::add.registered_at(key()).file_name()).ends_with("tests/core/fallback.cpp"));
}

TEST_CASE("free keys have the names that programs give them, and there are four") {
  CHECK(std::string(name(key())) == "Counter");
  CHECK(str(keys_on(kCPU) | key()) == "[Counter, Dense, cpu]");
  int left = 0;
  try {
    for (;; ++left) registry().take_key("another");
  } catch (const ValueError& error) {
    CHECK(std::string(error.what()).find("another") != std::string::npos);
  }
  CHECK(left == 3);
}
