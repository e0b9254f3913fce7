// Trains a character-level GPT on a text and lets it write. The options have nanoGPT's names.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/amp/cast_weights.h"
#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"
#include "examples/check_loss.h"
#include "examples/decay_groups.h"
#include "examples/expect_rates.h"
#include "examples/gpt/gpt.h"
#include "examples/gpt/text_data.h"
#include "examples/late_numbers.h"
#include "examples/memory_options.h"
#include "examples/mesh_gpt/mesh_run.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/precision.h"
#include "examples/processes/processes.h"
#include "examples/progress.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "examples/stop_request.h"
#include "examples/warmup_cosine.h"
#include "rushlight.h"

namespace examples {
namespace {

using nlohmann::json;
using rush::Tensor;

// The defaults are nanoGPT's for a laptop.
struct Settings {
  std::string data, device = "cpu", dtype = "float32", out_dir = "out", json_file, init_from = "scratch", prompt;
  int64_t n_layer = 4, n_head = 4, n_embd = 128, block_size = 64, batch_size = 12;
  int64_t max_iters = 2000, warmup_iters = 100, eval_interval = 250, eval_iters = 20, seed = 1337;
  int64_t max_new_tokens = 500, top_k = 200, checkpoint_interval = 250;
  double learning_rate = 0, min_lr = 1e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, grad_clip = 1;
  double dropout = 0, temperature = 0.8;
  bool graph = false;
  MeshOptions mesh;
  bool on_mesh = false;  // the model is a MeshNet's; otherwise each process has all of it
  Beginning beginning;
  MemoryOptions memory;
  LogOptions log;
  std::string resume_command;

  void parse(int argc, char** argv) {
    Options options("gpt", "Trains a character-level GPT on a text and lets it write.");
    options.add("--data", &data, "text file (default: tiny Shakespeare if it is there, else the project's own texts)");
    options.add("--n_layer", &n_layer, "blocks", 1, 1 << 10);
    options.add("--n_head", &n_head, "attention heads of a block", 1, 1 << 10);
    options.add("--n_embd", &n_embd, "width", 1, 1 << 16);
    options.add("--block_size", &block_size, "characters that the model sees", 1, 1 << 16);
    options.add("--dropout", &dropout, "part of the activations that is dropped while training", 0, 0.999999);
    options.add("--batch_size", &batch_size, "blocks in a batch", 1, 1 << 16);
    options.add("--max_iters", &max_iters, "batches to train on", 0, 1 << 30);
    options.add("--learning_rate,--lr", &learning_rate, "the highest learning rate; 0: 3e-3 * 128 / n_embd", 0, 1e3);
    options.add("--min_lr", &min_lr, "the learning rate at the end", 0, 1e3);
    options.add("--warmup_iters", &warmup_iters, "batches over which the learning rate rises", 0, 1 << 30);
    options.add("--weight_decay", &weight_decay, "AdamW's, for matrices", 0, 1e3);
    options.add("--beta1", &beta1, "AdamW's", 0, 0.999999);
    options.add("--beta2", &beta2, "AdamW's", 0, 0.999999);
    options.add("--grad_clip", &grad_clip, "the highest norm of the gradient; 0: any", 0);
    options.add("--eval_interval", &eval_interval, "batches between estimates; the weights of the best are kept", 1,
                1 << 30);
    options.add("--eval_iters", &eval_iters, "batches of an estimate", 1, 1 << 20);
    options.add("--init_from", &init_from, "nanoGPT's spelling of --resume", {"scratch", "resume"});
    beginning.add_to(options);
    options.add("--checkpoint_interval", &checkpoint_interval, "batches between checkpoints", 1, 1 << 30);
    options.add("--prompt", &prompt, "what the text written at the end begins with");
    options.add("--max_new_tokens", &max_new_tokens, "characters to write at the end", 0, 1 << 30);
    options.add("--temperature", &temperature, "of what is written: lower is safer", 1e-3, 1e3);
    options.add("--top_k", &top_k, "write only the likeliest characters", 1, 1 << 20);
    options.add("--seed", &seed, "of weights, batches and what is written", 0);
    options.add("--device", &device, "cpu or cuda");
    options.add("--dtype", &dtype, "the precision: float32, or autocast to 16 bits", Precision::names());
    options.add("--graph", &graph, "take the steps as a CUDA graph");
    options.add("--out_dir", &out_dir, "folder for weights, checkpoint and report; empty: none");
    mesh.add_to(options);
    memory.add_to(options, /*has_blocks=*/true);
    log.add_to(options);
    options.add("--json", &json_file, "file for the results");
    options.parse_or_exit(argc, argv, [this] {
      beginning.resume = beginning.resume || init_from == "resume";
      check();
    });
    resume_command = examples::resume_command(argc, argv);
    // The rate that suits Adam falls with the width: Yang et al., "Tensor Programs V" (2022), table 3.
    if (learning_rate == 0) learning_rate = 3e-3 * 128 / static_cast<double>(n_embd);
    log.settings = options.values();
    for (auto& [name, value] : log.settings) {
      if (name == "learning_rate") value = rush::str(learning_rate);
    }
  }

