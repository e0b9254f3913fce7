// Every allocation of forward and backward passes, of a training step, of saving and of loading fails once, and for
// good: the program gets an OutOfMemoryError or a std::bad_alloc (a WorkerException from a loader's threads), nothing
// is half done that matters, and what it does then gives the same bits as one that was never disturbed. The optimisers'
// steps have failing_steps.cpp.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/npy.h"
#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/failing_allocations.h"

using namespace rush;
using testing::FailingAllocations;
namespace F = nn::functional;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kStride = 19;  // a point takes long there
#else
constexpr int64_t kStride = 1;
#endif

std::string bits(const Tensor& tensor) {
  if (!tensor.defined()) return "none";
  const Tensor row_major = tensor.detach().contiguous();
  return std::string(static_cast<const char*>(row_major.data_ptr()), static_cast<size_t>(row_major.nbytes()));
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In memory where there is such a file system: thousands of files are written, and flushing each to a disk takes long.
const std::filesystem::path& folder() {
  static const std::filesystem::path path = [] {
    const std::filesystem::path in_memory = "/dev/shm";
    const bool writable = ::access(in_memory.c_str(), W_OK) == 0;
    return (writable ? in_memory : std::filesystem::temp_directory_path()) /
           ("rush-failing-training-" + std::to_string(::getpid()));
  }();
  return path;
}
std::string file(const char* name) { return (folder() / name).string(); }

// What fails and is done again, and what there is to see of it afterwards.
struct Task {
  std::function<void()> run;
  std::function<std::string()> result;
};
struct Case {
  const char* name;
  std::function<Task()> make;
};

// ---- passes ----

// Forward and backward of `loss`, over the gradients of `leaves`.
Task passes(std::vector<Tensor> leaves, std::function<Tensor()> loss) {
  auto value = std::make_shared<Tensor>();
  return {[=] {
            manual_seed(1);
            value->reset();
            for (const Tensor& leaf : leaves) leaf.mutable_grad().reset();
            *value = loss();
            value->backward();
          },
          [=] {
            std::string all = bits(*value);
            for (const Tensor& leaf : leaves) all += bits(leaf.grad());
            return all;
          }};
}

nn::Sequential convnet() {
  manual_seed(0);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 4, 3)), nn::ReLU(), nn::MaxPool2d(nn::MaxPool2dOptions(2)),
                        nn::Flatten(), nn::Dropout(0.2), nn::Linear(4 * 3 * 3, 5));
}
Tensor images() { return arange(0, 2 * 64, kFloat32).sin().reshape({2, 1, 8, 8}); }
Tensor classes() { return tensor(std::vector<int64_t>{3, 1}); }

Task forward() {
  const nn::Sequential net = convnet();
  auto output = std::make_shared<Tensor>();
  return {[=] {
            manual_seed(1);
            const NoGradGuard no_grad;
            *output = net->forward(images());
          },
          [=] { return bits(*output); }};
}

Task convolutions() {
  const nn::Sequential net = convnet();
  return passes(net->parameters(), [=] { return F::cross_entropy(net->forward(images()), classes()); });
}

// Embedding, causal attention and a feed-forward net, as a GPT has them.
Task gpt_block() {
  manual_seed(0);
  const nn::Embedding embedding(11, 8);
  const nn::LayerNorm norm(nn::LayerNormOptions({8})), norm_out(nn::LayerNormOptions({8}));
  const nn::Linear qkv(8, 24), projection(8, 8), up(8, 32), down(32, 8), head(8, 11);
  std::vector<Tensor> leaves;
  for (const nn::Module* each :
       std::initializer_list<const nn::Module*>{embedding.get(), norm.get(), norm_out.get(), qkv.get(),
                                                projection.get(), up.get(), down.get(), head.get()}) {
    for (const Tensor& parameter : each->parameters()) leaves.push_back(parameter);
  }
  return passes(leaves, [=] {
    const Tensor tokens = arange(0, 12, kInt64).remainder(11).reshape({2, 6});
    const Tensor x = embedding(tokens);                                               // (B, T, D)
    const Tensor parts = qkv(norm(x)).reshape({2, 6, 3, 2, 4});                       // (B, T, 3, H, D/H)
    const auto part = [&](int64_t i) { return parts.select(2, i).transpose(1, 2); };  // (B, H, T, D/H)
    const Tensor mixed = scaled_dot_product_attention(part(0), part(1), part(2), std::nullopt, 0.0, true);
    const Tensor y = x + projection(mixed.transpose(1, 2).reshape({2, 6, 8}));
    const Tensor z = y + down(F::gelu(up(norm_out(y))));
    return F::cross_entropy(head(z).reshape({12, 11}), tokens.reshape({12}));
  });
}

struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = 2.0;
    return x * x;
  }
  static Tensors backward(autograd::AutogradContext* ctx, Tensors g) {
    return {g[0] * ctx->get_saved_variables()[0] * ctx->saved_data["factor"].toDouble()};
  }
};

Tensor leaf(int64_t size) { return arange(0, size, kFloat32).cos().requires_grad_(); }

Task custom_function() {
  const Tensor x = leaf(6);
  return passes({x}, [=] { return Square::apply(x.sin()).sum(); });
}

Task checkpointed() {
  const nn::Sequential net = convnet();
  return passes(net->parameters(), [=] {
    const auto segment = [&](const Tensor& x) { return net->forward(x); };
    const Tensor x = images().requires_grad_();
    return F::cross_entropy(autograd::checkpoint(segment, x), classes());
  });
}

Task double_backward() {
  const Tensor x = leaf(5), w = leaf(5);
  return passes({x, w}, [=] {
    const Tensor y = ((x * w).tanh() * x.exp()).sum();
    const Tensors slopes = autograd::grad({y}, {x, w}, {}, std::nullopt, /*create_graph=*/true);
    return slopes[0].square().sum() + slopes[1].norm();
  });
}

// More nodes than fit any buffer, and a node with many edges.
Task long_graph() {
  const Tensor x = leaf(2);
  return passes({x}, [=] {
    Tensor sum = x;
    for (int i = 0; i < 40; ++i) sum = sum + x * 0.5;
    return cat({sum, x, sum, x}).sum();
  });
}

Task training_step() {
  const nn::Sequential net = convnet();
  const auto optimizer = std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions(0.1));
  return {[=] {
            manual_seed(1);
            optimizer->zero_grad();
            F::cross_entropy(net->forward(images()), classes()).backward();
            optimizer->step();
          },
          [=] {
            std::string all;
            for (const Tensor& parameter : net->parameters()) all += bits(parameter);
            return all;
          }};
}

// ---- data ----

struct Points : data::datasets::Dataset<Points> {
  data::Example<> get(size_t index) override {
    return {full({3}, static_cast<double>(index)), full({}, static_cast<int64_t>(index), kInt64)};
  }
  std::optional<size_t> size() const override { return 10; }
};

struct Chunks : data::datasets::ChunkDataReader<int> {
  std::vector<int> read_chunk(size_t chunk) override { return std::vector<int>(5, static_cast<int>(chunk)); }
  size_t chunk_count() override { return 4; }
  void reset() override {}
};

// An epoch, in threads of its own.
template <class Epoch>
Task loading(Epoch epoch) {
  auto seen = std::make_shared<std::string>();
  return {[=] {
            seen->clear();
            std::string all;
            epoch(all);
            *seen = all;
          },
          [=] { return *seen; }};
}

Task data_loader() {
  return loading([](std::string& seen) {
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
        Points().map(data::transforms::Stack<>()), data::DataLoaderOptions().batch_size(4).workers(2));
    for (const data::Example<>& batch : *loader) seen += bits(batch.data) + bits(batch.target);
  });
}

Task chunks() {
  return loading([](std::string& seen) {
    using data::samplers::SequentialSampler;
    data::datasets::ChunkDataset<Chunks, SequentialSampler, SequentialSampler> dataset(
        Chunks(), SequentialSampler(0), SequentialSampler(0), {2, 3, 12});
    dataset.reset();
    while (const auto batch = dataset.get_batch()) {
      for (const int each : *batch) seen += std::to_string(each);
    }
  });
}

// ---- files ----

io::NamedTensors named_tensors() {
  return {{"weights", arange(0, 12, kFloat32).reshape({3, 4}).t()},
          {"counts", tensor(std::vector<int64_t>{1, 2, 3})},
          {"flags", tensor(std::vector<int64_t>{1, 0}).to(kBool)}};
}

std::string bits(const io::NamedTensors& tensors) {
  std::string all;
  for (const auto& [name, tensor] : tensors) all += name + bits(tensor);
  return all;
}

// Saving over an older file, which must stay as it was until the new one is there.
Task saves(const char* name, std::function<void(const std::string&)> save) {
  const std::string path = file(name);
  io::write_file_atomically(path, "an older file");
  return {[=] {
            try {
              save(path);
            } catch (...) {
              if (content(path) != "an older file") throw std::logic_error("a failed save has left a part of a file");
              throw;
            }
          },
          [=] { return content(path); }};
}

template <class Load>
Task loads(Load load) {
  auto loaded = std::make_shared<io::NamedTensors>();
  return {[=] { *loaded = load(); }, [=] { return bits(*loaded); }};
}

struct Trained {
  nn::Sequential net = convnet();
  optim::Adam optimizer{net->parameters(), optim::AdamOptions(0.1)};
  int64_t step = 7;
  std::string text = "what was trained";
  Checkpoint checkpoint;

