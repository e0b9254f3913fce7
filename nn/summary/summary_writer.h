// SummaryWriter: logs of a training run that TensorBoard shows (`tensorboard --logdir runs`).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "nn/arg.h"
#include "nn/module.h"
#include "nn/summary/event_file.h"
#include "nn/summary/summary.h"

namespace rush {

struct SummaryWriterOptions {
  /// Ends the name of the folder where none is given.
  RUSH_ARG(std::string, comment) = "";
  /// TensorBoard hides what an earlier writer in the folder logged for this step and later ones: for a run that goes
  /// on.
  RUSH_ARG(std::optional<int64_t>, purge_step) = std::nullopt;
  /// Ends the name of the event file.
  RUSH_ARG(std::string, filename_suffix) = "";
};

/// Writes scalars, histograms, images, text, hyperparameters and graphs to an event file. Mirrors
/// torch.utils.tensorboard.SummaryWriter (https://pytorch.org/docs/stable/tensorboard.html), except that there is no
/// queue: every event is handed to the kernel when it is added, so that a killed process has logged it, see Note [Event
/// files].
///
/// A tag is a name that may have slashes: TensorBoard shows "loss/train" and "loss/test" together. `walltime` is in
/// seconds since 1970; by default, now. Any thread may call any function. On a full disk add_... keep what cannot be
/// written in memory, and flush() throws.
class SummaryWriter {
 public:
  /// Writes to the folder `log_dir`, which is made; by default runs/DATE_TIME_HOST. Throws IOError.
  explicit SummaryWriter(const std::string& log_dir = "", const SummaryWriterOptions& options = {});
  /// Closes the files; what cannot be written is lost.
  ~SummaryWriter();

  /// Logged in float32; NaN and infinities stay what they are.
  void add_scalar(const std::string& tag, double value, int64_t global_step = 0,
                  std::optional<double> walltime = std::nullopt);
  /// Logs several values that TensorBoard draws into one chart: each in a run of its own, the folder
  /// log_dir/MAIN_TAG_NAME, with slashes as underscores. Throws IOError.
  void add_scalars(const std::string& main_tag, const NamedScalars& values, int64_t global_step = 0,
                   std::optional<double> walltime = std::nullopt);
  /// The distribution of all values of a tensor, of any shape, device and dtype but complex ones (TypeError). Those
  /// that are not finite are left out.
  void add_histogram(const std::string& tag, const Tensor& values, int64_t global_step = 0,
                     std::optional<double> walltime = std::nullopt);
  /// An image whose dimensions `dataformats` names: "CHW", "HWC" or "HW"; 1 channel is grey, 3 are RGB, a further one
  /// is alpha. Floating point values are taken from [0, 1] (beyond it they are cut), or uint8 ones. Throws ValueError
  /// and TypeError for others.
  void add_image(const std::string& tag, const Tensor& image, int64_t global_step = 0,
                 std::optional<double> walltime = std::nullopt, const std::string& dataformats = "CHW");
  /// Text, which TensorBoard reads as Markdown.
  void add_text(const std::string& tag, const std::string& text, int64_t global_step = 0,
                std::optional<double> walltime = std::nullopt);
  /// The settings of a run and what came of them, for TensorBoard's page that compares runs. The metrics are logged as
  /// scalars, too, at `global_step`. They go to the run log_dir/RUN_NAME, whose default is the time; "." stands for
  /// this writer's own run. Throws IOError.
  void add_hparams(const HParams& hparams, const NamedScalars& metrics, const std::string& run_name = "",
                   int64_t global_step = 0);
  /// The operators by which `model` computed `output`, as recorded for the backward pass, with the model's names.
  /// Throws ValueError unless `output` requires a gradient. (PyTorch's takes the model's input, and traces it.)
  void add_graph(const nn::Module& model, const Tensor& output);

  /// Waits until all that was added is on the disk. Throws IOError if it is not.
  void flush();
  /// The same, then closes the files; adding to a closed writer throws Error.
  void close();

  const std::string& log_dir() const { return log_dir_; }

 private:
  void add_summary(const summary::ProtoMessage& summary, int64_t step, std::optional<double> walltime);
  // The writer of the run in a folder below log_dir, made where there is none.
  SummaryWriter& run(const std::string& name);

  std::string log_dir_;
  summary::EventFile file_;
  std::mutex runs_mutex_;
  std::map<std::string, std::unique_ptr<SummaryWriter>> runs_;  // of add_scalars and add_hparams, by their folders
};

}  // namespace rush