  void check() const {
    beginning.check(out_dir);
    check_device(device, graph);
    check_json_file(json_file);
    check_mesh(mesh, graph, dtype, dropout, memory);
    if (memory.estimate) return;
    constexpr int64_t kTrained = 16;  // bytes of a parameter, its gradient and AdamW's two moments
    check_transformer({n_layer, n_head, n_embd}, kTrained, device);
  }

  rush::optim::AdamWOptions adamw() const {
    return rush::optim::AdamWOptions(learning_rate).betas({beta1, beta2}).weight_decay(weight_decay).capturable(graph);
  }

  WarmupCosine rates() const { return {warmup_iters, max_iters, min_lr / learning_rate}; }
};

class Trainer {
 public:
  Trainer(const Settings& settings, const std::string& text, RunFolder& folder, RunLog& log,
          const Processes* processes = nullptr)
      : s_(settings),
        processes_(processes),
        folder_(folder),
        log_(log),
        device_(settings.device),
        precision_(settings.dtype, device_),
        scaler_(precision_.scaler()),
        vocabulary_(text),
        start_(vocabulary_.encode(s_.prompt.empty() ? first_character() : s_.prompt)),
        data_(text, vocabulary_, settings.block_size),
        generator_(rush::make_generator<rush::CPUGeneratorImpl>(static_cast<uint64_t>(settings.seed))),
        model_(GPTConfig{vocabulary_.size(), s_.block_size, s_.n_layer, s_.n_head, s_.n_embd, s_.dropout}),
        best_(model_->config()),
        mesh_(make_mesh_net()),
        optimizer_(decay_groups(parameters(), s_.adamw()), s_.adamw()),
        schedule_(optimizer_, s_.rates()) {
    model_->to(mesh_ ? rush::kMeta : device_);
    best_->to(device_);
    best_->eval();
    data_.pin_batches(device_.is_cuda());
    if (processes && processes->count() > 1 && !mesh_) {
      RUSH_CHECK_VALUE(!s_.graph, "--graph is for one process");
      processes->check_batch(s_.batch_size);
      together_ = rush::nn::DistributedDataParallel<GPTLossImpl>(std::make_shared<GPTLossImpl>(model_));
    }
    if (!s_.graph) return;
    graphed_step_.emplace([this](const Tensor& input, const Tensor& next) { return take_step({input, next}); });
  }

  void checkpoint_blocks(int64_t count) { model_->checkpoint_blocks(count); }

  // What a step does, on tokens that have no values: for a run on the meta device.
  void rehearse() {
    const Tensor tokens = rush::zeros({s_.batch_size, s_.block_size}, rush::TensorOptions(rush::kLong).device(device_));
    take_step({tokens, tokens});
  }

  // Starts a run, or goes on with that of the checkpoint.
  void begin() {
    if (!folder_.begin([this] { load_checkpoint(); }, [this] { save_checkpoint(); })) return;
    std::printf("going on from %s, iteration %lld\n", folder_.checkpoint().c_str(), static_cast<long long>(iteration_));
  }

