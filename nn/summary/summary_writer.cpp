#include "nn/summary/summary_writer.h"

#include <algorithm>
#include <ctime>

#include "nn/summary/graph.h"

namespace rush {

using summary::ProtoMessage;

namespace {

// Fields of Event.
enum EventField : uint32_t { kWallTime = 1, kStep = 2, kGraphDef = 4, kSummary = 5, kSessionLog = 7 };

ProtoMessage event(int64_t step, std::optional<double> walltime) {
  return ProtoMessage().float64(kWallTime, walltime.value_or(summary::wall_time())).integer(kStep, step);
}

// "runs/Jan31_23-59-59_host", as PyTorch names it.
std::string default_folder(const std::string& comment) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof time, "%b%d_%H-%M-%S", &local);
  return str("runs/", time, "_", summary::host_name(), comment);
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& log_dir, const SummaryWriterOptions& options)
    : log_dir_(log_dir.empty() ? default_folder(options.comment()) : log_dir),
      file_(log_dir_, options.filename_suffix()) {
  if (!options.purge_step()) return;
  constexpr int64_t kStart = 1;
  file_.add(event(*options.purge_step(), {}).message(kSessionLog, ProtoMessage().integer(1, kStart)));
}

SummaryWriter::~SummaryWriter() {
  try {
    close();
  } catch (const std::exception&) {  // nobody is there to hear of it
  }
}

void SummaryWriter::add_summary(const ProtoMessage& summary, int64_t step, std::optional<double> walltime) {
  file_.add(event(step, walltime).message(kSummary, summary));
}

SummaryWriter& SummaryWriter::run(const std::string& name) {
  const std::lock_guard lock(runs_mutex_);
  const auto found = runs_.find(name);
  if (found != runs_.end()) return *found->second;
  return *runs_.emplace(name, std::make_unique<SummaryWriter>(log_dir_ + "/" + name)).first->second;
}

void SummaryWriter::add_scalar(const std::string& tag, double value, int64_t step, std::optional<double> walltime) {
  add_summary(summary::scalar(tag, value), step, walltime);
}

void SummaryWriter::add_scalars(const std::string& main_tag, const NamedScalars& values, int64_t step,
                                std::optional<double> walltime) {
  for (const auto& [name, value] : values) {
    std::string folder = main_tag + "_" + name;
    std::replace(folder.begin(), folder.end(), '/', '_');
    run(folder).add_scalar(main_tag, value, step, walltime);
  }
}

void SummaryWriter::add_histogram(const std::string& tag, const Tensor& values, int64_t step,
                                  std::optional<double> walltime) {
  add_summary(summary::histogram(tag, values), step, walltime);
}

void SummaryWriter::add_image(const std::string& tag, const Tensor& image, int64_t step, std::optional<double> walltime,
                              const std::string& dataformats) {
  add_summary(summary::image(tag, image, dataformats), step, walltime);
}

void SummaryWriter::add_text(const std::string& tag, const std::string& text, int64_t step,
                             std::optional<double> walltime) {
  add_summary(summary::text(tag, text), step, walltime);
}

void SummaryWriter::add_hparams(const HParams& hparams, const NamedScalars& metrics, const std::string& run_name,
                                int64_t step) {
  SummaryWriter& writer =
      run_name == "." ? *this
                      : run(run_name.empty() ? str(static_cast<int64_t>(summary::wall_time() * 1e6)) : run_name);
  writer.add_summary(summary::hparams(hparams, metrics), 0, {});
  for (const auto& [name, value] : metrics) writer.add_scalar(name, value, step);
}

void SummaryWriter::add_graph(const nn::Module& model, const Tensor& output) {
  file_.add(event(0, {}).message(kGraphDef, summary::graph(model, output)));
}

void SummaryWriter::flush() {
  const std::lock_guard lock(runs_mutex_);
  for (const auto& [name, writer] : runs_) writer->flush();
  file_.flush();
}

void SummaryWriter::close() {
  const std::lock_guard lock(runs_mutex_);
  for (const auto& [name, writer] : runs_) writer->close();
  file_.close();
}

}  // namespace rush
