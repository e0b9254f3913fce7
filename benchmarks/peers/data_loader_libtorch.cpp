// libtorch's side of benchmarks/data_loader.cpp ("floats"): its MNIST dataset, Normalize, Stack and DataLoader.
//   data_loader_libtorch FOLDER [WORKERS...]      FOLDER holds train-images-idx3-ubyte and train-labels-idx1-ubyte
// Compile with -O2 -std=c++17 against libtorch: -ltorch -ltorch_cpu -lc10. One line for each number of workers.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr size_t kBatch = 64;
constexpr double kMinSeconds = 2;

void measure(const std::string& folder, size_t workers) {
  namespace data = torch::data;
  auto loader = data::make_data_loader<data::samplers::RandomSampler>(
      data::datasets::MNIST(folder).map(data::transforms::Normalize<>(0.1307, 0.3081)).map(data::transforms::Stack<>()),
      data::DataLoaderOptions().batch_size(kBatch).workers(workers));
  int64_t examples = 0;
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  while (seconds < kMinSeconds) {
    for (const auto& batch : *loader) examples += batch.data.size(0);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::printf("libtorch floats workers %zu: %.0f examples/s\n", workers, static_cast<double>(examples) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: data_loader_libtorch FOLDER [WORKERS...]"), 2;
  std::vector<std::string> workers(argv + 2, argv + argc);
  if (workers.empty()) workers = {"0", "1", "2", "4"};
  for (const std::string& each : workers) measure(argv[1], std::stoul(each));
}