  // Trains, keeps the weights of the best estimate, and returns their loss on the whole validation text.
  double run() {
    std::printf("%lld characters, %lld different; %.2f million parameters\n",
                static_cast<long long>(data_.size(TextData::Train) + data_.size(TextData::Validation)),
                static_cast<long long>(vocabulary_.size()), static_cast<double>(model_->parameter_count()) / 1e6);
    const int64_t batch_tokens = s_.batch_size * s_.block_size;
    const int64_t first = iteration_;
    const double seconds_before = seconds_;
    Progress progress("training", (s_.max_iters - first) * batch_tokens, "tokens");
    const StopRequest request;
    while (iteration_ < s_.max_iters) {
      if (iteration_ % s_.eval_interval == 0) report(progress);
      log_.add_step(iteration_ + 1, schedule_.get_last_lr()[0], "tokens", static_cast<double>(batch_tokens));
      const Tensor loss = step();
      ++iteration_;
      if (iteration_ % kLossInterval == 0 || iteration_ == s_.max_iters) losses_.push(loss);
      const bool saving = iteration_ % s_.checkpoint_interval == 0;
      const bool stopping = mesh_ ? processes_->any(request.pending()) : request.pending();
      note_losses(/*all=*/saving || stopping || iteration_ == s_.max_iters);
      progress.update((iteration_ - first) * batch_tokens,
                      {{"loss", last_loss_}, {"lr", schedule_.get_last_lr()[0], 6}});
      seconds_ = seconds_before + progress.elapsed();
      if (stopping) stop(request);
      if (saving) try_to_save(progress);
    }
    save_checkpoint();
    report(progress);
    progress.finish();
    return whole_validation_loss();
  }

  // By the best weights. Starts with the prompt, or else a line break, and continues as the text would.
  std::string write() {
    const Tensor start = start_.unsqueeze(0).to(device_);
    return vocabulary_.decode(best_->generate(start, s_.max_new_tokens, s_.temperature, s_.top_k));
  }

  json results() const {
    return {{"iterations", iteration_},
            {"seconds", seconds_},
            {"parameters", model_->parameter_count()},
            {"vocabulary", vocabulary_.size()},
            {"history", history_},
            {"best_val_loss", best_loss_},
            {"best_iteration", best_iteration_},
            {"settings",
             {{"n_layer", s_.n_layer},
              {"n_head", s_.n_head},
              {"n_embd", s_.n_embd},
              {"block_size", s_.block_size},
              {"batch_size", s_.batch_size},
              {"learning_rate", s_.learning_rate},
              {"dropout", s_.dropout},
              {"seed", s_.seed},
              {"device", s_.device},
              {"dtype", s_.dtype}}}};
  }

  // The best weights, and all that it takes to use them.
  void save(const std::string& folder) const {
    rush::io::NamedTensors weights;
    for (const auto& parameter : best_->named_parameters())
      weights.emplace_back(parameter.key(), parameter->detach().cpu());
    json characters = json::array();
    for (const char c : vocabulary_.bytes()) characters.push_back(static_cast<unsigned char>(c));
    const GPTConfig& c = best_->config();
    const json config = {{"vocab_size", c.vocab_size}, {"block_size", c.block_size}, {"n_layer", c.n_layer},
                         {"n_head", c.n_head},         {"n_embd", c.n_embd},         {"bytes", characters}};
    rush::io::save_safetensors(folder + "/ckpt.safetensors", weights, {{"config", config.dump()}});
  }

 private:
  std::unique_ptr<MeshNet> make_mesh_net() const {
    if (!s_.on_mesh) return nullptr;
    return std::make_unique<MeshNet>(model_, s_.mesh, s_.mesh.micro_batches, precision_, device_);
  }

  std::vector<Tensor> parameters() const { return mesh_ ? mesh_->parameters() : model_->parameters(); }

  // A line break where the text has one.
  std::string first_character() const {
    const std::string& bytes = vocabulary_.bytes();
    return {bytes.find('\n') != bytes.npos ? '\n' : bytes.front()};
  }

