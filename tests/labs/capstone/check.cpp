#include "tests/labs/capstone/check.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "autograd/debug/gradcheck.h"
#include "core/dispatch/call.h"
#include "core/dispatch/schema.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "tests/labs/capstone/calls.h"
#include "tests/labs/grid/grid.h"

namespace capstone {

using namespace rush;

namespace {

using Sizes = std::vector<int64_t>;
using Seen = std::string;  // what a check that is right has to say

const std::vector<Sizes> kOddSizes = {{2, 3, 33}, {5, 7}, {3, 257}};

// What an error says, without the frames that it comes from.
std::string message_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find(" [called from"));
}

Schema schema_of_operator() {
  call(random_inputs({2, 4}, kFloat32), std::nullopt);
  return Schema::parse(registry().find(subject().name)->schema());
}

// ---- the operator ----

Seen check_schema() {
  const Schema schema = schema_of_operator();
  size_t tensors = 0;
  while (tensors < schema.arguments.size() && schema.arguments[tensors].type == "Tensor") ++tensors;
  const bool as_agreed = tensors >= 2 && schema.arguments.size() == tensors + 1 && schema.num_returns == 1 &&
                         schema.arguments.back().type == "float" && schema.arguments.back().default_value;
  RUSH_CHECK(as_agreed, "a schema has two tensors or more, then a float with a default, got ",
             registry().find(subject().name)->schema());
  RUSH_CHECK(subject().numbers.size() >= 2, "subject() has to give two numbers at least");
  const Tensors inputs = random_inputs({2, 4}, kFloat64);
  const double number = schema.arguments.back().default_value->as<double>();
  compare(call(inputs, std::nullopt), reference(inputs, number), "a call by name without the number");
  return registry().find(subject().name)->schema();
}

// Of contiguous inputs, for all numbers.
Seen compare_values(ScalarType dtype) {
  int calls = 0;
  for (const Sizes& sizes : std::vector<Sizes>{{4, 64}, {2, 16}}) {
    for (const double number : subject().numbers) {
      const Tensors inputs = random_inputs(sizes, dtype);
      const Tensor expected = reference(inputs, number);
      const Tensor got = call(inputs, number);
      RUSH_CHECK(got.scalar_type() == dtype, describe(inputs, number), " gives ", got.scalar_type());
      compare(got, expected, describe(inputs, number));
      ++calls;
    }
  }
  return str(calls, " calls of ", dtype);
}

// The reference's first call is before the operator is registered, so that it cannot call that.
Seen check_values() { return str(compare_values(kFloat32), ", ", compare_values(kFloat64)); }
Seen check_bfloat16() { return compare_values(kBFloat16); }

Seen check_layouts() {
  int calls = 0;
  for (const Layout layout : {Layout::Transposed, Layout::EverySecond, Layout::Expanded}) {
    const Tensors contiguous = random_inputs({6, 5, 8}, kFloat32);
    for (size_t changed = 0; changed < contiguous.size(); ++changed) {
      Tensors inputs = contiguous;
      inputs[changed] = laid_out(inputs[changed], layout);
      const char* const names[] = {"contiguous", "transposed", "every second of another", "expanded"};
      compare(call(inputs, subject().numbers[0]), reference(inputs, subject().numbers[0]),
              str("a call whose argument ", changed, " is ", names[static_cast<int>(layout)]));
      ++calls;
    }
  }
  return str(calls, " calls with transposed, spread and expanded tensors");
}

// What the reference refuses has to be refused.
Seen check_edges() {
  std::vector<Sizes> all = {{}, {1}, {1, 1}, {0, 8}, {3, 0}, {0}};
  all.insert(all.end(), kOddSizes.begin(), kOddSizes.end());
  for (const Sizes& sizes : all) {
    const Tensors inputs = random_inputs(sizes, kFloat32);
    const std::string what = describe(inputs, subject().numbers[0]);
    std::optional<Tensor> expected, got;
    std::string why;
    try {
      expected = reference(inputs, subject().numbers[0]);
    } catch (const Error&) {
    }
    try {
      got = call(inputs, subject().numbers[0]);
    } catch (const Error& error) {
      why = message_of(error);
    }
    RUSH_CHECK(!expected || got, what, " throws: ", why);
    RUSH_CHECK(expected || !got, what, " has to throw an error, as the reference does");
    if (expected) compare(*got, *expected, what);
  }
  return str(all.size(), " sizes: empty, without dimensions, of one number, odd");
}

