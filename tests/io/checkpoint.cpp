#include "optim/state/checkpoint.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/io/file_size_limit.h"
#include "tests/io/load_failure.h"
#include "tests/temporary_folder.h"

using namespace rush;
using rush::testing::file_content;
using rush::testing::FileSizeLimit;
using rush::testing::refusal;
using rush::testing::TemporaryFolder;

namespace {

struct DropoutNetImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
  nn::Dropout drop{nullptr};
  explicit DropoutNetImpl(int64_t width) {
    fc = register_module("fc", nn::Linear(2, width));
    bn = register_module("bn", nn::BatchNorm1d(width));
    drop = register_module("drop", nn::Dropout(0.5));
  }
  Tensor forward(const Tensor& x) { return drop(bn(fc(x))); }
};
RUSH_MODULE(DropoutNet);

// A small training run with a part of every kind.
struct Run {
  DropoutNet net;
  optim::AdamW adam;
  optim::OneCycleLR schedule;
  std::unique_ptr<data::DataLoader<data::datasets::TensorDataset, data::samplers::RandomSampler>> loader;
  bool warm = false;
  int64_t epoch = 0;
  double best = 1e300;
  std::string note;
  std::vector<int64_t> empty, order = {3, 1};
  std::vector<double> losses;

  explicit Run(int64_t width = 3, double lr = 0.01)
      : net(width),
        adam(net->parameters(), optim::AdamWOptions(lr)),
        schedule(adam, 0.1, 100),
        loader(data::make_data_loader<data::samplers::RandomSampler>(
            data::datasets::TensorDataset(arange(46, kFloat32).view({23, 2}).div(46)),
            data::DataLoaderOptions(4).workers(1))) {}

  Checkpoint checkpoint() {
    Checkpoint all;
    all.add("net", net).add("adam", adam).add("schedule", schedule).add("random", default_generator());
    all.add("loader", *loader).add("warm", warm).add("epoch", epoch).add("best", best).add("note", note);
    all.add("empty", empty).add("order", order).add("losses", losses).expect("task", "test");
    return all;
  }

  // Until `stop` losses are known; calls `each` after every step.
  template <class Each = void (*)()>
  void train(
      size_t stop, const Each& each = [] {}) {
    while (losses.size() < stop) {
      for (const auto& batch : *loader) {
        std::vector<Tensor> rows;
        for (const auto& example : batch) rows.push_back(example.data);
        const Tensor loss = net(stack(rows)).square().sum();
        adam.zero_grad();
        loss.backward();
        adam.step();
        schedule.step();
        losses.push_back(loss.item<double>());
        best = std::min(best, losses.back());
        warm = true;
        note = str("step ", losses.size());
        each();
        if (losses.size() == stop) return;
      }
      ++epoch;
    }
  }

  // Everything as bytes.
  std::string bytes(const TemporaryFolder& folder) {
    checkpoint().save(folder / "bytes");
    return file_content(folder / "bytes");
  }
};

}  // namespace

TEST_CASE("Checkpoint: a run that is loaded goes on bit by bit, from any step") {
  const TemporaryFolder folder;
  manual_seed(3);
  Run whole;
  const auto save = [&] { whole.checkpoint().save(folder / str(whole.losses.size())); };
  save();
  whole.train(20, save);
  const std::string expected = whole.bytes(folder);
  for (const size_t stop : {0, 1, 5, 6, 7, 12}) {
    CAPTURE(stop);
    manual_seed(99);
    Run other;
    other.train(3);
    other.checkpoint().load(folder / str(stop));
    CHECK(other.losses.size() == stop);
    CHECK(other.bytes(folder) == file_content(folder / str(stop)));
    other.train(20);
    CHECK(other.bytes(folder) == expected);
  }
}

TEST_CASE("Checkpoint: the file is one of tensors by name") {
  const TemporaryFolder folder;
  Run run;
  run.train(2);
  run.checkpoint().save(folder / "a");
  const io::SafetensorsFile file(folder / "a");
  CHECK(file.read("net.fc.weight").equal(run.net->fc->weight.detach()));
  CHECK(file.read("adam.state.0.step").item<int64_t>() == 2);
  CHECK(file.read("epoch").item<int64_t>() == 0);
  CHECK(file.read("losses").numel() == 2);
  CHECK(file.metadata().at("rushlight.kind") == "checkpoint");
}

TEST_CASE("Checkpoint: names of parts are checked") {
  Run run;
  Checkpoint checkpoint;
  checkpoint.add("net", run.net);
  for (const char* bad : {"", "net", "a.b"}) CHECK_THROWS_AS(checkpoint.add(bad, run.epoch), ValueError);
  CHECK_THROWS_AS(checkpoint.add("x", std::shared_ptr<DropoutNetImpl>()), ValueError);
}