  // All that a run consists of, see Note [Checkpoints]. The text of the history stands in `history` meanwhile.
  rush::Checkpoint checkpoint(std::string& history) {
    rush::Checkpoint all;
    all.expect("n_layer", rush::str(s_.n_layer)).expect("n_head", rush::str(s_.n_head));
    all.expect("n_embd", rush::str(s_.n_embd)).expect("block_size", rush::str(s_.block_size));
    all.expect("text", data_.description()).expect("dtype", s_.dtype);
    all.expect("batch_size", rush::str(s_.batch_size)).expect("seed", rush::str(s_.seed));
    std::vector<std::string>* changes = folder_.changes();
    all.expect("device", rush::str(device_), changes).expect("dropout", rush::str(s_.dropout), changes);
    expect_rates(all, s_, changes);
    if (!mesh_) all.add("model", model_).add("optimizer", optimizer_);
    all.add("best", best_).add("schedule", schedule_);
    all.add("scaler", scaler_).add("batches", generator_).add("random", rush::default_generator(device_));
    all.add("iteration", iteration_).add("last_loss", last_loss_).add("seconds", seconds_).add("history", history);
    all.add("log", log_)
        .add("loss_iteration", loss_iteration_)
        .add("best_loss", best_loss_)
        .add("best_iteration", best_iteration_);
    return all;
  }

  void save_checkpoint() {
    const std::string& path = folder_.checkpoint();
    if (path.empty()) return;
    check_weights(parameters(), rush::str("iteration ", iteration_));
    if (mesh_ && iteration_ > 0) save_shards(path, iteration_, *mesh_, optimizer_);
    if (processes_ && !processes_->is_first()) return;
    std::string history = history_.dump();
    examples::save_checkpoint(checkpoint(history), path);
    if (mesh_) remove_other_shards(path, iteration_);
  }

  void load_checkpoint() {
    std::string history;
    checkpoint(history).load(folder_.checkpoint());
    if (mesh_ && iteration_ > 0) load_shards(folder_.checkpoint(), iteration_, *mesh_, optimizer_);
    history_ = json::parse(history);
    RUSH_CHECK_VALUE(iteration_ <= s_.max_iters, folder_.checkpoint(), " has done ", iteration_,
                     " iterations, more than --max_iters ", s_.max_iters);
    set_decay_options(optimizer_, schedule_, s_.adamw(), s_.rates()(iteration_));
  }

  void try_to_save(Progress& progress) {
    const std::string warning = examples::try_to_save([this] { save_checkpoint(); });
    if (!warning.empty()) progress.warn(warning);
  }

  [[noreturn]] void stop(const StopRequest& request) {
    request.end(rush::str("after iteration ", iteration_), folder_.checkpoint().empty() ? "" : s_.resume_command,
                [this] { save_checkpoint(); });
  }

  Tensor loss_of(GPT& model, const TextData::Batch& batch) {
    const auto precision = precision_.scope();
    rush::autocast::cast_weights(model->parameters());
    constexpr bool kNonBlocking = true;
    return model->loss(batch.first.to(device_, kNonBlocking), batch.second.to(device_, kNonBlocking));
  }

  // Of this process's rows, where there are several processes.
  Tensor training_loss(const TextData::Batch& batch) {
    if (!together_) return loss_of(model_, batch);
    const auto precision = precision_.scope();
    return together_(processes_->rows(batch.first).to(device_), processes_->rows(batch.second).to(device_));
  }

  Tensor loss_on_mesh(const TextData::Batch& batch, Tensor (MeshNet::*pass)(const Tensor&, const Tensor&)) {
    return mesh_->mean_of((*mesh_.*pass)(mesh_->own_rows(batch.first), mesh_->own_rows(batch.second)));
  }

  // Has `grad` be that of the loss, which it returns.
  Tensor compute_gradients(const TextData::Batch& batch) {
    if (mesh_) {
      optimizer_.zero_grad();
      return loss_on_mesh(batch, &MeshNet::compute_gradients);
    }
    const Tensor loss = training_loss(batch);
    optimizer_.zero_grad();
    scaler_.scale(loss).backward();
    return loss.detach();
  }

