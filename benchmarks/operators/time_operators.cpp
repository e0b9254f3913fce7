// rush_time_operators [--device cpu|cuda] [--threads N] [--seconds S]
// Times single operators: reads a case on each line of its input and answers with a line of JSON, {"seconds": of a
// call} or {"error": why not}. `./rush bench operators` asks it and torch_side.py in turn. table.py explains cases.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/device/backend.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value.h"
#include "rushlight.h"

namespace {

using namespace rush;
using nlohmann::json;

struct Settings {
  Device device{"cpu"};
  int threads = 1;
  double seconds = 0.05;  // for which a case is timed, about
};

Settings settings;

// ---- arguments: from a case to values of the operator's schema

ScalarType dtype_named(const std::string& text) {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto type = static_cast<ScalarType>(i);
    if (text == name(type)) return type;
  }
  throw std::invalid_argument("there is no dtype " + text);
}

// "KIND:NUMBER:NUMBER"
std::pair<std::string, std::vector<double>> fill_of(const std::string& text) {
  std::vector<double> numbers;
  const size_t colon = text.find(':');
  for (size_t at = colon; at != std::string::npos; at = text.find(':', at + 1)) {
    numbers.push_back(std::stod(text.substr(at + 1)));
  }
  return {text.substr(0, colon), numbers};
}

Tensor square_matrices(const std::string& kind, const std::vector<int64_t>& shape, const TensorOptions& options) {
  const Tensor random = randn(shape, options), one = eye(shape.back(), options);
  const auto n = static_cast<double>(shape.back());
  if (kind == "spd") return matmul(random, random.transpose(-1, -2)) / n + one;
  if (kind == "solvable") return random / std::sqrt(n) + one * 2;
  return (random / n + one * 2).triu();  // triangular
}

Tensor filled(const std::vector<int64_t>& shape, ScalarType dtype, const std::string& how) {
  const auto [kind, numbers] = fill_of(how);
  const TensorOptions floats = TensorOptions().device(settings.device).dtype(kFloat);
  const TensorOptions integers = floats.dtype(kLong), own = floats.dtype(dtype);
  if (kind == "randn" && is_complex(dtype)) return make_complex(randn(shape, floats), randn(shape, floats)).to(dtype);
  if (kind == "randn") return randn(shape, floats).to(dtype);
  if (kind == "rand") return (rand(shape, floats) * (numbers.at(1) - numbers.at(0)) + numbers.at(0)).to(dtype);
  if (kind == "int") {
    return randint(std::llround(numbers.at(0)), std::llround(numbers.at(1)), shape, integers).to(dtype);
  }
  if (kind == "bool") return rand(shape, floats).lt(numbers.empty() ? 0.5 : numbers[0]).to(dtype);
  if (kind == "zeros") return zeros(shape, own);
  if (kind == "ones") return ones(shape, own);
  if (kind == "full") return full(shape, numbers.at(0), own);
  if (kind == "sorted") return std::get<0>(randn(shape, floats).sort(-1)).to(dtype);
  if (kind == "softmax") return softmax(randn(shape, floats), -1).to(dtype);
  if (kind == "log_softmax") return log_softmax(randn(shape, floats), -1).to(dtype);
  if (kind == "offsets") return (arange(shape.at(0), integers) * std::llround(numbers.at(0))).to(dtype);
  if (kind == "arange") {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    return arange(count, integers).reshape(shape).to(dtype);
  }
  if (kind == "spd" || kind == "solvable" || kind == "triangular") {
    return square_matrices(kind, shape, floats).to(dtype);
  }
  throw std::invalid_argument("there is no fill " + how);
}

// What `layout` means stands in table.py.
Tensor laid_out(std::vector<int64_t> shape, ScalarType dtype, const std::string& how, const std::string& layout) {
  const auto contiguous = [&](const std::vector<int64_t>& sizes) { return filled(sizes, dtype, how).contiguous(); };
  const std::vector<int64_t> wanted = shape;
  if (layout.empty()) return contiguous(shape);
  if (layout == "t") {
    std::swap(shape.at(shape.size() - 1), shape.at(shape.size() - 2));
    return contiguous(shape).transpose(-1, -2);
  }
  if (layout == "r") {
    std::vector<int64_t> dims(shape.size());
    std::iota(dims.rbegin(), dims.rend(), 0);
    std::reverse(shape.begin(), shape.end());
    return contiguous(shape).permute(dims);
  }
  if (layout == "s") {
    shape.back() *= 2;
    return contiguous(shape).slice(-1, 0, shape.back(), 2);
  }
  if (layout == "b" || layout == "bl") {
    (layout == "b" ? shape.front() : shape.back()) = 1;
    return contiguous(shape).expand(wanted);
  }
  if (layout == "cl") {
    return filled(shape, dtype, how)
        .contiguous(shape.size() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast);
  }
  throw std::invalid_argument("there is no layout " + layout);
}

// Reads values; collects the tensors that gradients are taken of, if `with_grad`.
class Reader {
 public:
  explicit Reader(bool with_grad) : with_grad_(with_grad) {}

  Value read(const json& value, const std::string& type) {
    switch (value.type()) {
      case json::value_t::null: return {};
      case json::value_t::boolean: return value.get<bool>();
      case json::value_t::number_integer:
      case json::value_t::number_unsigned: return value.get<int64_t>();
      case json::value_t::number_float: return value.get<double>();
      case json::value_t::string: return value.get<std::string>();
      case json::value_t::array: return list(value, type);
      default: return object(value);
    }
  }

  const std::vector<Tensor>& leaves() const { return leaves_; }

