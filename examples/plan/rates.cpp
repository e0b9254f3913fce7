#include "examples/plan/rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/device/backend.h"
#include "core/distributed/collectives.h"
#include "core/distributed/device_mesh.h"
#include "core/io/atomic_file.h"
#include "examples/mesh_gpt/model.h"
#include "rushlight.h"

namespace examples {

using rush::Tensor;

namespace {

double as_double(int64_t n) { return static_cast<double>(n); }

// All numbers of the rates, by name.
template <class Rates, class Visit>
void for_each_rate(Rates& rates, const Visit& visit) {
  visit("products", rates.products);
  visit("element_wise", rates.element_wise);
  visit("copies", rates.copies);
  visit("call", rates.call);
  visit("near_latency", rates.near.latency);
  visit("near_bytes_per_second", rates.near.bytes_per_second);
  visit("far_latency", rates.far.latency);
  visit("far_bytes_per_second", rates.far.bytes_per_second);
  visit("processors", rates.processors);
}

// Bytes that a norm and gelu read and write for each element, in both passes.
constexpr double kElementWiseBytes = 4 * 10;
constexpr int64_t kTimedParameters = 1 << 22;

using Seconds = std::map<std::string, double>;

// Times what all processes do at once.
class Stopwatch {
 public:
  using Work = std::function<void()>;
  explicit Stopwatch(rush::Device device) : device_(device) {}

  // A call's share of the time until all processes have made a number of calls, for each of these works: the medians of
  // some such times, which are taken in turn, since a machine's speed changes. Processes that share processors are not
  // served alike for as short as a call.
  Seconds medians(const std::map<std::string, Work>& works) const {
    constexpr size_t kRounds = 7;
    std::map<std::string, int64_t> calls;
    for (const auto& [name, work] : works) {
      seconds_of(1, work);
      calls[name] = static_cast<int64_t>(std::ceil(0.1 / std::max(mean(seconds_of(1, work)), 1e-6)));
    }
    std::map<std::string, std::vector<double>> times;
    for (size_t round = 0; round < kRounds; ++round) {
      for (const auto& [name, work] : works) times[name].push_back(seconds_of(calls[name], work));
    }
    Seconds result;
    for (auto& [name, all] : times) {
      std::nth_element(all.begin(), all.begin() + kRounds / 2, all.end());
      result[name] = mean(all[kRounds / 2]);
    }
    return result;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  double seconds_of(int64_t calls, const Work& work) const {
    const Time start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) work();
    rush::backend_of(device_.type).synchronize(device_.index);
    rush::distributed::barrier();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / as_double(calls);
  }
  double mean(double number) const {
    const Tensor all = rush::full({}, number, rush::TensorOptions(rush::kFloat64).device(device_));
    rush::distributed::all_reduce(all, rush::distributed::ReduceOp::AVG);
    return all.item<double>();
  }

  const rush::Device device_;
};

// Sequences of a micro-batch of at most 4096 tokens.
int64_t rows_of_block(const TransformerShape& shape) {
  return std::max<int64_t>(1, std::min(shape.batch, 4096 / shape.sequence));
}

// One process's block of the model, and a micro-batch for it.
struct TimedBlock {
  TimedBlock(const TransformerShape& shape, rush::Device device) {
    const GPT whole(GPTConfig{.vocab_size = shape.vocabulary,
                              .block_size = shape.sequence,
                              .n_layer = 1,
                              .n_head = shape.heads,
                              .n_embd = shape.width});
    net = make_mesh_gpt(whole, rush::distributed::init_device_mesh({rush::distributed::get_world_size()}, {"dp"}), {});
    net->to(device);
    x = rush::randn({rows_of_block(shape), shape.sequence, shape.width}, rush::TensorOptions(device)).requires_grad_();
  }
  void both_passes() {
    const Tensor y = (net->begin() + 1)->forward(x);
    y.backward(rush::ones_like(y));
  }