Seen check_meta() {
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    Tensors inputs = random_inputs({3, 4, 5}, dtype);
    const Tensor expected = call(inputs, std::nullopt);
    for (Tensor& input : inputs) input = input.to(Device(kMeta));
    const Tensor got = call(inputs, std::nullopt);
    RUSH_CHECK(got.device().is_meta(), "a call on meta gives a tensor on ", got.device());
    RUSH_CHECK(got.sizes() == expected.sizes() && got.scalar_type() == dtype, "a call on meta gives ", got.sizes(),
               " of ", got.scalar_type(), ", and on the CPU ", expected.sizes(), " of ", dtype);
  }
  return "sizes and dtype of the results on meta";
}

// ---- errors ----

void check_message(const std::string& message, const std::vector<std::string>& arguments, const std::string& what) {
  const std::string full = subject().name, name = full.substr(full.rfind(':') + 1);
  RUSH_CHECK(message.find(name) != std::string::npos, what, " throws \"", message, "\", which does not name ", name);
  const auto named = [&](const std::string& each) { return message.find('`' + each + '`') != std::string::npos; };
  RUSH_CHECK(std::any_of(arguments.begin(), arguments.end(), named), what, " throws \"", message,
             "\", which names no argument in backquotes, such as `", arguments[0], '`');
}

// The call throws a ValueError or a TypeError that names the operator and one of the arguments.
void expect_refused(TensorList inputs, double number, const std::vector<std::string>& arguments) {
  const std::string what = describe(inputs, number);
  try {
    call(inputs, number);
  } catch (const ValueError& error) {
    return check_message(message_of(error), arguments, what);
  } catch (const TypeError& error) {
    return check_message(message_of(error), arguments, what);
  } catch (const std::exception& error) {
    RUSH_CHECK(false, what, " throws no ValueError or TypeError: ", message_of(error));
  }
  RUSH_CHECK(false, what, " has to throw an error");
}

bool reference_takes(TensorList inputs) {
  try {
    reference(inputs, subject().numbers[0]);
  } catch (const Error&) {
    return false;
  }
  return true;
}

Seen check_errors() {
  std::vector<std::string> names;
  for (const Argument& argument : schema_of_operator().arguments) names.push_back(argument.name);
  const Tensors right = random_inputs({2, 4}, kFloat32);
  expect_refused(right, subject().refused, {names.back()});
  names.pop_back();
  int calls = 1;
  for (size_t i = 1; i < right.size(); ++i) {
    Tensors inputs = right;
    DimVector sizes = inputs[i].sizes();
    if (sizes.empty()) continue;
    sizes.back() += 3;
    inputs[i] = ones(sizes);
    if (reference_takes(inputs)) continue;
    expect_refused(inputs, subject().numbers[0], names);
    ++calls;
  }
  return str(calls, " wrong calls are refused, by messages that name operator and argument");
}

// ---- the derivative ----

// Of the tensors that `wanted` picks, all without it.
void check_derivative(bool any_layout, int order, std::optional<size_t> wanted = std::nullopt) {
  for (const double number : subject().numbers) {
    Tensors inputs = random_inputs({3, 4}, kFloat64);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].requires_grad_(!wanted || *wanted == i);
    autograd::GradcheckOptions options;
    options.any_layout = any_layout;
    const auto function = [&](const Tensors& given) { return Tensors{call(given, number)}; };
    RUSH_CHECK(function(inputs)[0].requires_grad(), "the result has no derivative");
    (order == 1 ? autograd::gradcheck : autograd::gradgradcheck)(function, inputs, options);
  }
}

Seen check_gradient() {
  check_derivative(false, 1);
  for (size_t i = 0; i < random_inputs({1, 1}, kFloat64).size(); ++i) check_derivative(false, 1, i);
  return "gradcheck by all tensors and by each alone";
}
Seen check_gradient_layouts() {
  check_derivative(true, 1);
  return "gradcheck of transposed tensors";
}
Seen check_second_gradient() {
  check_derivative(false, 2);
  return "gradgradcheck";
}

// ---- the fused kernel ----

// Calls it for sizes with a tail. The inputs are made before, since the grid's launch may be stopped.
template <class Body>
Seen each_fused_call(const Body& body) {
  int calls = 0;
  for (const Sizes& sizes : std::vector<Sizes>{{2, 256}, {1, 1}, {3, 33}, {2, 1000}}) {
    for (const double number : subject().numbers) {
      body(random_inputs(sizes, kFloat32), number);
      ++calls;
    }
  }
  return str(calls, " calls on the emulated grid");
}

