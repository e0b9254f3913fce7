#pragma once
#include <cstdint>

#include "nn/arg.h"

namespace rush::nn {

struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSH_ARG(int64_t, input_size);
  RUSH_ARG(int64_t, hidden_size);
  RUSH_ARG(int64_t, num_layers) = 1;
  RUSH_ARG(bool, bias) = true;
  // Inputs and outputs are (batch, time, feature) instead of (time, batch, feature).
  RUSH_ARG(bool, batch_first) = false;
  // Between layers, while training.
  RUSH_ARG(double, dropout) = 0.0;
  RUSH_ARG(bool, bidirectional) = false;
};

struct LSTMCellOptions {
  LSTMCellOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSH_ARG(int64_t, input_size);
  RUSH_ARG(int64_t, hidden_size);
  RUSH_ARG(bool, bias) = true;
};

}  // namespace rush::nn
