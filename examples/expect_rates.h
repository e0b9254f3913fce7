#pragma once

#include <string>
#include <vector>

#include "optim/state/checkpoint.h"

namespace examples {

/// Has `run` keep the rates and lengths of a transformer's training, by the names of their options. Where the run goes
/// on with others, they count from there on: see Checkpoint::expect for `changes`.
template <class Settings>
void expect_rates(rush::Checkpoint& run, const Settings& s, std::vector<std::string>* changes) {
  const auto expect = [&](const char* name, const auto& value) { run.expect(name, rush::str(value), changes); };
  expect("max_iters", s.max_iters);
  expect("warmup_iters", s.warmup_iters);
  expect("learning_rate", s.learning_rate);
  expect("min_lr", s.min_lr);
  expect("weight_decay", s.weight_decay);
  expect("beta1", s.beta1);
  expect("beta2", s.beta2);
  expect("grad_clip", s.grad_clip);
  expect("eval_interval", s.eval_interval);
  expect("eval_iters", s.eval_iters);
}

}  // namespace examples