 private:
  Value object(const json& value) {
    if (value.contains("shape")) return tensor(value);
    if (value.contains("dtype")) return dtype_named(value["dtype"]);
    if (value.contains("device")) return settings.device;
    return value.at("memory_format") == "channels_last" ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
  }

  Value list(const json& values, const std::string& type) {
    if (type.starts_with("Tensor?[")) {
      std::vector<std::optional<Tensor>> all;
      for (const json& each : values) all.push_back(each.is_null() ? std::nullopt : std::optional(tensor(each)));
      return all;
    }
    if (type.starts_with("Tensor[")) {
      std::vector<Tensor> all;
      for (const json& each : values) all.push_back(tensor(each));
      return all;
    }
    if (type.starts_with("float[")) return values.get<std::vector<double>>();
    if (type.starts_with("bool[")) return values.get<std::vector<bool>>();
    return values.get<std::vector<int64_t>>();
  }

  Tensor tensor(const json& spec) {
    const ScalarType dtype = dtype_named(spec.at("dtype"));
    Tensor made = laid_out(spec.at("shape"), dtype, spec.at("fill"), spec.value("layout", "")).detach();
    if (with_grad_ && (is_floating_point(dtype) || is_complex(dtype)) && spec.value("grad", true)) {
      leaves_.push_back(made.requires_grad_());
    }
    return made;
  }

  bool with_grad_;
  std::vector<Tensor> leaves_;
};

// ---- a call, and how it is timed

void add_sum(Tensor& loss, const Tensor& output) {
  if (!output.defined() || !output.requires_grad()) return;
  const Tensor sum = rush::sum(is_complex(output.scalar_type()) ? view_as_real(output) : output);
  loss = loss.defined() ? loss + sum : sum;
}

class Call {
 public:
  explicit Call(const json& one) : reader_(one.value("grad", false)) {
    const std::string name = one.at("op");
    op_ = registry().find(name);
    if (!op_) throw std::invalid_argument(name + " is not registered");
    const Schema schema = Schema::parse(op_->schema());
    std::vector<Value> positional;
    for (const json& each : one.at("args")) {
      positional.push_back(reader_.read(each, schema.arguments.at(positional.size()).type));
    }
    std::vector<std::pair<std::string, Value>> named;
    for (const auto& [key, value] : one.at("kwargs").items()) {
      const auto found = std::find_if(schema.arguments.begin(), schema.arguments.end(),
                                      [&key = key](const auto& argument) { return argument.name == key; });
      named.emplace_back(key, reader_.read(value, found == schema.arguments.end() ? "" : found->type));
    }
    arguments_ = schema.bind(std::move(positional), std::move(named));
  }

  void operator()() const {
    Stack stack = arguments_;
    op_->call_boxed(stack);
    if (reader_.leaves().empty()) return;
    Tensor loss;
    for (const Value& value : stack) {
      if (value.is<std::vector<Tensor>>()) {
        for (const Tensor& each : value.as<std::vector<Tensor>>()) add_sum(loss, each);
      } else if (value.is<Tensor>()) {
        add_sum(loss, value.as<Tensor>());
      }
    }
    stack.clear();
    autograd::grad({loss}, reader_.leaves(), {}, std::nullopt, false, true);
  }

 private:
  Reader reader_;
  const OpBase* op_ = nullptr;
  Stack arguments_;
};

void wait_for_device() { backend_of(settings.device.type).synchronize(settings.device.index); }

// Of one thread on the CPU, the time that it has had a core, which other programs do not add to.
double now() {
  const bool of_thread = !settings.device.is_accelerator() && settings.threads == 1;
  timespec time;
  clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of a call, the least of rounds of some calls each. torch_side.py does the same.
double seconds_of(const Call& call) {
  const auto round = [&](int calls) {
    wait_for_device();
    const double start = now();
    for (int i = 0; i < calls; ++i) call();
    wait_for_device();
    return (now() - start) / calls;
  };
  double once = round(1);  // the first call may plan, compile or touch new memory
  for (int i = 0; i < 2 && once < 2; ++i) once = std::min(once, round(1));
  const double in_a_round = std::clamp(settings.seconds / 12 / std::max(once, 1e-7), 1.0, 4096.0);
  const int calls = settings.device.is_accelerator() ? 16 : static_cast<int>(in_a_round);
  double best = once, spent = 0;
  for (int rounds = 0; rounds < 15 && (rounds < 2 || spent < settings.seconds); ++rounds) {
    if (spent + calls * best > 2 * settings.seconds) break;  // dear calls have been timed by themselves
    const double seconds = round(calls);
    best = rounds == 0 && calls > 1 ? seconds : std::min(best, seconds);
    spent += seconds * calls;
  }
  return best;
}

json answer(const std::string& line) {
  try {
    manual_seed(1);
    return {{"seconds", seconds_of(Call(json::parse(line)))}};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return {{"error", text.substr(0, text.find('\n'))}};
  }
}

void say(const json& line) { std::cout << line.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl; }

bool device_works() {
  try {
    wait_for_device();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string option = argv[i];
      if (option == "--device") settings.device = Device(argv[i + 1]);
      if (option == "--threads") settings.threads = std::stoi(argv[i + 1]);
      if (option == "--seconds") settings.seconds = std::stod(argv[i + 1]);
    }
    set_num_threads(settings.threads);
    globalContext().setAllowTF32CuDNN(false);             // PyTorch's side does not use TF32 either
    zeros({1}, TensorOptions().device(settings.device));  // throws where there is no such device
    wait_for_device();
    say({{"device", settings.device.str()}});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    json result = answer(line);
    const bool goes_on = device_works();  // where a kernel has failed, no other one runs in this process
    if (!goes_on) result["ends"] = true;
    say(result);
    if (!goes_on) return 1;  // compare.py starts the next one
  }
}