  // Neither this nor what it calls waits for the device, unless the scaler is on and the step is no graph.
  Tensor take_step(const TextData::Batch& batch) {
    const Tensor loss = compute_gradients(batch);
    if (s_.grad_clip > 0) {
      scaler_.unscale_(optimizer_);
      clip_gradients();
    }
    scaler_.step(optimizer_);
    scaler_.update();
    return together_ ? processes_->mean(loss) : loss;
  }

  void clip_gradients() {
    namespace utils = rush::nn::utils;
    const std::vector<Tensor> all = parameters();
    utils::clip_grads_with_norm_(all, s_.grad_clip,
                                 mesh_ ? mesh_->gradient_norm() : utils::get_total_norm(utils::gradients_of(all)));
  }

  Tensor step() {
    const TextData::Batch batch = data_.random_batch(TextData::Train, s_.batch_size, generator_);
    const Tensor loss = graphed_step_ ? (*graphed_step_)(batch.first, batch.second) : take_step(batch);
    schedule_.step();
    return loss;
  }

  void note_losses(bool all) {
    while (const std::optional<Tensor> late = losses_.pop(all)) {
      loss_iteration_ = std::min((loss_iteration_ / kLossInterval + 1) * kLossInterval, s_.max_iters);
      last_loss_ = late->item<double>();
      check_loss(last_loss_, rush::str("iteration ", loss_iteration_));
      log_.add(loss_iteration_, "loss/batch", last_loss_);
    }
  }

  // On the same batches each time, so that one estimate compares with another.
  double estimate(TextData::Split split) {
    return estimated_loss(data_, split, s_.batch_size, s_.eval_iters, s_.seed, [this](const TextData::Batch& batch) {
      return (mesh_ ? loss_on_mesh(batch, &MeshNet::evaluate) : loss_of(model_, batch)).item<double>();
    });
  }

  void report(Progress& progress) {
    const rush::NoGradGuard no_grad;
    model_->eval();
    const double train = estimate(TextData::Train), validation = estimate(TextData::Validation);
    model_->train();
    check_loss(train + validation, rush::str("the estimate of iteration ", iteration_));
    history_.push_back({{"iteration", iteration_}, {"train_loss", train}, {"val_loss", validation}});
    log_.add(iteration_, "loss/train", train);
    log_.add(iteration_, "loss/validation", validation);
    if (best_iteration_ < 0 || validation < best_loss_) {
      best_loss_ = validation;
      best_iteration_ = iteration_;
      keep_as_best();
    }
    char line[150];
    std::snprintf(line, sizeof(line), "iteration %lld: train loss %.4f, val loss %.4f, best val loss %.4f",
                  static_cast<long long>(iteration_), train, validation, best_loss_);
    progress.note(line);
  }

  void keep_as_best() {
    if (mesh_) return mesh_->gather(*best_);
    const std::vector<Tensor> now = model_->parameters(), best = best_->parameters();
    for (size_t i = 0; i < now.size(); ++i) best[i].copy_(now[i]);
  }

  // Of the best weights, over all of the validation text or its first 4,096 blocks.
  double whole_validation_loss() {
    const rush::NoGradGuard no_grad;
    double total = 0, blocks = 0;
    for (const TextData::Batch& batch : data_.in_order(TextData::Validation, s_.batch_size, 4096)) {
      const auto count = static_cast<double>(batch.first.size(0));
      total += loss_of(best_, batch).item<double>() * count;
      blocks += count;
    }
    return total / blocks;
  }

