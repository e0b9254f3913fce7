// Fuzzes Checkpoint::load, behind its checksum: a file loads completely, and the run goes on from there, or it throws
// and the run is as it was.
#include "optim/state/checkpoint.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "rushlight.h"
#include "tests/fuzz/safetensors_file.h"
#include "tests/fuzz/target.h"

namespace {

using namespace rush;

struct NetImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
  NetImpl() {
    fc = register_module("fc", nn::Linear(2, 2));
    bn = register_module("bn", nn::BatchNorm1d(2));
  }
  Tensor forward(const Tensor& x) { return bn(fc(x)); }
};
RUSH_MODULE(Net);

// A training run with a part of every kind.
struct Run {
  Net net;
  optim::AdamW adam;
  optim::OneCycleLR schedule;
  std::unique_ptr<data::DataLoader<data::datasets::TensorDataset, data::samplers::RandomSampler>> loader;
  Generator generator = default_generator();
  bool warm = true;
  int64_t epoch = 3;
  double best = 0.5;
  std::string note = "note";
  std::vector<int64_t> order = {3, 1};
  std::vector<double> losses = {0.25};

  Run()
      : adam(net->parameters(), optim::AdamWOptions(0.01)),
        schedule(adam, 0.1, 100),
        loader(data::make_data_loader<data::samplers::RandomSampler>(
            data::datasets::TensorDataset(arange(12, kFloat32).view({6, 2})), data::DataLoaderOptions(2))) {
    step();
  }

  Checkpoint checkpoint() {
    Checkpoint all;
    all.add("net", net).add("adam", adam).add("schedule", schedule).add("random", generator).add("loader", *loader);
    all.add("warm", warm).add("epoch", epoch).add("best", best).add("note", note).add("order", order);
    all.add("losses", losses).expect("task", "fuzz");
    return all;
  }

  void step() {
    for (const auto& batch : *loader) {
      std::vector<Tensor> rows;
      for (const auto& example : batch) rows.push_back(example.data);
      adam.zero_grad();
      net(stack(rows)).square().sum().backward();
      adam.step();
      schedule.step();
      break;
    }
  }

  // Every byte of the state.
  std::string bytes() {
    std::string all = str(warm, ' ', epoch, ' ', best, ' ', note, ' ');
    const auto add = [&](const optim::StateDict& dict) {
      for (const auto& item : dict) {
        const Tensor value = item.value().detach().contiguous();
        all.append(item.key()).append(static_cast<const char*>(value.data_ptr()), static_cast<size_t>(value.nbytes()));
      }
    };
    add(state_dict(*net));
    add(adam.state_dict());
    add(schedule.state_dict());
    add(loader->state_dict());
    for (const uint8_t byte : generator.get_state()) all += static_cast<char>(byte);
    for (const int64_t value : order) all += str(value, ' ');
    for (const double value : losses) all += str(value, ' ');
    return all;
  }
};

Run& run() {
  static Run* const run = new Run;
  return *run;
}

const std::string& saved() {
  static const std::string content = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "rush-fuzz-XXXXXX").string();
    if (!::mkdtemp(folder.data())) fuzz::fail("cannot make a temporary folder");
    run().checkpoint().save(folder + "/checkpoint");
    std::ifstream file(folder + "/checkpoint", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove_all(folder);
    return bytes;
  }();
  return content;
}

std::vector<std::string> seeds() { return {saved()}; }

void repair(std::string& file) {
  fuzz::repair_length(file);
  fuzz::repair_checksum(file);
}

// Goes on from what was loaded; values that make no sense may be refused.
void go_on() {
  try {
    run().step();
    run().bytes();
  } catch (const Error& error) {
    fuzz::check_error(error);
  }
  static fuzz::MemoryFile file;
  file.write(saved());
  run().checkpoint().load(file.path());
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, fuzz::mutate_safetensors, repair}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  saved();
  return fuzz::test_reader(data, size, [](const std::string& path) {
    static const std::string before = run().bytes();
    try {
      run().checkpoint().load(path);
    } catch (...) {
      if (run().bytes() != before) fuzz::fail("a checkpoint that does not load changed the run");
      throw;
    }
    go_on();
    if (run().bytes() != before) fuzz::fail("a checkpoint that loads does not bring the run back");
  });
}
