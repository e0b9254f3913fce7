// Trains a character-level GPT on a mesh of processes: data, fully sharded, tensor, context and pipeline parallelism in
// any combination, with checkpoints that any other mesh goes on from. For measurements: the least that a step can be,
// with its time and memory. examples/gpt and examples/gpt2 train on the same meshes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backends/cpu/memory/memory.h"
#include "core/distributed/checkpoint.h"
#include "core/io/atomic_file.h"
#include "core/memory/byte_text.h"
#include "examples/gpt/text_data.h"
#include "examples/mesh_gpt/training.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/processes/processes.h"
#include "examples/run_program.h"
#include "optim/state/state_parts.h"
#include "rushlight.h"

namespace examples {
namespace {

using rush::Tensor;
using rush::distributed::DeviceMesh;
using rush::distributed::TensorPart;

struct Settings {
  MeshTrainingOptions training;
  std::string data, out_dir = "out", json_file;
  int64_t max_iters = 500, checkpoint_interval = 100, log_interval = 50, eval_iters = 10;
  bool resume = false;

  void parse(int argc, char** argv) {
    MeshTrainingOptions& t = training;
    Options options("mesh_gpt", "Trains a character-level GPT on a mesh of processes.");
    options.add("--data", &data, "text file (default: tiny Shakespeare if it is there, else the project's own texts)");
    t.add_to(options);
    options.add("--max_iters", &max_iters, "batches to train on", 0, 1 << 30);
    options.add("--learning_rate,--lr", &t.learning_rate, "AdamW's", 0, 1e3);
    options.add("--weight_decay", &t.weight_decay, "AdamW's", 0, 1e3);
    options.add("--checkpoint_interval", &checkpoint_interval, "batches between checkpoints", 1, 1 << 30);
    options.add("--log_interval", &log_interval, "batches between lines", 1, 1 << 30);
    options.add("--eval_iters", &eval_iters, "batches of the validation at the end", 0, 1 << 20);
    options.add("--seed", &t.seed, "of weights and batches", 0);
    options.add("--resume", &resume, "go on from the folder's checkpoint, whatever mesh has saved it");
    options.add("--out_dir", &out_dir, "folder for the checkpoint");
    options.add("--json", &json_file, "file for the results");
    options.add("--device", &t.device, "cpu or cuda");
    options.parse_or_exit(argc, argv, [this] { check_device(training.device, /*graph=*/false); });
  }
};

// What steps take: the memory that tensors hold at most in one of them, and the time, on average over the steps of a
// lap.
class StepMeter {
 public:
  explicit StepMeter(rush::Device device) : device_(device) {}

  // Without what making the whole model took, of which a GPU never has more than the process's part.
  void begin_step() const {
    if (device_.is_cpu()) rush::cpu::reset_peak_memory_stats();
  }
  void end_step() { peak_ = std::max(peak_, rush::allocator(device_.type).stats().max_allocated); }

  void begin_lap(int64_t iteration) { lap_ = {iteration, std::chrono::steady_clock::now()}; }
  void end_lap(int64_t iteration) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - lap_.second;
    steps_.push_back(seconds.count() / static_cast<double>(iteration - lap_.first));
  }

  int64_t peak() const { return peak_; }
  double last_seconds() const { return steps_.back(); }
  // The median over the laps, without the first, in which memory is new.
  double seconds() const {
    if (steps_.empty()) return 0;
    std::vector<double> sorted(steps_.begin() + (steps_.size() > 1), steps_.end());
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  const rush::Device device_;
  int64_t peak_ = 0;
  std::pair<int64_t, std::chrono::steady_clock::time_point> lap_;
  std::vector<double> steps_;
};

class Trainer {
 public:
  explicit Trainer(const Settings& settings)
      : s_(settings),
        text_(read_text(find_text(settings.data))),
        vocabulary_(text_),
        data_(text_, vocabulary_, settings.training.model.block_size),
        training_(with_vocabulary(settings.training)),
        meter_(rush::Device(settings.training.device)) {}

  // Goes on from the checkpoint, if there is one.
  void resume() {
    if (!std::filesystem::exists(checkpoint())) {
      std::printf("no checkpoint in %s: starting anew\n", s_.out_dir.c_str());
      return;
    }
    const rush::io::Metadata metadata = rush::distributed::load_parts(checkpoint(), training_.parts());
    rush::optim::load_state_parts(checkpoint(), training_.optimizer(), training_.parts());
    iteration_ = std::stol(metadata.at("iteration"));
    std::printf("going on from %s, iteration %lld\n", checkpoint().c_str(), static_cast<long long>(iteration_));
  }

