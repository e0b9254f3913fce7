// Trains a character-level GPT on a mesh of processes: data, fully sharded, tensor, context and pipeline parallelism in
// any combination, with checkpoints that any other mesh goes on from.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/distributed/checkpoint.h"
#include "core/io/atomic_file.h"
#include "examples/gpt/text_data.h"
#include "examples/mesh_gpt/model.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/processes/processes.h"
#include "examples/run_program.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/fully_shard.h"
#include "nn/parallel/module_parts.h"
#include "nn/parallel/pipeline.h"
#include "optim/state/state_parts.h"
#include "rushlight.h"

namespace examples {
namespace {

using rush::Tensor;
using rush::distributed::DeviceMesh;
using rush::distributed::Group;
using rush::distributed::TensorPart;

constexpr int64_t kVocabularyMultiple = 64;  // so that "tp" can split it

struct Settings {
  std::string data, device = "cpu", out_dir = "out", json_file, schedule = "1f1b";
  int64_t dp = 0, fsdp = 1, tp = 1, cp = 1, pp = 1, stages_per_process = 1, micro_batches = 1;
  int64_t n_layer = 4, n_head = 4, n_embd = 128, block_size = 64, batch_size = 16;
  int64_t max_iters = 500, checkpoint_interval = 100, log_interval = 50, eval_iters = 10, seed = 1337;
  double learning_rate = 1e-3, weight_decay = 0.1;
  bool sequence_parallel = false, resume = false;

  void parse(int argc, char** argv) {
    Options options("mesh_gpt", "Trains a character-level GPT on a mesh of processes.");
    options.add("--data", &data, "text file (default: tiny Shakespeare if it is there, else the project's own texts)");
    options.add("--dp", &dp, "processes with other rows of a batch and the whole model; 0: as many as are left", 0);
    options.add("--fsdp", &fsdp, "processes with other rows, among which parameters are sharded", 1);
    options.add("--tp", &tp, "processes among which weights are split", 1);
    options.add("--cp", &cp, "processes among which sequences are split", 1);
    options.add("--pp", &pp, "processes among which layers are shared out", 1);
    options.add("--sequence_parallel", &sequence_parallel, "norms have a part of the positions, for tp");
    options.add("--schedule", &schedule, "of the pipeline", {"gpipe", "1f1b", "interleaved"});
    options.add("--stages_per_process", &stages_per_process, "of an interleaved pipeline", 1, 1 << 10);
    options.add("--micro_batches", &micro_batches, "of a step", 1, 1 << 16);
    options.add("--n_layer", &n_layer, "blocks", 1, 1 << 10);
    options.add("--n_head", &n_head, "attention heads of a block", 1, 1 << 10);
    options.add("--n_embd", &n_embd, "width", 1, 1 << 16);
    options.add("--block_size", &block_size, "characters that the model sees", 1, 1 << 20);
    options.add("--batch_size", &batch_size, "blocks in a batch, of all processes", 1, 1 << 20);
    options.add("--max_iters", &max_iters, "batches to train on", 0, 1 << 30);
    options.add("--learning_rate,--lr", &learning_rate, "AdamW's", 0, 1e3);
    options.add("--weight_decay", &weight_decay, "AdamW's", 0, 1e3);
    options.add("--checkpoint_interval", &checkpoint_interval, "batches between checkpoints", 1, 1 << 30);
    options.add("--log_interval", &log_interval, "batches between lines", 1, 1 << 30);
    options.add("--eval_iters", &eval_iters, "batches of the validation at the end", 0, 1 << 20);
    options.add("--seed", &seed, "of weights and batches", 0);
    options.add("--resume", &resume, "go on from the folder's checkpoint, whatever mesh has saved it");
    options.add("--out_dir", &out_dir, "folder for the checkpoint");
    options.add("--json", &json_file, "file for the results");
    options.add("--device", &device, "cpu or cuda");
    options.parse_or_exit(argc, argv, [this] { check_device(device, /*graph=*/false); });
  }
};

DeviceMesh make_mesh(const Settings& s) {
  const int64_t others = s.fsdp * s.tp * s.cp * s.pp, all = rush::distributed::get_world_size();
  RUSH_CHECK_VALUE(s.dp > 0 || all % others == 0, "--fsdp, --tp, --cp and --pp are ", others,
                   " processes, and there are ", all);
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  return rush::distributed::init_device_mesh(
      {size(s.pp), size(s.dp > 0 ? s.dp : all / others), size(s.fsdp), size(s.cp), size(s.tp)},
      {"pp", "dp", "fsdp", "cp", "tp"});
}

rush::nn::parallel::PipelineOrder make_order(const Settings& s) {
  const int processes = static_cast<int>(s.pp), micro_batches = static_cast<int>(s.micro_batches);
  if (s.schedule == "interleaved") {
    return rush::nn::parallel::interleaved_1f1b_order(processes, static_cast<int>(s.stages_per_process), micro_batches);
  }
  RUSH_CHECK_VALUE(s.stages_per_process == 1, "--stages_per_process is for --schedule interleaved");
  return s.schedule == "gpipe" ? rush::nn::parallel::gpipe_order(processes, micro_batches)
                               : rush::nn::parallel::one_f_one_b_order(processes, micro_batches);
}

class Trainer {
 public:
  explicit Trainer(const Settings& settings)
      : s_(settings),
        mesh_(make_mesh(settings)),
        text_(read_text(find_text(settings.data))),
        vocabulary_(text_),
        data_(text_, vocabulary_, settings.block_size),
        schedule_(make_stages(), make_order(settings), make_loss()),
        optimizer_(schedule_.parameters(),
                   rush::optim::AdamWOptions(settings.learning_rate).weight_decay(settings.weight_decay)) {
    RUSH_CHECK_VALUE(s_.batch_size % replicas() == 0, "--batch_size ", s_.batch_size, " cannot be split among ",
                     replicas(), " processes of dp and fsdp");
  }