Seen check_fused() {
  return each_fused_call([](const Tensors& inputs, double number) {
    Tensor got;
    try {
      got = fused_on_grid(inputs, number);
    } catch (const grid::Fault& fault) {
      RUSH_CHECK(false, describe(inputs, number), " was stopped: see the item of races");
    }
    compare(got, reference(inputs, number), str("fused: ", describe(inputs, number)));
  });
}

Seen check_races() {
  return each_fused_call([](const Tensors& inputs, double number) { fused_on_grid(inputs, number); }) +
         " without a race";
}

// Bytes of global memory that the kernel asked for, as a share of what its inputs and its output hold.
Seen check_traffic() {
  constexpr double kMost = 1.6;  // what all rows share, such as a weight, may be read for each row
  const Tensors inputs = random_inputs({8, 1024}, kFloat32);
  const Tensor out = fused_on_grid(inputs, subject().numbers[0]);
  int64_t least = out.numel() * 4, sectors = 0;
  for (const Tensor& input : inputs) least += input.numel() * 4;
  for (const grid::Traffic& traffic : grid::traffic()) sectors += traffic.sectors;
  const double times = static_cast<double>(sectors * 32) / static_cast<double>(least);
  RUSH_CHECK(times <= kMost, "the kernel asks global memory for ", times,
             " times the bytes of its inputs and its output; at most ", kMost, " is fused");
  return str(times, " times the bytes of inputs and output");
}

// ---- speed ----

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The fastest of several calls each, in turns: what else the machine does slows both.
Seen check_speed() {
  constexpr double kLeast = 1.1;
  constexpr int kTimes = 15;
  const Tensors inputs = random_inputs({512, 2048}, kFloat32);
  const double number = subject().numbers[0];
  double own = INFINITY, composite = INFINITY;
  for (int time = 0; time < kTimes; ++time) {
    composite = std::min(composite, seconds_of([&] { subject().reference(inputs, number); }));
    own = std::min(own, seconds_of([&] { call(inputs, number); }));
  }
  const double times = composite / own;
  char seen[100];
  std::snprintf(seen, sizeof seen, "%.2f times as fast as the reference: %.2f ms, and %.2f ms", times, own * 1e3,
                composite * 1e3);
  RUSH_CHECK(times >= kLeast, seen, "; at least ", kLeast, " is asked for");
  return seen;
}

constexpr std::pair<const char*, Seen (*)()> kChecks[] = {
    {"schema", check_schema},
    {"values", check_values},
    {"bfloat16", check_bfloat16},
    {"layouts", check_layouts},
    {"edges", check_edges},
    {"meta", check_meta},
    {"errors", check_errors},
    {"gradient", check_gradient},
    {"gradient_layouts", check_gradient_layouts},
    {"second_gradient", check_second_gradient},
    {"fused", check_fused},
    {"races", check_races},
    {"traffic", check_traffic},
    {"speed", check_speed},
};

// Writes the calls of the fused kernel, with what the reference gives, for on_gpu.cu, which says how.
Seen write_calls(const char* path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "wb"), std::fclose);
  RUSH_CHECK(file, "cannot write ", path);
  const auto write = [&](const void* data, size_t bytes) {
    RUSH_CHECK(std::fwrite(data, 1, bytes, file.get()) == bytes, "cannot write ", path);
  };
  return each_fused_call([&](Tensors tensors, double number) {
    const int64_t columns = tensors[0].size(-1);
    const int64_t header[] = {static_cast<int64_t>(tensors.size()), tensors[0].numel() / columns, columns};
    write(header, sizeof header);
    write(&number, sizeof number);
    tensors.push_back(reference(tensors, number).to(kFloat32));
    for (const Tensor& t : tensors) {
      const int64_t count = t.numel();
      write(&count, sizeof count);
      write(t.data_ptr<float>(), t.nbytes());
    }
  });
}

int run(const std::function<Seen()>& body) {
  try {
    manual_seed(1);
    std::puts(body().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::puts(message_of(error).c_str());
    return 1;
  }
}

Seen names_of_arguments() {
  Seen names;
  for (const Argument& argument : schema_of_operator().arguments) names += argument.name + "\n";
  return names;
}

}  // namespace

int check(int argc, char** argv) {
  if (argc < 2) return run(names_of_arguments);
  if (argc == 3 && !std::strcmp(argv[1], "calls")) return run([&] { return write_calls(argv[2]); });
  for (const auto& [name, body] : kChecks) {
    if (!std::strcmp(argv[1], name)) return run(body);
  }
  std::fprintf(stderr, "there is no check %s\n", argv[1]);
  return 2;
}

}  // namespace capstone
