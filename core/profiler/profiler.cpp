#include "core/profiler/profiler.h"

#include "core/memory/byte_text.h"
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
    constexpr int64_t kMost = int64_t{1} << 40;  // so that their sum is a number of steps, too
    for (const int64_t steps : {s->wait, s->warmup, s->active - 1, s->repeat, s->skip_first}) {
      RUSH_CHECK_VALUE(steps >= 0 && steps <= kMost,
                       "profiler: a schedule needs an active step, and no number below 0 or above ", kMost);
    }
  }
  begin_step();
}

Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception&) {
    // stop() would have said so.
  }
  if (recording_ && recording_->is_of_this_process()) recording_->forget();
}

// Begins what the schedule asks of this step.
void Profile::begin_step() {
  const Action action = options_.schedule ? options_.schedule->at(step_) : Action::Record;
  if (action == Action::None) return;
  if (!records_) {
    check_none_records();  // before a file is written over
    ProfileOptions options = options_;
    if (action == Action::Warmup) options.trace.clear();
    recording_ = std::make_shared<Recording>(options);
    begin_recording(recording_);
    records_ = true;
  }
  if (options_.schedule)
    step_scope_.emplace(
        EventKind::Step, [] { return "ProfilerStep*"; }, step_);
}

void Profile::end_recording() {
  if (!records_) return;
  records_ = false;
  profiler::end_recording(recording_);
  if (recording_->is_of_this_process()) recording_->finish();
}

void Profile::step() {
  if (stopped_) return;
  step_scope_.reset();
  std::exception_ptr failure;  // after which the next step begins all the same
  if (options_.schedule) {
    const Action action = options_.schedule->at(step_), next = options_.schedule->at(step_ + 1);
    const bool saves = action == Action::RecordAndSave;
    try {
      if (saves || (action == Action::Warmup && next != Action::Warmup)) end_recording();
      if (saves && options_.on_trace_ready) options_.on_trace_ready(*this);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  ++step_;
  if (!stopped_) begin_step();  // on_trace_ready may have stopped it
  if (failure) std::rethrow_exception(failure);
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

std::vector<Advice> Profile::advice() const {
  return recording_ ? advice_on(recording_->facts()) : std::vector<Advice>();
}

MemoryPeak Profile::memory_peak() const { return recording_ ? recording_->memory_peak() : MemoryPeak(); }

std::string MemoryPeak::text() const {
  return str(op, ", with ", byte_text(uses.sum()), " in use on ", device, ": ", uses.text());
}

void Profile::export_chrome_trace(const std::string& path) const {
  RUSH_CHECK_VALUE(options_.trace.empty(), "export_chrome_trace: this profile writes its trace to ", options_.trace);
  TraceWriter writer(path);
  if (recording_) recording_->write_trace(writer);
  writer.finish();
}

int64_t Profile::dropped_events() const { return recording_ ? recording_->dropped() : 0; }

}  // namespace rush::profiler
