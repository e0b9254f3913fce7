// The Summary messages that TensorBoard's pages read (tensorboard/compat/proto/summary.proto), one function for each.
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/io/proto_message.h"
#include "core/tensor.h"

namespace rush {

/// A setting of a run: what TensorBoard's page of hyperparameters shows and sorts by.
using HParam = std::variant<bool, int64_t, double, std::string>;
using HParams = std::vector<std::pair<std::string, HParam>>;
using NamedScalars = std::vector<std::pair<std::string, double>>;

namespace summary {

using io::ProtoMessage;

// What each throws, SummaryWriter's functions say.
ProtoMessage scalar(const std::string& tag, double value);
// Counts by TensorFlow's buckets, whose limits grow by a tenth each.
ProtoMessage histogram(const std::string& tag, const Tensor& values);
ProtoMessage image(const std::string& tag, const Tensor& image, const std::string& dataformats);
ProtoMessage text(const std::string& tag, const std::string& text);
// What makes a run a session of an experiment: the names of hyperparameters and metrics, the session's values of the
// first, and its successful end.
ProtoMessage hparams(const HParams& hparams, const NamedScalars& metrics);

}  // namespace summary
}  // namespace rush
