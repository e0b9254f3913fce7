// A key that counts the calls of every operator and the bytes that they are given, the optimiser's steps included.
#include <cstdio>
#include <map>
#include <string>

#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"
#include "rushlight.h"

struct Count {
  int calls = 0;
  size_t bytes = 0;
};
std::map<std::string, Count, std::less<>> counts;
rush::DispatchKey key;

void count(const rush::OpBase& op, rush::KeySet, rush::Stack& stack) {
  Count& counted = counts[std::string(op.name())];
  ++counted.calls;
  const auto add = [&](const rush::Tensor& t) { counted.bytes += t.defined() ? t.nbytes() : 0; };
  for (const rush::Value& value : stack) {
    if (value.is<rush::Tensor>()) add(value.as<rush::Tensor>());
    if (value.is<std::vector<rush::Tensor>>()) std::ranges::for_each(value.as<std::vector<rush::Tensor>>(), add);
  }
  op.call_boxed(stack, key);
}

int main() {
  key = rush::registry().take_key("Counter");
  rush::registry().fallback(key, count);
  rush::nn::Linear net(4, 2);
  rush::optim::SGD sgd(net->parameters(), 0.1);
  const rush::IncludeDispatchKeyGuard counting(key);
  net(rush::ones({8, 4})).sum().backward();
  sgd.step();
  for (const auto& [name, count] : counts)
    std::printf("%4d x %-32s %8zu bytes\n", count.calls, name.c_str(), count.bytes);
  const Count& step = counts["rush::sgd_step_"];  // 8 weights and 2 biases, each with its gradient
  return step.calls == 1 && step.bytes == 80 && counts["aten::linear"].calls == 1 ? 0 : 1;
}
