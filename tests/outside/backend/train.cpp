// Trains a convolutional network on the CPU and on the simulated device, and ends with 0 if all losses are the same,
// bit for bit. `train [FOLDER OF MNIST]`.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "sim.h"

using namespace rush;

namespace {

int failures = 0;

void check(bool ok, const std::string& what) {
  if (ok) return;
  std::printf("failed: %s\n", what.c_str());
  ++failures;
}

struct NetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear hidden{nullptr}, out{nullptr};

  NetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 8, 3)));
    norm = register_module("norm", nn::BatchNorm2d(8));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(8, 16, 3)));
    hidden = register_module("hidden", nn::Linear(16 * 5 * 5, 64));
    out = register_module("out", nn::Linear(64, 10));
  }
  Tensor forward(Tensor x) {
    x = max_pool2d(relu(norm(conv1(x))), 2);
    x = max_pool2d(relu(conv2(x)), 2);
    x = dropout(relu(hidden(x.flatten(1))), 0.25, is_training());
    return out(x);
  }
};
RUSH_MODULE(Net);

struct Digits {
  Tensor images, targets;
};

Digits digits(const char* folder) {
  if (folder && *folder) {
    const data::datasets::MNIST mnist(folder);
    return {mnist.images().slice(0, 0, 2048), mnist.targets().slice(0, 0, 2048)};
  }
  manual_seed(3);
  const Tensor targets = randint(10, {512}, kInt64);
  return {rand({512, 1, 28, 28}) + targets.view({-1, 1, 1, 1}).to(kFloat32) / 10, targets};
}

template <class Optimizer, class Options>
std::vector<float> losses(const Digits& digits, Device device, const Options& options) {
  manual_seed(7);
  Net net;
  net->to(device);
  manual_seed(8);  // dropout draws from the generator of its device
  Optimizer optimizer(net->parameters(), options);
  std::vector<float> losses;
  for (int64_t begin = 0; begin < digits.images.size(0); begin += 64) {
    const Tensor images = digits.images.slice(0, begin, begin + 64),
                 targets = digits.targets.slice(0, begin, begin + 64);
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net(images.to(device)), targets.to(device));
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

// The name of the device, as text, in files, and where there is no such device.
void check_names(DeviceType type) {
  check(Device("sim:1") == Device(type, 1), "sim:1 parses");
  check(Device(type, 1).str() == "sim:1" && Device("sim").str() == "sim", "prints its name");
  const Tensor x = arange(6, Device("sim:1")).view({2, 3});
  check(x.device() == Device(type, 1), "factories take it");
  std::ostringstream text;
  text << x;
  check(text.str().find("sim:1") != std::string::npos, "a tensor prints where it is: " + text.str());
  const auto throws = [](const char* text) {
    try {
      ones({2}, Device(text));
    } catch (const ValueError&) {
      return true;
    }
    return false;
  };
  { const DeviceStart start(Device("sim:1")), none(kCPU); }
  check(sim::started_device() == 1, "started");
  check(throws("sim:2") && throws("simulator") && throws("sim:x"), "other names are refused");
  save(x, "sim.safetensors");
  Tensor loaded;
  load(loaded, "sim.safetensors", Device("sim:0"));
  check(loaded.device() == Device(type, 0) && equal(loaded.cpu(), x.cpu()), "saved and loaded");
  std::remove("sim.safetensors");
}

// What no kernel is there for: views of one memory, outputs of several kinds, sorting, random numbers, linear algebra.
void check_fallbacks() {
  manual_seed(5);
  const Tensor cpu = randn({6, 8});
  const Tensor there = cpu.to("sim");
  const auto same = [](const Tensor& a, const Tensor& b) { return equal(a.cpu(), b); };
  check(same(there.t().exp(), cpu.t().exp()), "exp of a transposed matrix");
  check(same(std::get<1>(there.sort(1)), std::get<1>(cpu.sort(1))), "sort");
  check(same(there.cumsum(0), cpu.cumsum(0)) && same(there.var(1), cpu.var(1)), "cumsum, var");
  check(same(linalg_solve(there.slice(1, 0, 6), there), linalg_solve(cpu.slice(1, 0, 6), cpu)), "solve");
  check(same(there.index({there > 0}), cpu.index({cpu > 0})), "a mask");
  check(same(there.to(kBFloat16).matmul(there.t().to(kBFloat16)), cpu.to(kBFloat16).matmul(cpu.t().to(kBFloat16))),
        "bfloat16");
  Tensor a = cpu.clone(), b = there.clone();
  a.slice(1, 1, 5).sigmoid_();
  b.slice(1, 1, 5).sigmoid_();
  a.select(0, 2).index_fill_(0, tensor({0, 7}), 4.0);
  b.select(0, 2).index_fill_(0, tensor({0, 7}).to("sim"), 4.0);
  check(same(b, a), "writes through views");
  manual_seed(11);
  const Tensor drawn = randn({100}, Device("sim"));
  manual_seed(11);
  check(same(drawn, randn({100})), "the same random numbers");
  check(same(there.to("sim:1") + there.to("sim:1"), cpu + cpu), "the second device");
  bool refused = false;
  try {
    there + there.to("sim:1");
  } catch (const ValueError&) {
    refused = true;
  }
  check(refused, "tensors of two devices");
}

sigjmp_buf after_fault;

// The memory is not to be read from here: otherwise the checks above would prove nothing.
void check_protection() {
  const Tensor x = ones({4}, Device("sim"));
  std::signal(SIGSEGV, [](int) { siglongjmp(after_fault, 1); });
  bool read = false;
  if (sigsetjmp(after_fault, 1) == 0) {
    const volatile float* data = x.data_ptr<float>();
    read = data[0] == 1;
  }
  std::signal(SIGSEGV, SIG_DFL);
  check(!read, "the CPU cannot read the memory");
}

}  // namespace

int main(int count, char** arguments) {
  const DeviceType type = sim::add_device();
  check_protection();
  check_names(type);
  check_fallbacks();
  const Digits all = digits(count > 1 ? arguments[1] : nullptr);
  const auto sgd = optim::SGDOptions(0.05).momentum(0.9);
  const auto adam = optim::AdamWOptions(1e-3);
  const auto here = losses<optim::SGD>(all, kCPU, sgd), there = losses<optim::SGD>(all, "sim", sgd);
  check(here == there, "SGD's losses are the CPU's");
  check(losses<optim::AdamW>(all, kCPU, adam) == losses<optim::AdamW>(all, "sim", adam),
        "AdamW's losses are the CPU's");
  check(there.back() < there.front(), "the loss falls");
  std::printf("%d kernels of its own, called %d times; loss %g, then %g\n", sim::kernel_count(), sim::kernel_calls(),
              static_cast<double>(there.front()), static_cast<double>(there.back()));
  return failures == 0 ? 0 : 1;
}
