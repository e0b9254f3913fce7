// The training run of lab 17: a net on digits, with each batch divided among four ranks that the learner's functions
// join. Started by mpirun each process is a rank; alone, the ranks are threads on the emulated wire. Every loss has to
// be that of one rank with all rows, which is computed without the learner's functions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/io/atomic_file.h"
#include "examples/mnist/digit_sets.h"
#include "examples/options.h"
#include "examples/run_program.h"
#include "rushlight.h"
#include "tests/labs/solutions/ring.h"
#include "tests/labs/wire/emulated_wire.h"

namespace {

using namespace rush;
namespace F = nn::functional;

constexpr int kRanks = 4;
constexpr int64_t kBucketSize = 8192;  // a third of the net
constexpr double kTolerance = 1e-5;    // of a loss: sums in another order are nearer than 1e-6

struct Settings {
  std::string out_dir, json_file;
  int64_t digits = 2400, epochs = 2, batch_size = 32;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  examples::Options options("ring_training", "Trains a net on digits, on four ranks in a ring.");
  options.add("--digits", &settings.digits, "how many to train on", 1, 60000);
  options.add("--epochs", &settings.epochs, "how often every digit is shown", 1, 100);
  options.add("--batch_size", &settings.batch_size, "digits per step, a multiple of the ranks", kRanks, 10000);
  options.add("--out_dir", &settings.out_dir, "where the weights go");
  options.add("--json", &settings.json_file, "write the results to this file");
  options.parse_or_exit(argc, argv, [] {});
  RUSH_CHECK_VALUE(settings.batch_size % kRanks == 0, "--batch_size ", settings.batch_size, " cannot be divided among ",
                   kRanks, " ranks");
  return settings;
}

// Wire between the processes of a group, by the library's messages.
class GroupWire final : public labs::Wire {
 public:
  GroupWire() : Wire(distributed::get_rank(), distributed::get_world_size()) {}
  void send(const float* data, int64_t count, int to) override {
    distributed::send(from_blob(const_cast<float*>(data), {count}), to);
  }
  void recv(float* data, int64_t count, int from) override { distributed::recv(from_blob(data, {count}), from); }
};

// Ranks that did not get the parameters of rank 0 would begin with other ones.
nn::Sequential make_net(int rank) {
  manual_seed(1 + static_cast<uint64_t>(rank));
  return nn::Sequential(nn::Flatten(), nn::Linear(28 * 28, 32), nn::Tanh(), nn::Linear(32, 10));
}

// The batches of all epochs, the same on each rank.
class Batches {
 public:
  Batches(const examples::DigitSet& digits, const Settings& settings) : digits_(digits), size_(settings.batch_size) {
    Generator generator = make_generator<CPUGeneratorImpl>(7);
    for (int64_t epoch = 0; epoch < settings.epochs; ++epoch) {
      const Tensor order = randperm(digits.size(), generator, kInt64);
      for (int64_t i = 0; i + size_ <= digits.size(); i += size_) rows_.push_back(order.narrow(0, i, size_));
    }
  }
  size_t count() const { return rows_.size(); }
  // The mean loss over the rows of one rank of `size`.
  Tensor loss(nn::Sequential& net, size_t step, int rank, int size) const {
    const Tensor rows = rows_[step].narrow(0, size_ / size * rank, size_ / size);
    return F::cross_entropy(net(digits_.images.index_select(0, rows)), digits_.targets.index_select(0, rows));
  }