  const Settings& s_;
  const Processes* const processes_;
  RunFolder& folder_;
  RunLog& log_;
  rush::Device device_;
  Precision precision_;
  rush::amp::GradScaler scaler_;
  Vocabulary vocabulary_;
  Tensor start_;  // (T), of what is written at the end
  TextData data_;
  rush::Generator generator_;
  GPT model_, best_;                                                  // in training, and as it was at the best estimate
  const std::unique_ptr<MeshNet> mesh_;                               // which trains its part in place of `model_`
  rush::nn::DistributedDataParallel<GPTLossImpl> together_{nullptr};  // where there are several processes
  rush::optim::AdamW optimizer_;
  rush::optim::LambdaLR schedule_;
  using StepFunction = std::function<Tensor(const Tensor&, const Tensor&)>;
  std::optional<rush::graphs::GraphedStep<StepFunction>> graphed_step_;
  static constexpr int64_t kLossInterval = 10;
  LateNumbers losses_{1};       // of some iterations
  int64_t loss_iteration_ = 0;  // that of the last loss that is known
  int64_t iteration_ = 0;       // the next one
  double last_loss_ = 0, seconds_ = 0;
  double best_loss_ = 0;
  int64_t best_iteration_ = -1;  // none
  json history_ = json::array();
};

// Two steps on the meta device, for rush::estimate_memory.
void rehearse(Settings settings, const std::string& text, int64_t checkpointed_blocks) {
  settings.device = "meta";
  settings.out_dir.clear();
  settings.graph = false;
  RunFolder nowhere(settings.out_dir, {});
  RunLog unread;
  Trainer trainer(settings, text, nowhere, unread);
  trainer.checkpoint_blocks(checkpointed_blocks);
  trainer.rehearse();
  trainer.rehearse();  // the first one made AdamW's states
}

void print_estimate(const Settings& settings) {
  const std::string text = read_text(find_text(settings.data));
  print_memory_estimate(rush::Device(settings.device), settings.batch_size, [&](int64_t batch_size) {
    Settings other = settings;
    other.batch_size = batch_size;
    rehearse(other, text, settings.memory.known_blocks(settings.n_layer));
  });
  const GPTConfig config{.block_size = settings.block_size, .n_layer = settings.n_layer, .n_embd = settings.n_embd};
  print_key_value_cache(KeyValueCache::bytes(config, rush::kFloat32));
}

void train(Settings settings) {
  if (settings.memory.estimate) return print_estimate(settings);
  const Processes processes{rush::Device(settings.device)};
  const std::string out_dir = settings.out_dir;
  processes.leave_files_to_the_first(settings);
  RunFolder folder(out_dir, settings.beginning, processes.is_first());
  const std::string path = find_text(settings.data);
  std::printf("%s\n", path.empty() ? "no tiny Shakespeare here (./rush fetch shakespeare): training on the project's "
                                     "own texts"
                                   : ("training on " + path).c_str());
  settings.mesh.checkpoint_blocks = settings.memory.checkpoint == "every";
  settings.on_mesh =
      runs_on_mesh(settings.mesh, processes.count(), settings.beginning.resume ? folder.checkpoint() : "");
  rush::manual_seed(static_cast<uint64_t>(settings.seed));
  RunLog log("gpt", settings.log, settings.out_dir, rush::Device(settings.device));
  const std::string text = read_text(path);
  Trainer trainer(settings, text, folder, log, &processes);
  trainer.checkpoint_blocks(settings.memory.blocks_to_checkpoint(
      settings.n_layer, rush::Device(settings.device), [&](int64_t count) { rehearse(settings, text, count); }));
  processes.begin([&] { trainer.begin(); });
  const double loss = trainer.run();
  if (settings.max_new_tokens > 0) {
    const std::string written = trainer.write();
    std::printf("----\n%s\n----\n", written.c_str());
    log.add_text("What it writes", written);
  }
  if (!settings.out_dir.empty()) trainer.save(settings.out_dir);
  if (!settings.json_file.empty()) {
    json results = trainer.results();
    results["val_loss"] = loss;
    rush::io::write_file_atomically(settings.json_file, results.dump(2) + "\n");
  }
  char headline[32];
  std::snprintf(headline, sizeof headline, "%.4f", loss);
  log.report.headline = headline;
  log.report.summary = "nats a character is the loss of the best weights on text that they were not trained on.";
  log.finish();
  std::printf("val loss %s\n", headline);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("gpt", [&] { examples::train(settings); });
}