  // Goes on from the checkpoint, if there is one.
  void resume() {
    if (!std::filesystem::exists(checkpoint())) {
      std::printf("no checkpoint in %s: starting anew\n", s_.out_dir.c_str());
      return;
    }
    const rush::io::Metadata metadata = rush::distributed::load_parts(checkpoint(), parameters());
    rush::optim::load_state_parts(checkpoint(), optimizer_, parameters());
    iteration_ = std::stol(metadata.at("iteration"));
    std::printf("going on from %s, iteration %lld\n", checkpoint().c_str(), static_cast<long long>(iteration_));
  }

  void run() {
    std::printf("%s, %d processes, %s\n", mesh_.str().c_str(), rush::distributed::get_world_size(),
                rush::distributed::world()->backend());
    const auto begun = std::chrono::steady_clock::now();
    const int64_t first = iteration_;
    while (iteration_ < s_.max_iters) {
      const Tensor loss = step();
      ++iteration_;
      if (iteration_ % s_.log_interval == 0 || iteration_ == s_.max_iters) {
        const double mean = mean_of(loss);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
        const auto tokens = static_cast<double>((iteration_ - first) * s_.batch_size * s_.block_size);
        std::printf("iteration %lld: loss %.6f, %.0f tokens/s\n", static_cast<long long>(iteration_), mean,
                    tokens / seconds.count());
        std::fflush(stdout);
        losses_.push_back({iteration_, mean});
      }
      if (iteration_ % s_.checkpoint_interval == 0 || iteration_ == s_.max_iters) save();
    }
    if (saving_) saving_->wait();
  }

  // The mean loss over random blocks that are not trained on.
  double validation_loss() {
    rush::Generator generator = rush::make_generator<rush::CPUGeneratorImpl>(static_cast<uint64_t>(s_.seed));
    double sum = 0;
    for (int64_t i = 0; i < s_.eval_iters; ++i) {
      const auto [ids, targets] = own_batch(TextData::Validation, generator);
      const Tensor scores = schedule_.eval(ids);
      sum += mean_of(scores.defined() ? make_loss()(scores, targets).detach() : Tensor());
    }
    return sum / static_cast<double>(s_.eval_iters);
  }

  nlohmann::json results() const {
    nlohmann::json losses = nlohmann::json::array();
    for (const auto& [iteration, loss] : losses_) losses.push_back({{"iteration", iteration}, {"loss", loss}});
    return {{"mesh", mesh_.str()}, {"losses", losses}};
  }

 private:
  int64_t replicas() const { return mesh_.size("dp") * mesh_.size("fsdp"); }
  std::string checkpoint() const { return s_.out_dir + "/checkpoint"; }

