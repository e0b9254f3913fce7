// The three models whose training runs were recorded: gpt, cnn, lstm.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "nn/module.h"

namespace conformance {

struct ParityModel {
  std::shared_ptr<rush::nn::Module> module;  // parameters and buffers are named as in the recording
  /// A batch of inputs and targets -> the loss.
  std::function<rush::Tensor(const rush::Tensor& x, const rush::Tensor& y)> loss;
};

/// The model that a recording's JSON describes by "model" and its sizes. Throws ValueError for another kind, and what
/// the JSON library throws where a size is missing.
ParityModel make_parity_model(const nlohmann::json& recording);

}  // namespace conformance