  Trained() {
    for (const Tensor& parameter : net->parameters()) parameter.mutable_grad() = ones_like(parameter);
    optimizer.step();
    checkpoint.add("net", *net).add("optimizer", optimizer).add("step", step).add("text", text);
  }
  std::string all_bits() const {
    std::string all = text + std::to_string(step);
    for (const Tensor& parameter : net->parameters()) all += bits(parameter);
    for (const auto& item : optimizer.state_dict()) all += item.key() + bits(item.value());
    return all;
  }
};

Task load_checkpoint() {
  const std::string path = file("checkpoint");
  Trained().checkpoint.save(path);
  const auto trained = std::make_shared<Trained>();
  {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : trained->net->parameters()) parameter.zero_();
  }
  trained->step = 0;
  trained->text = "before";
  const std::string before = trained->all_bits();
  return {[=] {
            try {
              trained->checkpoint.load(path);
            } catch (...) {
              if (trained->all_bits() != before) throw std::logic_error("a failed load has changed something");
              throw;
            }
          },
          [=] { return trained->all_bits(); }};
}

std::vector<Case> cases() {
  const auto save_npz = [](const std::string& path) { io::save_npz(path, named_tensors()); };
  const auto save_safetensors = [](const std::string& path) { io::save_safetensors(path, named_tensors()); };
  return {{"forward", forward},
          {"convolutions", convolutions},
          {"GPT block", gpt_block},
          {"custom function", custom_function},
          {"checkpointed", checkpointed},
          {"double backward", double_backward},
          {"long graph", long_graph},
          {"training step", training_step},
          {"data loader", data_loader},
          {"chunk dataset", chunks},
          {"save a checkpoint",
           [] {
             const auto trained = std::make_shared<Trained>();
             return saves("saved", [trained](const std::string& path) { trained->checkpoint.save(path); });
           }},
          {"load a checkpoint", load_checkpoint},
          {"save safetensors", [=] { return saves("safetensors", save_safetensors); }},
          {"load safetensors",
           [=] {
             save_safetensors(file("safetensors"));
             return loads([] { return io::load_safetensors(file("safetensors")); });
           }},
          {"save npy", [] { return saves("npy", [](const auto& path) { io::save_npy(path, images()); }); }},
          {"load npy",
           [] {
             io::save_npy(file("npy"), images());
             return loads([] { return io::NamedTensors{{"npy", io::load_npy(file("npy"))}}; });
           }},
          {"save npz", [=] { return saves("npz", save_npz); }},
          {"load npz", [=] {
             save_npz(file("npz"));
             return loads([] { return io::load_npz(file("npz")); });
           }}};
}

// ---- failing ----

// Where the program is, for the message when it ends.
const char* current_case = "";
int64_t current_point = 0;

void say_where_it_ended() {
  std::printf("%s: std::terminate at allocation %lld\n", current_case, static_cast<long long>(current_point));
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    std::printf("  %s\n", error.what());
  } catch (...) {
  }
  std::fflush(stdout);
  std::abort();
}

// Whether allocation number `at` was reached.
bool fails_at(const Case& c, const std::string& undisturbed, int64_t at, bool for_good, int& wrong) {
  current_point = at;
  const Task task = c.make();
  bool failed = false, thrown = false;
  {
    const FailingAllocations refused(at, for_good);
    try {
      task.run();
    } catch (const OutOfMemoryError&) {
      thrown = true;
    } catch (const std::bad_alloc&) {
      thrown = true;
    } catch (const data::WorkerException&) {
      thrown = true;
    }
    failed = refused.failed();
  }
  if (thrown) task.run();
  if (task.result() != undisturbed) {
    std::printf("%s, allocation %lld%s: other bits\n", c.name, static_cast<long long>(at),
                for_good ? " and all after it" : "");
    ++wrong;
  }
  return failed;
}

int run(const Case& c) {
  current_case = c.name;
  const Task task = c.make();
  task.run();
  const std::string undisturbed = task.result();
  int wrong = 0;
  int64_t points = 0;
  for (const bool for_good : {false, true}) {
    for (int64_t at = 1; wrong < 10 && fails_at(c, undisturbed, at, for_good, wrong); at += kStride) ++points;
  }
  std::printf("%-20s %5lld points, %d wrong\n", c.name, static_cast<long long>(points), wrong);
  std::fflush(stdout);
  return wrong + (points == 0 ? 1 : 0);
}

}  // namespace

int main() {
  std::set_terminate(say_where_it_ended);
  testing::FailingAllocator::install();
  std::filesystem::create_directories(folder());
  int wrong = 0;
  for (const Case& c : cases()) wrong += run(c);
  std::filesystem::remove_all(folder());
  return wrong == 0 ? 0 : 1;
}
