// Examples per second that a DataLoader hands out: MNIST's training set (digits that the examples draw where it is not
// at hand), shuffled, in batches of 64, one epoch an iteration. The same loops written for PyTorch and libtorch are in
// benchmarks/peers.
#include <benchmark/benchmark.h>

#include "examples/mnist/digit_sets.h"
#include "rushlight.h"

namespace {

using namespace rush;
namespace transforms = data::transforms;

constexpr size_t kBatch = 64;
constexpr double kMean = 0.1307, kDeviation = 0.3081;  // of MNIST's pixels

const examples::DigitSet& digits() {
  static const examples::DigitSet train = examples::load_digits("", /*seed=*/0).train;
  return train;
}

// Images that are floats already, as torch::data::datasets::MNIST holds them.
struct Floats : data::datasets::Dataset<Floats> {
  Tensor images = digits().images, targets = digits().targets;
  data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {images[i], targets[i]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(targets.size(0)); }
};

// Images as bytes, made floats one by one: what torchvision's ToTensor does.
struct Bytes : data::datasets::Dataset<Bytes> {
  Tensor images = digits().images.mul(255).round().to(kUInt8), targets = digits().targets;
  data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {images[i].to(kFloat32).div(255), targets[i]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(targets.size(0)); }
};

template <class Images>
void epoch(benchmark::State& state) {
  const auto workers = static_cast<size_t>(state.range(0));
  auto loader =
      data::make_data_loader(Images().map(transforms::Normalize<>({kMean}, {kDeviation})).map(transforms::Stack<>()),
                             data::DataLoaderOptions().batch_size(kBatch).workers(workers));
  int64_t examples = 0;
  for (auto _ : state) {
    for (const data::Example<>& batch : *loader) examples += batch.data.size(0);
  }
  state.SetItemsProcessed(examples);
}

void arguments(benchmark::internal::Benchmark* bench) {
  for (const int workers : {0, 1, 2, 4}) bench->Arg(workers);
  bench->ArgName("workers")->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(epoch<Floats>)->Name("data_loader/floats")->Apply(arguments);
BENCHMARK(epoch<Bytes>)->Name("data_loader/bytes")->Apply(arguments);

}  // namespace