  void run() {
    std::printf("%s, %d processes, %s\n", mesh().str().c_str(), rush::distributed::get_world_size(),
                rush::distributed::world()->backend());
    meter_.begin_lap(iteration_);
    while (iteration_ < s_.max_iters) {
      const Tensor loss = step();
      ++iteration_;
      const bool is_last = iteration_ == s_.max_iters;
      if (iteration_ % s_.log_interval == 0 || is_last) log(loss);
      if (iteration_ % s_.checkpoint_interval == 0 || is_last) save();
    }
    if (saving_) saving_->wait();
  }

  // The mean loss over random blocks that are not trained on.
  double validation_loss() {
    rush::Generator generator = rush::make_generator<rush::CPUGeneratorImpl>(static_cast<uint64_t>(s_.training.seed));
    double sum = 0;
    for (int64_t i = 0; i < s_.eval_iters; ++i) {
      const auto [ids, targets] = own_batch(TextData::Validation, generator);
      sum += training_.mean_of(training_.evaluate(ids, targets)).item<double>();
    }
    return sum / static_cast<double>(s_.eval_iters);
  }

  // What a step took: the memory of the process that needs most, and the time.
  nlohmann::json results() const {
    nlohmann::json losses = nlohmann::json::array();
    for (const auto& [iteration, loss] : losses_) losses.push_back({{"iteration", iteration}, {"loss", loss}});
    Tensor peak = rush::full({}, meter_.peak(), rush::kInt64).to(rush::Device(s_.training.device));
    rush::distributed::all_reduce(peak, rush::distributed::ReduceOp::MAX);
    const auto bytes = peak.item<int64_t>();
    std::printf("a step: %.2f ms, %s\n", 1e3 * meter_.seconds(), rush::byte_text(bytes).c_str());
    return {{"mesh", mesh().str()}, {"losses", losses}, {"step_seconds", meter_.seconds()}, {"peak_bytes", bytes}};
  }

 private:
  const DeviceMesh& mesh() const { return training_.mesh(); }
  std::string checkpoint() const { return s_.out_dir + "/checkpoint"; }

  MeshTrainingOptions with_vocabulary(MeshTrainingOptions options) const {
    options.model.vocab_size = vocabulary_.size();
    return options;
  }

  // This process's rows of a batch that all processes draw.
  TextData::Batch own_batch(TextData::Split split, rush::Generator& generator) const {
    const auto [ids, targets] = data_.random_batch(split, s_.training.batch_size, generator);
    return {training_.own_rows(ids), training_.own_rows(targets)};
  }

  Tensor step() {
    // Of its own number, so that a run that goes on draws what an undisturbed one would.
    const auto seed = static_cast<uint64_t>(s_.training.seed) + 1 + static_cast<uint64_t>(iteration_);
    rush::Generator generator = rush::make_generator<rush::CPUGeneratorImpl>(seed);
    const auto [ids, targets] = own_batch(TextData::Train, generator);
    meter_.begin_step();
    const Tensor loss = training_.step(ids, targets);
    meter_.end_step();
    return loss;
  }

  void log(const Tensor& loss) {
    const double mean = training_.mean_of(loss).item<double>();
    meter_.end_lap(iteration_);
    std::printf("iteration %lld: loss %.6f, %.0f tokens/s\n", static_cast<long long>(iteration_), mean,
                static_cast<double>(s_.training.batch_size * s_.training.model.block_size) / meter_.last_seconds());
    std::fflush(stdout);
    losses_.push_back({iteration_, mean});
    meter_.begin_lap(iteration_);
  }

  void save() {
    const std::vector<TensorPart> weights = training_.parts();
    std::vector<TensorPart> parts = weights;
    for (TensorPart& state : rush::optim::state_parts(training_.optimizer(), weights)) {
      parts.push_back(std::move(state));
    }
    rush::distributed::SaveOptions options;
    options.metadata["iteration"] = std::to_string(iteration_);
    saving_ = rush::distributed::save_parts_async(checkpoint(), parts, options);
    meter_.begin_lap(iteration_);
  }

  const Settings s_;
  const std::string text_;
  const Vocabulary vocabulary_;
  const TextData data_;
  MeshTraining training_;
  StepMeter meter_;
  std::shared_ptr<rush::distributed::PendingSave> saving_;
  int64_t iteration_ = 0;
  std::vector<std::pair<int64_t, double>> losses_;
};

void train(const Settings& settings) {
  const Processes processes{rush::Device(settings.training.device)};
  Trainer trainer(settings);
  if (settings.resume) trainer.resume();
  trainer.run();
  nlohmann::json results = trainer.results();
  if (settings.eval_iters > 0) {
    const double loss = trainer.validation_loss();
    std::printf("val loss %.6f\n", loss);
    results["val_loss"] = loss;
  }
  if (processes.is_first() && !settings.json_file.empty()) {
    rush::io::write_file_atomically(settings.json_file, results.dump(2) + "\n");
  }
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("mesh_gpt", [&] { examples::train(settings); });
}
