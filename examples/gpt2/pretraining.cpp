#include "examples/gpt2/pretraining.h"

#include <chrono>
#include <limits>
#include <utility>

#include "core/amp/cast_weights.h"
#include "examples/check_loss.h"
#include "examples/decay_groups.h"
#include "examples/expect_rates.h"
#include "examples/mesh_gpt/mesh_run.h"
#include "examples/run_folder.h"

namespace examples {

using rush::Tensor;

int64_t micro_batches(int64_t total_batch_size, int64_t batch_size, int64_t block_size) {
  const int64_t micro = batch_size * block_size;
  RUSH_CHECK_VALUE(total_batch_size % micro == 0, "a total_batch_size of ", total_batch_size,
                   " tokens is no multiple of a micro-batch of ", batch_size, " x ", block_size, " = ", micro);
  return total_batch_size == 0 ? 1 : total_batch_size / micro;
}

double flops_per_token(const GPTImpl& model) {
  const GPTConfig& c = model.config();
  const int64_t weights = model.parameter_count() - c.block_size * c.n_embd;
  return 6.0 * static_cast<double>(weights) + 12.0 * static_cast<double>(c.n_layer * c.n_embd * c.block_size);
}

double known_peak_flops(rush::Device device) {
  if (device.type != rush::kCUDA) return 0;
  const std::string name = rush::cuda::get_device_properties(device.index).name;
  const auto is = [&](const char* model) { return name.find(model) != name.npos; };
  if (is("H100") || is("H200")) return 989.5e12;  // SXM
  if (is("A100")) return 312e12;
  return 0;
}

Pretraining::Pretraining(GPT model, TextData data, const PretrainingOptions& options, RunLog& log,
                         const Processes* processes)
    : options_(options),
      log_(log),
      processes_(processes),
      model_(std::move(model)),
      data_(std::move(data)),
      micro_batches_(micro_batches(options.total_batch_size, options.batch_size, model_->config().block_size)),
      precision_(options.dtype, options.device),
      mesh_(make_mesh_net()),
      scaler_(precision_.scaler()),
      generator_(rush::make_generator<rush::CPUGeneratorImpl>(static_cast<uint64_t>(options.seed))),
      optimizer_(decay_groups(parameters(), options.adamw()), options.adamw()),
      schedule_(optimizer_, options.rates()),
      best_loss_(std::numeric_limits<double>::infinity()) {
  model_->to(!mesh_ ? options.device : processes->is_first() ? rush::kCPU : rush::kMeta);
  data_.pin_batches(options.device.is_cuda());
  if (processes && processes->count() > 1 && !mesh_) {
    RUSH_CHECK_VALUE(!options.graph, "--graph is for one process");
    processes->check_batch(options.batch_size);
    together_ = rush::nn::DistributedDataParallel<GPTLossImpl>(std::make_shared<GPTLossImpl>(model_));
  }
  if (!options.graph) return;
  RUSH_CHECK_VALUE(options.device.is_cuda(), "--graph needs --device cuda");
  graphed_step_.emplace([this](const Tensor& inputs, const Tensor& next) { return take_step(inputs, next); });
}

std::unique_ptr<MeshNet> Pretraining::make_mesh_net() const {
  if (!options_.on_mesh) return nullptr;
  return std::make_unique<MeshNet>(model_, options_.mesh, options_.mesh.micro_batches * micro_batches_, precision_,
                                   options_.device);
}

Tensor Pretraining::loss_of(const TextData::Batch& batch) {
  if (mesh_) {
    return mesh_->mean_of(mesh_->evaluate(mesh_->own_rows(batch.first), mesh_->own_rows(batch.second)));
  }
  const auto precision = precision_.scope();
  const Tensor tokens = rows(batch.first), targets = rows(batch.second);
  if (together_ && rush::GradMode::is_enabled()) return together_(tokens, targets);
  rush::autocast::cast_weights(model_->parameters());
  return model_->loss(tokens, targets);
}

Tensor Pretraining::compute_gradients(const Tensor& inputs, const Tensor& next) {
  if (mesh_) return mesh_->mean_of(mesh_->compute_gradients(mesh_->own_rows(inputs), mesh_->own_rows(next)));
  Tensor total = rush::zeros({}, inputs.options().dtype(rush::kFloat32));
  const auto add_gradients = [&](int64_t micro_batch) {
    const int64_t first = micro_batch * options_.batch_size;
    const Tensor loss =
        loss_of({inputs.narrow(0, first, options_.batch_size), next.narrow(0, first, options_.batch_size)}) /
        micro_batches_;
    total += loss.detach();
    scaler_.scale(loss).backward();
  };
  for (int64_t i = 0; i + 1 < micro_batches_; ++i) {
    if (!together_) {
      add_gradients(i);
      continue;
    }
    const auto here = together_->no_sync();  // they travel with the last micro-batch's
    add_gradients(i);
  }
  add_gradients(micro_batches_ - 1);
  return total;
}

Tensor Pretraining::take_step(const Tensor& inputs, const Tensor& next) {
  optimizer_.zero_grad();
  const Tensor total = compute_gradients(inputs, next);
  scaler_.unscale_(optimizer_);
  const std::vector<Tensor> parameters = this->parameters();
  const Tensor norm =
      mesh_ ? mesh_->gradient_norm() : rush::nn::utils::get_total_norm(rush::nn::utils::gradients_of(parameters));
  if (options_.grad_clip > 0) rush::nn::utils::clip_grads_with_norm_(parameters, options_.grad_clip, norm);
  scaler_.step(optimizer_);
  scaler_.update();
  return rush::stack({mean(total).to(rush::kFloat32), norm.to(rush::kFloat32)});
}

StepReport Pretraining::step() {
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.learning_rate = schedule_.get_last_lr()[0];
  // All blocks of a step go to the device at once, before it has anything to do.
  const auto [tokens, targets] =
      data_.random_batch(TextData::Train, micro_batches_ * options_.batch_size, generator_);  // (N, T) each
  const bool non_blocking = true;
  const Tensor result =
      (graphed_step_ ? (*graphed_step_)(tokens, targets)
                     : take_step(tokens.to(options_.device, non_blocking), targets.to(options_.device, non_blocking)))
          .cpu();  // waits
  schedule_.step();
  ++iteration_;
  report.loss = result[0].item<double>();
  check_loss(report.loss, rush::str("step ", iteration_));
  last_loss_ = report.loss;
  report.grad_norm = result[1].item<double>();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  log_.add(iteration_, "loss/batch", report.loss);
  log_.add(iteration_, "gradient norm", report.grad_norm);
  log_.add_step(iteration_, report.learning_rate, "tokens", static_cast<double>(tokens_in_step()), report.seconds);
  return report;
}

void Pretraining::rehearse() {
  const Tensor tokens = rush::zeros({micro_batches_ * options_.batch_size, model_->config().block_size},
                                    rush::TensorOptions(rush::kLong).device(options_.device));
  take_step(tokens, tokens);
}

void rehearse_pretraining(const GPTConfig& config, PretrainingOptions options, int64_t checkpointed_blocks) {
  options.device = rush::kMeta;
  options.graph = false;
  RunLog unread;
  const std::vector<int32_t> text(static_cast<size_t>(config.block_size) + 1);
  GPT model(config);
  model->checkpoint_blocks(checkpointed_blocks);
  Pretraining run(std::move(model), TextData(text, text, config.block_size), options, unread);
  run.rehearse();
  run.rehearse();  // the first one made AdamW's states
}

double Pretraining::estimate(TextData::Split split) {
  const rush::NoGradGuard no_grad;
  model_->eval();
  const double loss = estimated_loss(
      data_, split, options_.batch_size, options_.eval_iters, options_.seed, [this](const TextData::Batch& batch) {
        return mean(loss_of({batch.first.to(options_.device), batch.second.to(options_.device)})).item<double>();
      });
  model_->train();
  check_loss(loss, rush::str("the estimate of step ", iteration_));
  return loss;
}

void Pretraining::save(const std::string& path) {
  check_weights(parameters(), rush::str("step ", iteration_));
  if (mesh_ && iteration_ > 0) save_shards(path, iteration_, *mesh_, optimizer_);
  if (processes_ && !processes_->is_first()) return;
  save_checkpoint(checkpoint(nullptr), path);
  if (mesh_) remove_other_shards(path, iteration_);
}

void Pretraining::load(const std::string& path, std::vector<std::string>* changes) {
  checkpoint(changes).load(path);
  if (mesh_ && iteration_ > 0) load_shards(path, iteration_, *mesh_, optimizer_);
  RUSH_CHECK_VALUE(iteration_ <= options_.max_iters, path, " has done ", iteration_, " steps, more than --max_iters ",
                   options_.max_iters);
  set_decay_options(optimizer_, schedule_, options_.adamw(), options_.rates()(iteration_));
}

rush::Checkpoint Pretraining::checkpoint(std::vector<std::string>* changes) {
  const GPTConfig& c = model_->config();
  rush::Checkpoint all;
  all.expect("sizes", rush::str(c.vocab_size, " ", c.block_size, " ", c.n_layer, " ", c.n_head, " ", c.n_embd));
  all.expect("dtype", options_.dtype).expect("text", data_.description());
  all.expect("batch_size", rush::str(options_.batch_size)).expect("micro_batches", rush::str(micro_batches_));
  all.expect("seed", rush::str(options_.seed));
  all.expect("device", rush::str(options_.device), changes).expect("dropout", rush::str(c.dropout), changes);
  expect_rates(all, options_, changes);
  if (!mesh_) all.add("model", model_).add("optimizer", optimizer_);
  all.add("schedule", schedule_).add("scaler", scaler_).add("batches", generator_);
  all.add("random", rush::default_generator(options_.device));
  all.add("iteration", iteration_).add("best_loss", best_loss_).add("log", log_);
  return all;
}

void Pretraining::gather() {
  if (mesh_) mesh_->gather(*model_);
}

}  // namespace examples