 private:
  const examples::DigitSet& digits_;
  int64_t size_;
  std::vector<Tensor> rows_;  // of each step
};

using Losses = std::vector<float>;

optim::SGD make_optimizer(nn::Sequential& net) { return {net->parameters(), optim::SGDOptions(0.1).momentum(0.9)}; }

Losses train_alone(const Batches& batches) {
  nn::Sequential net = make_net(0);
  optim::SGD optimizer = make_optimizer(net);
  Losses losses;
  for (size_t step = 0; step < batches.count(); ++step) {
    optimizer.zero_grad();
    const Tensor loss = batches.loss(net, step, 0, 1);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

Losses train(labs::Wire& wire, nn::Sequential& net, const Batches& batches) {
  labs::broadcast_parameters(wire, net->parameters());
  optim::SGD optimizer = make_optimizer(net);
  Losses losses;
  for (size_t step = 0; step < batches.count(); ++step) {
    const auto loss = [&] { return batches.loss(net, step, wire.rank(), wire.size()); };
    losses.push_back(labs::train_step(wire, optimizer, loss, kBucketSize));
  }
  return losses;
}

// The largest difference. Throws where one is too large.
double compare(const Losses& losses, const Losses& alone) {
  double most = 0;
  for (size_t step = 0; step < alone.size(); ++step) {
    const double difference = std::abs(static_cast<double>(losses[step]) - alone[step]);
    RUSH_CHECK(difference <= kTolerance * std::max(1.0F, alone[step]), "the loss of step ", step + 1, " is ",
               losses[step], " on ", kRanks, " ranks and ", alone[step], " on one");
    most = std::max(most, difference);
  }
  return most;
}

// What rank 0 leaves: its weights, and how well they read other digits.
void report(nn::Sequential& net, const examples::DigitSet& digits, const Settings& settings, const std::string& note) {
  const NoGradGuard no_grad;
  const Tensor scores = net(digits.images);
  const nlohmann::json results = {
      {"test_loss", F::cross_entropy(scores, digits.targets).item<double>()},
      {"test_accuracy", scores.argmax(1).eq(digits.targets).to(kFloat64).mean().item<double>()},
      {"note", note}};
  std::filesystem::create_directories(settings.out_dir);
  save(net, settings.out_dir + "/net.safetensors");
  io::write_file_atomically(settings.json_file, results.dump(1) + "\n");
}

std::string note_of(const char* where, const Losses& losses, const Losses& alone) {
  char most[16];
  std::snprintf(most, sizeof(most), "%.1g", compare(losses, alone));
  return str(where, ", ", losses.size(), " losses that differ from those of one rank by at most ", most);
}

void run_processes(const Settings& settings, const examples::DigitSets& digits) {
  distributed::init_process_group("mpi");
  RUSH_CHECK_VALUE(distributed::get_world_size() == kRanks, "there are ", distributed::get_world_size(),
                   " processes and have to be ", kRanks);
  const Batches batches(digits.train, settings);
  GroupWire wire;
  nn::Sequential net = make_net(wire.rank());
  const Losses losses = train(wire, net, batches);
  if (wire.rank() == 0) {
    report(net, digits.test, settings, note_of("4 processes of this machine", losses, train_alone(batches)));
  }
  distributed::destroy_process_group();
}

void run_threads(const Settings& settings, const examples::DigitSets& digits) {
  const Batches batches(digits.train, settings);
  std::vector<nn::Sequential> nets;  // made one after another: they draw from one generator
  for (int rank = 0; rank < kRanks; ++rank) nets.push_back(make_net(rank));
  std::vector<Losses> losses(kRanks);
  const labs::WireRun run = labs::run_ranks(kRanks, [&](labs::Wire& wire) {
    const auto rank = static_cast<size_t>(wire.rank());
    losses[rank] = train(wire, nets[rank], batches);
  });
  RUSH_CHECK(run.fault.empty(), run.fault);
  report(nets[0], digits.test, settings, note_of("4 ranks on the emulated wire", losses[0], train_alone(batches)));
}

void run(const Settings& settings) {
  const auto test_digits = static_cast<size_t>(std::max<int64_t>(settings.digits / 6, 1));
  const auto digits = examples::load_digits("", 1, static_cast<size_t>(settings.digits), test_digits);
  distributed::read_environment().started_by_mpi ? run_processes(settings, digits) : run_threads(settings, digits);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("ring_training", [&] { run(parse(argc, argv)); });
}