  rush::nn::Sequential net;
  Tensor x;
};

// What a block computes by the formulas, at these rates.
double block_seconds(TransformerShape shape, int64_t rows, const DeviceRates& rates) {
  shape.batch = rows;
  shape.layers = 1;
  const double one = predict_time(shape, {}, rates).computing;
  shape.layers = 2;
  return predict_time(shape, {}, rates).computing - one;
}

// The rate of products with which a block takes as long as it does, if all else is as these rates say.
double product_rate(const TransformerShape& shape, int64_t rows, DeviceRates rates, double whole) {
  rates.products = HUGE_VAL;
  const double others = block_seconds(shape, rows, rates);
  rates.products = 1;
  rates.element_wise = rates.copies = HUGE_VAL;
  rates.call = 0;
  return block_seconds(shape, rows, rates) / std::max(whole - others, 0.1 * whole);
}

// All numbers of a batch in one layer, of which many processes tell each other all or some.
int64_t numel_of_message(const TransformerShape& shape) {
  return std::clamp<int64_t>(shape.batch * shape.sequence * shape.width, 1 << 16, 1 << 24);
}

// So short that its calls take longer than what they compute.
TransformerShape short_sequence(TransformerShape shape) {
  shape.batch = 1;
  shape.sequence = std::min<int64_t>(shape.sequence, 16);
  return shape;
}

// What a call of each of these takes, by name.
Seconds times_of_works(const TransformerShape& shape, int64_t rows, rush::Device device) {
  const rush::TensorOptions options(device);
  const Tensor x = rush::randn({rows, shape.width}, options).requires_grad_();
  const Tensor weight = rush::randn({shape.width, 4 * shape.width}, options);
  const int64_t own_rows = std::max<int64_t>(1, rows / rush::distributed::get_world_size());
  const Tensor own_x = x.detach().narrow(0, 0, own_rows);
  TimedBlock block(shape, device), short_block(short_sequence(shape), device);
  const Tensor parameter = rush::ones({kTimedParameters}, options).requires_grad_();
  parameter.mutable_grad() = rush::ones_like(parameter.detach());
  rush::optim::AdamW adam({parameter}, rush::optim::AdamWOptions(1e-3));
  const Tensor number = rush::ones({1 << 10}, options), message = rush::ones({numel_of_message(shape)}, options);
  const auto norm_and_gelu = [&] {
    const Tensor y = rush::gelu(rush::layer_norm(x, {shape.width}), "tanh");
    y.backward(rush::ones_like(y));
  };
  const auto meet = [&] { rush::distributed::all_reduce(number); };
  return Stopwatch(device).medians({
      {"norm and gelu", norm_and_gelu},
      {"block", [&] { block.both_passes(); }},
      {"short block", [&] { short_block.both_passes(); }},
      {"adam", [&] { adam.step(); }},
      {"meeting", meet},
      {"message", [&] { rush::distributed::all_reduce(message); }},
      {"product", [&] { own_x.matmul(weight); }},
      {"product and meeting", [&] { own_x.matmul(weight), meet(); }},
  });
}

}  // namespace

DeviceRates h200_rates() {
  DeviceRates rates;
  rates.products = 48.5e12;
  rates.element_wise = 2.29e12;
  rates.copies = 2.48e12;
  rates.call = 7.6e-6;
  rates.near = {22e-6, 275e9};
  rates.far = {20e-6, 40e9};
  return rates;
}

DeviceRates read_rates(const std::string& path) {
  std::ifstream file(path);
  RUSH_CHECK_IO(file.good(), "cannot read ", path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  DeviceRates rates;
  for_each_rate(rates, [&](const char* name, double& rate) {
    const bool is_number = json.is_object() && json.contains(name) && json[name].is_number();
    RUSH_CHECK_VALUE(is_number, path, ": there is no number '", name, "'; plan --measure writes such files");
    rate = json[name].get<double>();
    RUSH_CHECK_VALUE(rate > 0, path, ": '", name, "' is ", rate, ", expected a positive number");
  });
  try {
    rates.overlaps = json.value("overlaps", true);
    rates.waiting = json.value("waiting_seconds", 0.0);
    rates.per_machine = json.value("per_machine", int64_t{1});
  } catch (const nlohmann::json::type_error& error) {
    RUSH_CHECK_VALUE(false, path, ": ", error.what());
  }
  RUSH_CHECK_VALUE(rates.waiting >= 0, path, ": 'waiting_seconds' is ", rates.waiting,
                   ", expected seconds of at least 0");
  RUSH_CHECK_VALUE(rates.per_machine >= 1, path, ": 'per_machine' is ", rates.per_machine,
                   ", expected at least 1 process");
  return rates;
}

void write_rates(const std::string& path, const DeviceRates& rates) {
  nlohmann::json json = {
      {"overlaps", rates.overlaps}, {"waiting_seconds", rates.waiting}, {"per_machine", rates.per_machine}};
  for_each_rate(rates, [&](const char* name, double rate) { json[name] = rate; });
  rush::io::write_file_atomically(path, json.dump(2) + "\n");
}

DeviceRates measure_rates(const TransformerShape& shape, rush::Device device) {
  const double processes = as_double(rush::distributed::get_world_size());
  DeviceRates rates;
  rates.per_machine = rush::distributed::get_world_size();
  rates.overlaps = !device.is_cpu();
  if (device.is_cpu()) rates.processors = std::min(1.0, std::thread::hardware_concurrency() / processes);

  const int64_t rows = std::min<int64_t>(shape.batch * shape.sequence, 4096);
  Seconds seconds = times_of_works(shape, rows, device);
  const double meeting = seconds["meeting"], block = seconds["block"], short_block = seconds["short block"];
  const TransformerShape of_short = short_sequence(shape);
  const int64_t block_rows = rows_of_block(shape);
  // A CPU does not call while it computes.
  const double computing =
      device.is_cpu() ? block * as_double(of_short.sequence) / as_double(block_rows * shape.sequence) : 0;
  rates.call = std::max(short_block - computing, 0.1 * short_block) / kCallsOfBlock;
  rates.copies = 28 * as_double(kTimedParameters) / seconds["adam"];
  rates.element_wise = kElementWiseBytes * as_double(rows * shape.width) / seconds["norm and gelu"];
  rates.products = product_rate(shape, block_rows, rates, block);
  if (device.is_cpu()) rates.waiting = std::max(seconds["product and meeting"] - seconds["product"] - meeting, 0.0);
  const double bytes = 2 * (processes - 1) / processes * 4 * as_double(numel_of_message(shape));
  const double message = seconds["message"];
  rates.near = rates.far = {meeting / std::log2(processes), bytes / std::max(message - meeting, 0.1 * message)};
  return rates;
}

}  // namespace examples
