#include "examples/mnist/trainer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/io/crc32.h"
#include "examples/check_loss.h"
#include "examples/parameter_count.h"
#include "examples/progress.h"
#include "examples/run_folder.h"
#include "examples/stop_request.h"

namespace examples {

using rush::Tensor;
namespace data = rush::data;
namespace F = rush::nn::functional;

namespace {

constexpr int64_t kTestBatch = 500;
constexpr double kShownSteps = 50;  // over how many steps the bar's numbers are averaged

// Moves all images of a batch by up to one pixel: where exactly a digit stands must not matter.
Tensor shifted(const Tensor& images) {  // (N, 1, 28, 28) -> the same
  const Tensor shift = rush::randint(3, {2}, rush::kInt64);
  const Tensor padded = F::pad(images, F::PadFuncOptions({1, 1, 1, 1}));  // (N, 1, 30, 30)
  return padded.narrow(2, shift[0].item<int64_t>(), images.size(2)).narrow(3, shift[1].item<int64_t>(), images.size(3));
}

// The share of the digits whose score is the highest: (N, 10), (N) -> ()
Tensor share_right(const Tensor& scores, const Tensor& targets) {
  return scores.argmax(1).eq(targets).to(rush::kFloat32).mean();
}

// One step: the loss before it, and the share of the digits that were read correctly; (2), on the device.
template <class Module>
Tensor train_on(const Tensor& images, const Tensor& targets, Module& net, const Precision& precision,
                rush::amp::GradScaler& scaler, rush::optim::Optimizer& optimizer) {
  Tensor scores, loss;
  {
    const auto scope = precision.scope();
    scores = net(images);
    loss = F::cross_entropy(scores, targets);
  }
  optimizer.zero_grad();
  scaler.scale(loss).backward();
  scaler.step(optimizer);
  scaler.update();
  return rush::stack({loss.detach().to(rush::kFloat32), share_right(scores, targets)});
}

}  // namespace

Trainer::Trainer(const DigitSets& digits, const TrainerOptions& options, RunLog& log)
    : digits_(digits),
      options_(options),
      steps_per_epoch_(digits.train.size() / options.batch_size),
      loader_(data::make_data_loader<data::samplers::RandomSampler>(
          data::datasets::TensorPairDataset(digits.train.images, digits.train.targets)
              .map(data::transforms::Stack<>())
              .map(data::transforms::PinMemory<>()),
          data::DataLoaderOptions(static_cast<size_t>(options.batch_size)).workers(1).drop_last(true))),
      batches_(*loader_, options.device),
      precision_(options.dtype, options.device),
      scaler_(precision_.scaler()),
      optimizer_(net_->parameters(), rush::optim::AdamWOptions(options.lr).capturable(options.graph)),
      schedule_(optimizer_, options.lr, options.epochs * steps_per_epoch_),
      log_(log) {
  net_->to(options.device);
  prepare_step();
}

void Trainer::prepare_step() {
  if (options_.processes && options_.processes->count() > 1) {
    RUSH_CHECK_VALUE(!options_.compile && !options_.graph, "--compile and --graph are for one process");
    options_.processes->check_batch(options_.batch_size);
    together_ = rush::nn::DistributedDataParallel<NetImpl>(net_);
  }
  if (options_.compile) {
    compiled_step_.emplace(
        [this](const Tensor& images, const Tensor& targets) { return take_plain_step(images, targets); });
  }
  if (!options_.graph) return;
  RUSH_CHECK_VALUE(options_.device.is_cuda(), "--graph needs --device cuda");
  graphed_step_.emplace([this](const Tensor& images, const Tensor& targets) { return take_step(images, targets); });
}

void Trainer::run_epoch() {
  net_->train();
  const StopRequest request;
  const int64_t before = step_ - epoch_ * steps_per_epoch_;
  const double seconds_before = seconds_;
  Progress progress(rush::str("epoch ", epoch_ + 1, "/", options_.epochs),
                    (steps_per_epoch_ - before) * options_.batch_size, "images");
  Shown shown;
  int64_t steps = 0;
  for (const auto& batch : batches_) {
    ++steps;
    log_.add_step(epoch_ * steps_per_epoch_ + before + steps, schedule_.get_last_lr()[0], "images",
                  static_cast<double>(options_.batch_size));
    learn(batch.data, batch.target);
    note_results(shown, /*all=*/false);
    progress.update(steps * options_.batch_size, {{"loss", shown.loss}, {"accuracy", shown.accuracy}});
    seconds_ = seconds_before + progress.elapsed();
    const bool stopping = request.pending();
    if (!stopping && (before + steps) % options_.checkpoint_interval != 0) continue;
    note_results(shown, /*all=*/true);
    if (stopping) stop(request);
    try_to_save(progress);
  }
  note_results(shown, /*all=*/true);
  progress.finish();

  const Evaluation test = evaluate();
  check_loss(test.loss, rush::str("the test after epoch ", epoch_ + 1));
  ++epoch_;
  log_.add(step_, "loss/test", test.loss);
  log_.add(step_, "accuracy/test", test.accuracy);
  std::printf("  after %lld: test loss %.4f, test accuracy %.4f\n", static_cast<long long>(epoch_), test.loss,
              test.accuracy);
  if (request.pending()) stop(request);
  try_to_save(progress);
}

void Trainer::try_to_save(Progress& progress) {
  const std::string warning = examples::try_to_save([this] { save_checkpoint(); });
  if (!warning.empty()) progress.warn(warning);
}

void Trainer::stop(const StopRequest& request) {
  request.end(rush::str("after step ", step_), options_.checkpoint.empty() ? "" : options_.resume_command,
              [this] { save_checkpoint(); });
}

rush::Checkpoint Trainer::checkpoint() {
  const Tensor labels = digits_.train.targets.contiguous();
  rush::io::Crc32 sum;
  sum.update(labels.data_ptr(), static_cast<size_t>(labels.nbytes()));
  rush::Checkpoint all;
  all.expect("epochs", rush::str(options_.epochs)).expect("batch_size", rush::str(options_.batch_size));
  all.expect("lr", rush::str(options_.lr)).expect("seed", rush::str(options_.seed));
  all.expect("dtype", options_.dtype).expect("device", rush::str(options_.device), options_.changes);
  all.expect("digits", rush::str(digits_.train.size(), " with checksum ", sum.value()));
  all.add("net", net_).add("optimizer", optimizer_).add("schedule", schedule_);
  all.add("scaler", scaler_).add("random", rush::default_generator()).add("loader", batches_).add("epoch", epoch_);
  all.add("log", log_).add("step", step_).add("seconds", seconds_);
  return all;
}

void Trainer::save_checkpoint() {
  if (options_.checkpoint.empty() || (options_.processes && !options_.processes->is_first())) return;
  check_weights(net_->parameters(), rush::str("step ", step_));
  examples::save_checkpoint(checkpoint(), options_.checkpoint);
}

bool Trainer::resume() {
  if (!std::filesystem::exists(options_.checkpoint)) return false;
  checkpoint().load(options_.checkpoint);
  return true;
}

Tensor Trainer::take_step(const Tensor& images, const Tensor& targets) {
  if (compiled_step_) return (*compiled_step_)(images, targets);
  return take_plain_step(images, targets);
}

Tensor Trainer::take_plain_step(const Tensor& images, const Tensor& targets) {
  if (!together_) return train_on(images, targets, net_, precision_, scaler_, optimizer_);
  const Processes& all = *options_.processes;
  return all.mean(train_on(all.rows(images), all.rows(targets), together_, precision_, scaler_, optimizer_));
}

void rehearse_training(int64_t batch_size, const std::string& dtype) {
  Net net;
  net->to(rush::kMeta);
  const Precision precision(dtype, rush::kMeta);
  rush::amp::GradScaler scaler = precision.scaler();
  rush::optim::AdamW optimizer(net->parameters(), rush::optim::AdamWOptions(1e-3));
  const Tensor images = rush::zeros({batch_size, 1, 28, 28}, rush::kMeta);
  const Tensor targets = rush::zeros({batch_size}, rush::TensorOptions(rush::kLong).device(rush::kMeta));
  for (int step = 0; step < 2; ++step) train_on(images, targets, net, precision, scaler, optimizer);
}

void Trainer::learn(const Tensor& images, const Tensor& targets) {
  const Tensor moved = shifted(images);  // by numbers of the host's, so not a part of the graph
  results_.push(graphed_step_ ? (*graphed_step_)(moved, targets) : take_step(moved, targets));
  schedule_.step();
}

void Trainer::note_results(Shown& shown, bool all) {
  while (const std::optional<Tensor> step = results_.pop(all)) {
    const double loss = (*step)[0].item<double>(), accuracy = (*step)[1].item<double>();
    check_loss(loss, rush::str("step ", ++step_));
    log_.add(step_, "loss/train", loss);
    log_.add(step_, "accuracy/train", accuracy);
    const double weight = 1 / std::min(static_cast<double>(++shown.steps), kShownSteps);
    shown.loss += weight * (loss - shown.loss);
    shown.accuracy += weight * (accuracy - shown.accuracy);
  }
}

Evaluation Trainer::evaluate() {
  const rush::NoGradGuard no_grad;
  const auto precision = precision_.scope();
  net_->eval();
  double loss = 0, right = 0;
  std::vector<Tensor> predicted, confidence;
  for (int64_t begin = 0; begin < digits_.test.size(); begin += kTestBatch) {
    const int64_t count = std::min(kTestBatch, digits_.test.size() - begin);
    const Tensor targets = digits_.test.targets.narrow(0, begin, count).to(options_.device);
    const Tensor images = digits_.test.images.narrow(0, begin, count).to(options_.device);
    const Tensor scores = net_(images).to(rush::kFloat32);
    loss += F::cross_entropy(scores, targets).item<double>() * static_cast<double>(count);
    right += share_right(scores, targets).item<double>() * static_cast<double>(count);
    const auto [probability, digit] = rush::softmax(scores, 1).max(1);
    predicted.push_back(digit.cpu());
    confidence.push_back(probability.cpu());
  }
  const auto total = static_cast<double>(digits_.test.size());
  return {loss / total, right / total, rush::cat(predicted), rush::cat(confidence)};
}

int64_t Trainer::parameter_count() const { return examples::parameter_count(*net_); }

void Trainer::save(const std::string& path) const { rush::save(net_, path); }

}  // namespace examples
