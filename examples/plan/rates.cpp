#include "examples/plan/rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
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

// Times what all processes do at once.
class Stopwatch {
 public:
  explicit Stopwatch(rush::Device device) : device_(device) {}

  // A call's share of the time until all processes have made a number of calls, the median of some such times.
  // Processes that share processors are not served alike for as short as a call.
  double seconds(const std::function<void()>& work) const {
    seconds_of(1, work);
    const double one = mean(seconds_of(1, work));
    const auto calls = static_cast<int64_t>(std::ceil(0.1 / std::max(one, 1e-6)));
    std::vector<double> all;
    const auto begun = std::chrono::steady_clock::now();
    do {
      all.push_back(seconds_of(calls, work));
    } while (all_go_on(all.size() < 5 || since(begun) < 0.25));
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return mean(all[all.size() / 2]);
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  double seconds_of(int64_t calls, const std::function<void()>& work) const {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) work();
    rush::backend_of(device_.type).synchronize(device_.index);
    rush::distributed::barrier();
    return since(start) / static_cast<double>(calls);
  }
  static double since(Time start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // Processes make the same number of calls.
  bool all_go_on(bool goes_on) const { return mean(goes_on ? 1 : 0) > 0.99; }
  double mean(double number) const {
    const Tensor all = rush::full({}, number, rush::TensorOptions(rush::kFloat64).device(device_));
    rush::distributed::all_reduce(all, rush::distributed::ReduceOp::AVG);
    return all.item<double>();
  }

  const rush::Device device_;
};

// One process's block of the model, and a micro-batch for it, of at most 4096 tokens.
struct Block {
  Block(const TransformerShape& shape, rush::Device device)
      : rows(std::max<int64_t>(1, std::min(shape.batch, 4096 / shape.sequence))) {
    const GPT whole(GPTConfig{.vocab_size = shape.vocabulary,
                              .block_size = shape.sequence,
                              .n_layer = 1,
                              .n_head = shape.heads,
                              .n_embd = shape.width});
    net = make_mesh_gpt(whole, rush::distributed::init_device_mesh({rush::distributed::get_world_size()}, {"dp"}), {});
    net->to(device);
    x = rush::randn({rows, shape.sequence, shape.width}, rush::TensorOptions(device)).requires_grad_();
  }
  void both_passes() {
    const Tensor y = (net->begin() + 1)->forward(x);
    y.backward(rush::ones_like(y));
  }

  int64_t rows;
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

// What the block takes beyond its products is what its element-wise operators take.
double element_wise_rate(const TransformerShape& shape, const DeviceRates& rates, const Stopwatch& watch,
                         rush::Device device) {
  Block block(shape, device);
  const double whole = watch.seconds([&] { block.both_passes(); });
  DeviceRates only = rates;
  only.call = 0;
  only.element_wise = HUGE_VAL;
  const double products = block_seconds(shape, block.rows, only);
  only.products = HUGE_VAL;
  only.element_wise = 1;
  return block_seconds(shape, block.rows, only) / std::max(whole - products, 0.02 * whole);
}

// Of few positions a block takes as long as the host calls its operators.
double call_seconds(TransformerShape shape, const Stopwatch& watch, rush::Device device) {
  shape.batch = 1;
  shape.sequence = std::min<int64_t>(shape.sequence, 16);
  Block block(shape, device);
  return watch.seconds([&] { block.both_passes(); }) / kCallsOfBlock;
}

double adamw_rate(const Stopwatch& watch, rush::Device device) {
  const Tensor parameter = rush::ones({int64_t{1} << 22}, rush::TensorOptions(device)).requires_grad_();
  parameter.mutable_grad() = rush::ones_like(parameter.detach());
  rush::optim::AdamW adam({parameter}, rush::optim::AdamWOptions(1e-3));
  return 28 * static_cast<double>(parameter.numel()) / watch.seconds([&] { adam.step(); });
}

Link measure_link(const TransformerShape& shape, const Stopwatch& watch, rush::Device device) {
  const double processes = rush::distributed::get_world_size();
  const auto all_reduce = [&](int64_t numel) {
    const Tensor t = rush::ones({numel}, rush::TensorOptions(device));
    return watch.seconds([&] { rush::distributed::all_reduce(t); });
  };
  const int64_t large = std::clamp<int64_t>(shape.batch * shape.sequence * shape.width, 1 << 16, 1 << 24);
  const double latency = all_reduce(1 << 10), seconds = all_reduce(large);
  const double bytes = 2 * (processes - 1) / processes * 4 * static_cast<double>(large);
  return {latency / std::log2(processes), bytes / std::max(seconds - latency, 0.1 * seconds)};
}

// How much longer this work takes where all processes meet after it, as a share of it.
double share_of_waiting(const Stopwatch& watch, rush::Device device, const std::function<void()>& work) {
  const Tensor t = rush::ones({1 << 10}, rush::TensorOptions(device));
  const auto meet = [&] { rush::distributed::all_reduce(t); };
  const double alone = watch.seconds(work), meeting = watch.seconds(meet);
  const double both = watch.seconds([&] {
    work();
    meet();
  });
  return std::max((both - meeting) / alone - 1, 0.0);
}

}  // namespace

DeviceRates h200_rates() {
  DeviceRates rates;
  rates.products = 47.7e12;
  rates.element_wise = 2.13e12;
  rates.copies = 2.04e12;
  rates.call = 6.4e-6;
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
  rates.overlaps = json.value("overlaps", true);
  rates.waiting = json.value("waiting", 0.0);
  RUSH_CHECK_VALUE(rates.waiting >= 0, path, ": 'waiting' is ", rates.waiting, ", expected a share of at least 0");
  rates.per_machine = json.value("per_machine", int64_t{1});
  return rates;
}

void write_rates(const std::string& path, const DeviceRates& rates) {
  nlohmann::json json = {{"overlaps", rates.overlaps}, {"waiting", rates.waiting}, {"per_machine", rates.per_machine}};
  for_each_rate(rates, [&](const char* name, double rate) { json[name] = rate; });
  rush::io::write_file_atomically(path, json.dump(2) + "\n");
}

DeviceRates measure_rates(const TransformerShape& shape, rush::Device device) {
  const Stopwatch watch(device);
  const int64_t processes = rush::distributed::get_world_size();
  DeviceRates rates;
  rates.per_machine = processes;
  rates.overlaps = !device.is_cpu();
  if (device.is_cpu()) {
    rates.processors = std::min(1.0, std::thread::hardware_concurrency() / static_cast<double>(processes));
  }
  const int64_t rows = std::min<int64_t>(shape.batch * shape.sequence, 4096), width = shape.width;
  const Tensor x = rush::randn({rows, width}, rush::TensorOptions(device));
  const Tensor weight = rush::randn({width, 4 * width}, rush::TensorOptions(device));
  const double flops = 8 * static_cast<double>(rows * width * width);
  const auto product = [&] { x.matmul(weight); };
  rates.products = flops / watch.seconds(product);
  if (rates.processors < 1) rates.waiting = share_of_waiting(watch, device, product);
  rates.call = call_seconds(shape, watch, device);
  rates.copies = adamw_rate(watch, device);
  rates.element_wise = element_wise_rate(shape, rates, watch, device);
  rates.near = rates.far = measure_link(shape, watch, device);
  return rates;
}

}  // namespace examples
