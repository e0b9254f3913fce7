#include "core/profiler/profiler.h"

#include "core/profiler/recording.h"

namespace rush::profiler {

using Action = Schedule::Action;

Action Schedule::at(int64_t step) const {
  const int64_t cycle = wait + warmup + active;
  const int64_t since = step - skip_first;
  if (since < 0 || (repeat > 0 && since / cycle >= repeat)) return Action::None;
  const int64_t within = since % cycle;
  if (within < wait) return Action::None;
  if (within < wait + warmup) return Action::Warmup;
  return within + 1 < cycle ? Action::Record : Action::RecordAndSave;
}

Profile::Profile(ProfileOptions options) : options_(std::move(options)) {
  RUSH_CHECK_VALUE(options_.max_events >= 0, "profiler: max_events must be at least 0, got ", options_.max_events);
  if (const auto& s = options_.schedule) {
    RUSH_CHECK_VALUE(s->wait >= 0 && s->warmup >= 0 && s->active >= 1 && s->repeat >= 0 && s->skip_first >= 0,
                     "profiler: a schedule needs an active step, and no number below 0");
  }
  begin_step();
}

Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception&) {
    // stop() would have said so.
  }
  if (recording_) recording_->forget();
}

// Begins what the schedule asks of this step.
void Profile::begin_step() {
  const Action action = options_.schedule ? options_.schedule->at(step_) : Action::Record;
  if (action == Action::None) return;
  if (!records_) {
    ProfileOptions options = options_;
    if (action == Action::Warmup) options.trace.clear();
    recording_ = std::make_shared<Recording>(options);
    begin_recording(recording_);
    records_ = true;
  }
  if (options_.schedule) step_scope_.emplace(EventKind::Step, [&] { return str("ProfilerStep#", step_); });
}

void Profile::end_recording() {
  if (!records_) return;
  records_ = false;
  profiler::end_recording();
  recording_->finish();
}

void Profile::step() {
  if (stopped_) return;
  step_scope_.reset();
  if (options_.schedule) {
    const Action action = options_.schedule->at(step_), next = options_.schedule->at(step_ + 1);
    const bool saves = action == Action::RecordAndSave;
    if (saves || (action == Action::Warmup && next != Action::Warmup)) end_recording();
    if (saves && options_.on_trace_ready) options_.on_trace_ready(*this);
  }
  ++step_;
  begin_step();
}

void Profile::stop() {
  if (stopped_) return;
  stopped_ = true;
  step_scope_.reset();
  const bool was_recording = records_;
  end_recording();
  const bool warms_up = options_.schedule && options_.schedule->at(step_) == Action::Warmup;
  if (was_recording && !warms_up && options_.on_trace_ready) options_.on_trace_ready(*this);
}

KeyAverages Profile::key_averages(bool group_by_input_shape, bool group_by_stack) const {
  return recording_ ? recording_->averages(group_by_input_shape, group_by_stack) : KeyAverages();
}

void Profile::export_chrome_trace(const std::string& path) const {
  RUSH_CHECK_VALUE(options_.trace.empty(), "export_chrome_trace: this profile writes its trace to ", options_.trace);
  TraceWriter writer(path);
  if (recording_) recording_->write_trace(writer);
  writer.finish();
}

int64_t Profile::dropped_events() const { return recording_ ? recording_->dropped() : 0; }

}  // namespace rush::profiler
