// Data: samplers, transforms, chunks, stateful and iterable sources, worker threads, and the queue and the sequencer
// beneath them.
#include <torch/torch.h>

#include <iostream>
#include <numeric>
#include <thread>

namespace data = torch::data;

struct Numbers : data::datasets::BatchDataset<Numbers, std::vector<int>> {
  std::vector<int> get_batch(torch::ArrayRef<size_t> indices) override {
    std::vector<int> batch;
    for (size_t i : indices) batch.push_back(static_cast<int>(i * i));
    return batch;
  }
  torch::optional<size_t> size() const override { return 10; }
};

// Counts up to a limit; every batch takes what comes next.
struct Stream : data::datasets::StatefulDataset<Stream, std::vector<int>, size_t> {
  torch::optional<std::vector<int>> get_batch(size_t n) override {
    if (next >= 7) return torch::nullopt;
    std::vector<int> batch;
    while (n-- > 0 && next < 7) batch.push_back(next++);
    return batch;
  }
  torch::optional<size_t> size() const override { return torch::nullopt; }
  void reset() override { next = 0; }
  void save(torch::serialize::OutputArchive& archive) const override { archive.write("next", torch::tensor(next)); }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor value;
    archive.read("next", value);
    next = value.item<int>();
  }
  int next = 0;
};

struct Reader : data::datasets::ChunkDataReader<int> {
  using BatchType = data::datasets::ChunkDataReader<int>::ChunkType;
  std::vector<int> read_chunk(size_t index) override {
    std::vector<int> chunk(3 + index);
    std::iota(chunk.begin(), chunk.end(), static_cast<int>(100 * index));
    return chunk;
  }
  size_t chunk_count() override { return 3; }
  void reset() override {}
};

template <class Sampler, class... Args>
static void indices(const char* name, Sampler sampler, size_t batch, const Args&... args) {
  std::cout << name << ":";
  sampler.reset(args...);
  while (auto next = sampler.next(batch)) std::cout << " [" << *next << "]";
  std::cout << "\n";
}

int main() {
  torch::manual_seed(4);
  indices("sequential", data::samplers::SequentialSampler(7), 3);
  indices("random", data::samplers::RandomSampler(7), 4);
  indices("half", data::samplers::DistributedSequentialSampler(10, 2, 1, /*allow_duplicates=*/false), 3);
  indices("random half", data::samplers::DistributedRandomSampler(10, 2, 0), 5);
  {
    data::samplers::StreamSampler sampler(/*epoch_size=*/5);
    while (auto batch = sampler.next(2)) std::cout << batch->size() << " ";
    std::cout << "\n";
  }
  {
    data::samplers::RandomSampler sampler(6);
    auto first = sampler.next(2);
    torch::serialize::OutputArchive out;
    sampler.save(out);
    std::stringstream stream;
    out.save_to(stream);
    torch::serialize::InputArchive in;
    in.load_from(stream);
    data::samplers::RandomSampler other(6);
    other.load(in);
    std::cout << sampler.index() << other.index() << (*sampler.next(4) == *other.next(4)) << "\n";
  }

  auto loader = data::make_data_loader(
      Numbers().map(data::transforms::BatchLambda<std::vector<int>, int>(
          [](std::vector<int> batch) { return std::accumulate(batch.begin(), batch.end(), 0); })),
      data::samplers::SequentialSampler(10), data::DataLoaderOptions(4).workers(2));
  for (int sum : *loader) std::cout << sum << " ";
  std::cout << loader->options().batch_size << loader->options().workers << loader->options().enforce_ordering << "\n";

  auto shared = data::datasets::make_shared_dataset<Stream>();
  auto stream = data::make_data_loader(shared, data::DataLoaderOptions().batch_size(3));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *stream) std::cout << "[" << batch << "] ";
    std::cout << shared->next << "\n";
  }

  auto chunks = data::datasets::make_shared_dataset<
      data::datasets::ChunkDataset<Reader, data::samplers::SequentialSampler, data::samplers::SequentialSampler>>(
      Reader(), data::samplers::SequentialSampler(0), data::samplers::SequentialSampler(0),
      data::datasets::ChunkDatasetOptions(/*preloader_count=*/1, /*batch_size=*/4));
  auto chunk_loader = data::make_data_loader(chunks, data::DataLoaderOptions(4).workers(0));
  for (auto& batch : *chunk_loader) std::cout << "[" << batch << "] ";
  std::cout << "\n";

  data::datasets::TensorDataset tensors(torch::arange(12).view({6, 2}));
  auto stacked = tensors.map(data::transforms::Stack<data::TensorExample>());
  std::cout << stacked.get_batch({1, 4}).data << stacked.size().value() << "\n";
  auto normal = data::transforms::Normalize<>(std::vector<double>{1.0, 2.0}, 0.5);
  std::cout << normal.apply(data::Example<>(torch::ones({2, 1, 1}), torch::zeros({1}))).data.flatten() << "\n";

  data::detail::Queue<int> queue;
  std::thread producer([&] {
    for (int i = 0; i < 3; ++i) queue.push(i);
  });
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += queue.pop();
  producer.join();
  queue.push(5);
  queue.push(6);
  std::cout << sum << queue.clear() << "\n";
  try {
    queue.pop(std::chrono::milliseconds(10));
  } catch (const c10::Error& e) {
    std::cout << (std::string(e.what()).find("Timeout") != std::string::npos) << "\n";
  }
  struct Result {
    size_t sequence_number;
  };
  data::detail::sequencers::OrderedSequencer<Result> sequencer(3);
  std::vector<size_t> arrived = {2, 0, 1};
  for (int i = 0; i < 3; ++i) {
    auto result = sequencer.next([&]() -> torch::optional<Result> {
      if (arrived.empty()) return torch::nullopt;
      Result r{arrived.front()};
      arrived.erase(arrived.begin());
      return r;
    });
    std::cout << result->sequence_number;
  }
  std::cout << "\n";
  return 0;
}