TEST_CASE("Checkpoint: a setting that may change is noted, but not by a load that fails") {
  const TemporaryFolder folder;
  int64_t epoch = 3;
  Checkpoint saved;
  saved.add("epoch", epoch).expect("rate", "0.1").expect("seed", "1").save(folder / "a");

  std::vector<std::string> changes = {"before"};
  Checkpoint strict, free, other_seed;
  strict.add("epoch", epoch).expect("rate", "0.2").expect("seed", "1");
  CHECK(refusal<ValueError>([&] { strict.load(folder / "a"); }).find("rate: saved with '0.1', now '0.2'") !=
        std::string::npos);
  other_seed.add("epoch", epoch).expect("rate", "0.2", &changes).expect("seed", "2");
  CHECK_THROWS_AS(other_seed.load(folder / "a"), ValueError);
  CHECK(changes == std::vector<std::string>{"before"});
  free.add("epoch", epoch).expect("rate", "0.2", &changes).expect("seed", "1", &changes);
  for (int i = 0; i < 2; ++i) free.load(folder / "a");
  const std::string line = "rate: saved with '0.1', now '0.2'";
  CHECK(changes == std::vector<std::string>{"before", line, line});
}

TEST_CASE("Checkpoint: one that does not fit names all reasons in one line, and no part changes") {
  const TemporaryFolder folder;
  manual_seed(5);
  Run run, wide(4);
  wide.train(2);
  Checkpoint other;
  int64_t more = 1;
  double epoch = 0.5;
  std::vector<double> random = {1};
  other.add("net", wide.net).add("adam", wide.adam).add("schedule", wide.schedule).add("more", more);
  other.add("random", random).add("warm", wide.warm).add("epoch", epoch).add("best", wide.best);
  other.add("note", wide.note).add("empty", wide.empty).add("order", wide.order).expect("task", "another");
  other.save(folder / "other");
  run.train(4);
  const std::string before = run.bytes(folder);
  const std::string message = refusal<ValueError>([&] { run.checkpoint().load(folder / "other"); });
  CAPTURE(message);
  CHECK(message.find(folder / "other" + ": the checkpoint does not fit; unexpected: more; ") == 0);
  for (const char* part :
       {"net: module: the state dict does not fit; wrong: fc.weight is float32 (4, 2) instead of float32 (3, 2)",
        "adam: ", "random: is float64 (1) instead of a list of uint8",
        "loader: DataLoader::load_state_dict: the state dict does not fit; missing: in_epoch", "losses: missing",
        "epoch: one value: the state dict does not fit; wrong: ", "task: saved with 'another', now 'test'"}) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
  CHECK(message.find("note: ") == std::string::npos);
  CHECK(run.bytes(folder) == before);
}

TEST_CASE("Checkpoint: every flipped bit and every cut is found, and no part changes") {
  const TemporaryFolder folder;
  manual_seed(6);
  Run run;
  run.train(2);
  const std::string whole = run.bytes(folder);
  run.train(3);
  const std::string before = run.bytes(folder);
  const auto refused = [&](const std::string& content) {
    const std::string path = folder.write("bad", content);
    std::string message;
    try {
      run.checkpoint().load(path);
    } catch (const IOError& error) {
      message = error.what();
    } catch (const NotImplementedError& error) {
      message = error.what();
    }
    return message.find(path + ": ") == 0 && message.find('\n') == std::string::npos;
  };
  for (size_t bit = 0; bit < 8 * whole.size(); bit += 13) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK(refused(changed));
  }
  for (size_t size = 0; size < whole.size(); size += 23) CHECK(refused(whole.substr(0, size)));
  CHECK(refused(whole + "x"));
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string changed = whole;
    for (unsigned n = 1 + random() % 40; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
    CHECK((changed == whole || refused(changed)));
  }
  save(run.net, folder / "net");
  CHECK(refusal<IOError>([&] { run.checkpoint().load(folder / "net"); }).find("no file with a checksum") !=
        std::string::npos);
  CHECK_THROWS_AS(run.checkpoint().load(folder / "none"), IOError);
  CHECK_THROWS_AS(run.checkpoint().load(folder.path()), IOError);
  CHECK(run.bytes(folder) == before);
}

TEST_CASE("Checkpoint: a full disk and a folder that cannot be written leave the old file, and nothing else") {
  const TemporaryFolder folder;
  Run run;
  run.train(2);
  const std::string path = folder / "a";
  run.checkpoint().save(path);
  const std::string before = file_content(path);
  run.train(3);
  for (const rlim_t bytes : {0, 1, 100, 1000}) {
    const FileSizeLimit limit(bytes);
    CHECK(refusal<IOError>([&] { run.checkpoint().save(path); }) == path + ": cannot write: File too large");
  }
  CHECK(file_content(path) == before);
  CHECK(folder.file_count() == 1);
  CHECK_THROWS_AS(run.checkpoint().save("/dev/full"), IOError);
  CHECK_THROWS_AS(run.checkpoint().save(folder / "none/a"), IOError);
  CHECK_THROWS_AS(run.checkpoint().save("/proc/checkpoint"), IOError);
  if (::geteuid() != 0) {  // root may write everywhere
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THROWS_AS(run.checkpoint().save(path), IOError);
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
    CHECK(file_content(path) == before);
  }
}
