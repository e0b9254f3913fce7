// Memory stays flat over 10,000 training steps with a DataLoader and its threads, dropout, an optimiser and a schedule.
#include <cstdio>
#include <fstream>
#include <optional>

#ifdef __unix__
#include <unistd.h>
#endif

#include "rushlight.h"

using namespace rush;
namespace F = nn::functional;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // freed memory is kept back, and a step takes long
#else
constexpr bool kSanitized = false;
#endif

constexpr int64_t kExamples = 640, kBatch = 32, kFeatures = 32, kClasses = 10;
constexpr int64_t kEpochs = kSanitized ? 40 : 500, kWarmUp = kSanitized ? 10 : 50;  // of 20 steps
constexpr int64_t kSteps = (kEpochs - kWarmUp) * (kExamples / kBatch);

// The loader's threads have ended, and with them the counts that each thread keeps for itself: tensors hold the same
// bytes, to the last one.
constexpr int64_t kAllocatedBound = 0;
// How many blocks are in use at once depends on how far the threads happen to be: at most four batches, 18 KB each, and
// in each of the two threads the examples that they are made of, 64 of at most 128 bytes and as many temporaries.
constexpr int64_t kReservedBound = 4 * 18'000 + 2 * 4 * 64 * 128;
// Half of what it would cost if each step forgot one tensor of the smallest block; the rest is the leeway of malloc,
// which has an arena for each thread.
constexpr int64_t kResidentBound = kSteps * (64 + static_cast<int64_t>(sizeof(TensorImpl))) / 2;

struct Memory {
  int64_t allocated, reserved;
  std::optional<int64_t> resident;

  static Memory now() {
    const AllocatorStats stats = allocator(kCPU).stats();
    return {stats.allocated, stats.reserved, resident_bytes()};
  }

 private:
  // Of the whole process, where the system says it as Linux does.
  static std::optional<int64_t> resident_bytes() {
#ifdef __unix__
    std::ifstream file("/proc/self/statm");
    int64_t all = 0, resident = 0;
    if (file >> all >> resident) return resident * ::sysconf(_SC_PAGESIZE);
#endif
    return std::nullopt;
  }
};

struct Points : data::datasets::Dataset<Points> {
  Tensor points = randn({kExamples, kFeatures}), targets = randint(0, kClasses, {kExamples}, kInt64);
  data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {points[i].add(1), targets[i]};
  }
  std::optional<size_t> size() const override { return kExamples; }
};

bool stays_below(const char* what, int64_t growth, int64_t bound) {
  std::printf("%s: %+lld bytes, at most %lld are accepted\n", what, static_cast<long long>(growth),
              static_cast<long long>(bound));
  return growth <= bound;
}

}  // namespace

int main() {
  manual_seed(0);
  nn::Sequential net(nn::Linear(kFeatures, 64), nn::ReLU(), nn::Dropout(0.2), nn::Linear(64, kClasses));
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  optim::CosineAnnealingWarmRestarts schedule(optimizer, /*T_0=*/1000);
  const Points points;
  const auto train = [&](int64_t epochs) {
    auto loader = data::make_data_loader(Points(points).map(data::transforms::Stack<>()),
                                         data::DataLoaderOptions().batch_size(kBatch).workers(2));
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      for (const data::Example<>& batch : *loader) {
        optimizer.zero_grad();
        F::cross_entropy(net->forward(batch.data), batch.target).backward();
        optimizer.step();
        schedule.step();
      }
    }
    loader->join();
    return Memory::now();
  };

  const Memory before = train(kWarmUp), after = train(kEpochs - kWarmUp);
  std::printf("after %lld steps:\n", static_cast<long long>(kSteps));
  bool flat = stays_below("allocated", after.allocated - before.allocated, kAllocatedBound);
  flat &= stays_below("reserved", after.reserved - before.reserved, kReservedBound);
  if (!kSanitized && after.resident && before.resident) {
    flat &= stays_below("resident", *after.resident - *before.resident, kResidentBound);
  }
  return flat ? 0 : 1;
}
