#pragma once
#include <cstdint>

#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

// What the recurrent networks' options have in common.
#define RUSH_RNN_OPTIONS(Name)                                                                                     \
  Name(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}            \
  RUSH_ARG(int64_t, input_size);                                                                                   \
  RUSH_ARG(int64_t, hidden_size);                                                                                  \
  RUSH_ARG(int64_t, num_layers) = 1;                                                                               \
  RUSH_ARG(bool, bias) = true;                                                                                     \
  /* Inputs and outputs are (batch, time, feature) instead of (time, batch, feature); states are (layer, batch, */ \
  /* feature) either way. */                                                                                       \
  RUSH_ARG(bool, batch_first) = false;                                                                             \
  /* Between layers, while training. */                                                                            \
  RUSH_ARG(double, dropout) = 0.0;                                                                                 \
  RUSH_ARG(bool, bidirectional) = false

#define RUSH_RNN_CELL_OPTIONS(Name)                                                                     \
  Name(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {} \
  RUSH_ARG(int64_t, input_size);                                                                        \
  RUSH_ARG(int64_t, hidden_size);                                                                       \
  RUSH_ARG(bool, bias) = true

struct RNNOptions {
  using nonlinearity_t = std::variant<enumtype::kTanh, enumtype::kReLU>;
  RUSH_RNN_OPTIONS(RNNOptions);
  RUSH_ARG(nonlinearity_t, nonlinearity) = kTanh;
};

struct LSTMOptions {
  RUSH_RNN_OPTIONS(LSTMOptions);
  // When positive, a linear map takes h to this size before it is put out and fed back.
  RUSH_ARG(int64_t, proj_size) = 0;
};

struct GRUOptions {
  RUSH_RNN_OPTIONS(GRUOptions);
};

struct RNNCellOptions {
  using nonlinearity_t = RNNOptions::nonlinearity_t;
  RUSH_RNN_CELL_OPTIONS(RNNCellOptions);
  RUSH_ARG(nonlinearity_t, nonlinearity) = kTanh;
};

struct LSTMCellOptions {
  RUSH_RNN_CELL_OPTIONS(LSTMCellOptions);
};

struct GRUCellOptions {
  RUSH_RNN_CELL_OPTIONS(GRUCellOptions);
};

#undef RUSH_RNN_OPTIONS
#undef RUSH_RNN_CELL_OPTIONS

}  // namespace rush::nn
