#include "nn/summary/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/io/png.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/view/view.h"
#include "nn/summary/event_file.h"

namespace rush::summary {
namespace {

// Fields of Summary.Value, and of what is in it.
enum ValueField : uint32_t { kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9 };
constexpr int64_t kStringType = 7;  // of TensorProto

ProtoMessage summary_of(const ProtoMessage& value) { return ProtoMessage().message(1, value); }
ProtoMessage tagged(const std::string& tag) { return ProtoMessage().text(kTag, tag); }

// Names the plugin of TensorBoard that shows a value, with the plugin's own data.
ProtoMessage metadata(const char* plugin, const ProtoMessage& data) {
  return ProtoMessage().message(1, ProtoMessage().text(1, plugin).message(2, data));
}

// ---- histograms ----

// The right ends of TensorFlow's buckets: 1e-12 times powers of 1.1, their negatives, and zero.
std::vector<double> bucket_limits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  limits.push_back(std::numeric_limits<double>::max());
  return limits;
}

struct Counts {
  double low = std::numeric_limits<double>::infinity(), high = -low, number = 0, sum = 0, squares = 0;
  std::vector<double> of_buckets;

  Counts(std::span<const double> values, const std::vector<double>& limits) : of_buckets(limits.size()) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value), high = std::max(high, value);
      ++number, sum += value, squares += value * value;
      const auto bucket = std::upper_bound(limits.begin(), limits.end() - 1, value);
      ++of_buckets[static_cast<size_t>(bucket - limits.begin())];
    }
  }
};

// ---- images ----

// The image as (H, W, C).
Tensor with_channels_last(const Tensor& image, const std::string& dataformats) {
  RUSH_CHECK_VALUE(dataformats == "CHW" || dataformats == "HWC" || dataformats == "HW",
                   "add_image: dataformats: expected CHW, HWC or HW, got '", dataformats, "'");
  RUSH_CHECK_VALUE(image.dim() == static_cast<int64_t>(dataformats.size()), "add_image: ", dataformats, " names ",
                   dataformats.size(), " dimensions, the image has shape ", image.sizes());
  if (dataformats == "HW") return image.unsqueeze(2);
  return dataformats == "CHW" ? image.permute({1, 2, 0}) : image;
}

Tensor to_bytes(const Tensor& image) {
  if (image.scalar_type() == kUInt8) return image.cpu().contiguous();
  RUSH_CHECK_TYPE(is_floating_point(image.scalar_type()), "add_image: expected floating point or uint8, got ",
                  image.scalar_type());
  const Tensor numbers = nan_to_num(image.detach().cpu().to(kFloat32), 0.0, 1.0, 0.0);
  return numbers.clamp(0, 1).mul(255).round().to(kUInt8).contiguous();
}

// ---- hyperparameters ----

enum HParamType : int64_t { kTextParam = 1, kFlagParam = 2, kNumberParam = 3 };

HParamType type_of(const HParam& value) {
  if (std::holds_alternative<std::string>(value)) return kTextParam;
  return std::holds_alternative<bool>(value) ? kFlagParam : kNumberParam;
}

// google.protobuf.Value, in which all numbers are float64.
ProtoMessage value_of(const HParam& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return ProtoMessage().text(3, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return ProtoMessage().integer(4, *flag);
  const auto* whole = std::get_if<int64_t>(&value);
  return ProtoMessage().float64(2, whole ? static_cast<double>(*whole) : std::get<double>(value));
}

ProtoMessage experiment(const HParams& hparams, const NamedScalars& metrics) {
  ProtoMessage out;
  for (const auto& [name, value] : hparams) {
    out.message(4, ProtoMessage().text(1, name).integer(4, type_of(value)));
  }
  for (const auto& [name, value] : metrics) {
    out.message(5, ProtoMessage().message(1, ProtoMessage().text(2, name)));
  }
  return out;
}

ProtoMessage session_start(const HParams& hparams) {
  ProtoMessage out;
  for (const auto& [name, value] : hparams) out.message(1, ProtoMessage().text(1, name).message(2, value_of(value)));
  return out.float64(5, wall_time());
}

ProtoMessage session_end() {
  constexpr int64_t kSuccess = 1;
  return ProtoMessage().integer(1, kSuccess).float64(2, wall_time());
}

}  // namespace

ProtoMessage scalar(const std::string& tag, double value) {
  return summary_of(tagged(tag).float32(kSimpleValue, static_cast<float>(value)));
}

ProtoMessage histogram(const std::string& tag, const Tensor& values) {
  RUSH_CHECK_TYPE(!values.is_complex(), "add_histogram: '", tag, "' is complex");
  static const std::vector<double> limits = bucket_limits();
  const Tensor flat = values.detach().cpu().to(kFloat64).contiguous();
  const Counts counts({flat.data_ptr<double>(), static_cast<size_t>(flat.numel())}, limits);
  // The buckets from the first to the last that has values, after an empty one, whose limit is where the first begins.
  std::vector<double> used_limits, used_counts;
  const auto has_values = [](double count) { return count > 0; };
  const std::vector<double>& all = counts.of_buckets;
  const auto found = std::find_if(all.begin(), all.end(), has_values);
  const auto begin = found - all.begin() - (found == all.begin() ? 0 : 1);
  const auto end = all.rend() - std::find_if(all.rbegin(), all.rend(), has_values);
  if (counts.number > 0) {
    used_limits.assign(limits.begin() + begin, limits.begin() + end);
    used_counts.assign(all.begin() + begin, all.begin() + end);
  }
  ProtoMessage histo;
  histo.float64(1, counts.number > 0 ? counts.low : 0).float64(2, counts.number > 0 ? counts.high : 0);
  histo.float64(3, counts.number).float64(4, counts.sum).float64(5, counts.squares);
  histo.float64s(6, used_limits).float64s(7, used_counts);
  return summary_of(tagged(tag).message(kHistogram, histo));
}

ProtoMessage image(const std::string& tag, const Tensor& image, const std::string& dataformats) {
  const Tensor pixels = to_bytes(with_channels_last(image, dataformats));  // (H, W, C)
  const int64_t height = pixels.size(0), width = pixels.size(1), channels = pixels.size(2);
  const std::string png =
      io::encode_png(width, height, channels, {pixels.data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel())});
  ProtoMessage message;
  message.integer(1, height).integer(2, width).integer(3, channels).text(4, png);
  return summary_of(tagged(tag).message(kImage, message));
}

ProtoMessage text(const std::string& tag, const std::string& text) {
  const ProtoMessage one_string = ProtoMessage().message(2, ProtoMessage().integer(1, 1));  // of shape (1)
  ProtoMessage tensor;
  tensor.integer(1, kStringType).message(2, one_string).text(8, text);
  return summary_of(tagged(tag + "/text_summary").message(kMetadata, metadata("text", {})).message(kTensor, tensor));
}

ProtoMessage hparams(const HParams& hparams, const NamedScalars& metrics) {
  ProtoMessage out;
  const auto add = [&](const char* tag, uint32_t field, const ProtoMessage& data) {
    const ProtoMessage content = ProtoMessage().integer(1, 0).message(field, data);  // version 0
    out.message(1, tagged(tag).message(kMetadata, metadata("hparams", content)));
  };
  add("_hparams_/experiment", 2, experiment(hparams, metrics));
  add("_hparams_/session_start_info", 3, session_start(hparams));
  add("_hparams_/session_end_info", 4, session_end());
  return out;
}

}  // namespace rush::summary