  std::vector<rush::nn::parallel::PipelineStage> make_stages() {
    MeshGPTConfig config{.block_size = s_.block_size, .n_layer = s_.n_layer, .n_head = s_.n_head, .n_embd = s_.n_embd};
    config.vocab_size = (vocabulary_.size() + kVocabularyMultiple - 1) / kVocabularyMultiple * kVocabularyMultiple;
    config.sequence_parallel = s_.sequence_parallel;
    rush::manual_seed(static_cast<uint64_t>(s_.seed));
    const rush::nn::Sequential net = make_mesh_gpt(config, mesh_);
    net->to(rush::Device(s_.device));
    auto stages =
        rush::nn::parallel::split_sequential(net, static_cast<int>(s_.pp * s_.stages_per_process), mesh_.group("pp"));
    for (const auto& stage : stages) {
      for (const Tensor& parameter : parameters_of_positions(*stage.module())) of_positions_.push_back(parameter);
      if (s_.fsdp == 1) continue;
      const auto options = rush::nn::parallel::FullyShardOptions().process_group(mesh_.group("fsdp"));
      for (const auto& module : stage.module()->children()) rush::nn::parallel::fully_shard(*module, options);
      rush::nn::parallel::fully_shard(*stage.module(),
                                      options);  // so that each module's parameters are freed behind it
    }
    return stages;
  }

  rush::nn::parallel::PipelineSchedule::LossFunction make_loss() const {
    const Group tp = mesh_.group("tp"), cp = mesh_.group("cp");
    return [tp, cp](const Tensor& scores, const Tensor& targets) {
      return rush::nn::parallel::vocab_parallel_cross_entropy(scores, rush::nn::parallel::context_part(targets, 1, cp),
                                                              tp);
    };
  }

  // This process's rows of a batch that all processes draw.
  TextData::Batch own_batch(TextData::Split split, rush::Generator& generator) const {
    const auto [ids, targets] = data_.random_batch(split, s_.batch_size, generator);
    const int64_t rows = s_.batch_size / replicas();
    const int64_t place = mesh_.coordinate("dp") * mesh_.size("fsdp") + mesh_.coordinate("fsdp");
    const rush::Device device(s_.device);
    return {ids.narrow(0, place * rows, rows).to(device), targets.narrow(0, place * rows, rows).to(device)};
  }

  Tensor step() {
    // Of its own number, so that a run that goes on draws what an undisturbed one would.
    const auto seed = static_cast<uint64_t>(s_.seed) + 1 + static_cast<uint64_t>(iteration_);
    rush::Generator generator = rush::make_generator<rush::CPUGeneratorImpl>(seed);
    const auto [ids, targets] = own_batch(TextData::Train, generator);
    optimizer_.zero_grad();
    const Tensor loss = schedule_.step(ids, targets);
    if (s_.sequence_parallel) rush::nn::parallel::sum_gradients(of_positions_, mesh_.group("tp"));
    average_gradients();
    optimizer_.step();
    return loss;
  }

  // Over the processes that have computed with the same parameters; fully_shard has done so for those of "fsdp".
  void average_gradients() const {
    const Group group = mesh_.flatten({"dp", "cp"});
    if (group->size() == 1) return;
    std::vector<Tensor> grads;
    for (const Tensor& parameter : schedule_.parameters()) grads.push_back(parameter.grad());
    rush::distributed::all_reduce_coalesced(grads, rush::distributed::ReduceOp::AVG, group);
  }

  // Of all rows and positions: the processes of the last stage have it.
  double mean_of(const Tensor& loss) const {
    Tensor sum = loss.defined() ? loss.to(rush::kFloat64)
                                : rush::zeros({}, rush::TensorOptions(rush::kFloat64).device(rush::Device(s_.device)));
    rush::distributed::all_reduce(sum);
    return sum.item<double>() * static_cast<double>(s_.pp) / rush::distributed::get_world_size();
  }

  std::vector<TensorPart> parameters() const {
    std::vector<TensorPart> parts;
    for (const auto& stage : schedule_.stages()) {
      for (TensorPart& part : rush::nn::parallel::module_parts(*stage.module())) parts.push_back(std::move(part));
    }
    return parts;
  }

  void save() {
    std::vector<TensorPart> parts = parameters();
    for (TensorPart& state : rush::optim::state_parts(optimizer_, parameters())) parts.push_back(std::move(state));
    rush::distributed::SaveOptions options;
    options.metadata["iteration"] = std::to_string(iteration_);
    saving_ = rush::distributed::save_parts_async(checkpoint(), parts, options);
  }

  const Settings s_;
  const DeviceMesh mesh_;
  const std::string text_;
  const Vocabulary vocabulary_;
  const TextData data_;
  std::vector<Tensor> of_positions_;
  rush::nn::parallel::PipelineSchedule schedule_;
  rush::optim::AdamW optimizer_;
  std::shared_ptr<rush::distributed::PendingSave> saving_;
  int64_t iteration_ = 0;
  std::vector<std::pair<int64_t, double>> losses_;
};

void train(const Settings& settings) {
  const Processes processes{rush::Device(settings.device)};
  if (!rush::distributed::is_initialized()) rush::distributed::init_process_group("fake");  // alone
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
