#include "core/profiler/record.h"

#include "core/debug/stack_trace.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"
#include "core/profiler/device_activity.h"
#include "core/profiler/flops.h"
#include "core/profiler/recording.h"

namespace rush::profiler {

namespace {

constexpr size_t kListed = 1024;  // events of a thread, before they are added up

// What a thread has of the recording that it took part in last. It keeps that, so that scopes need not.
struct OwnPart {
  std::shared_ptr<Recording> recording;
  uint64_t id = 0;
  CallPaths paths;  // those that the thread has been on
  std::shared_ptr<ThreadLog> log = std::make_shared<ThreadLog>();

  ~OwnPart() { give(); }
  void attach() {
    const std::shared_ptr<Recording> current = current_recording();
    if (!current || current->id == id) return;
    recording = current;
    id = current->id;
    paths.clear();
    const std::lock_guard lock(log->mutex);
    log->events.clear();
    log->events.reserve(kListed);
    log->number = current->add_thread(log);
    log->recording = id;
  }
  uint32_t path_of(const CallPath& path) {
    const auto [at, is_new] = paths.try_emplace(path);
    if (is_new) at->second = recording->number_of(path);
    return at->second;
  }
  void add(const Event& event, uint64_t recorded_by) {
    const std::lock_guard lock(log->mutex);
    if (log->recording != recorded_by) return;  // it has ended
    log->events.push_back(event);
    log->events.back().thread = log->number;
    if (log->events.size() == kListed) recording->take(log->events);
  }
  void give() {
    const std::lock_guard lock(log->mutex);
    if (log->recording == id && recording) recording->take(log->events);
  }
};
thread_local constinit OwnPart* part = nullptr;
thread_local constinit bool thread_has_ended = false;

// Null when the thread ends: destructors of static variables may still call operators.
OwnPart* own_part() {
  struct AtEnd {
    ~AtEnd() {
      delete part;
      part = nullptr;
      thread_has_ended = true;
    }
  };
  if (RUSH_UNLIKELY(!part && !thread_has_ended)) {
    thread_local const AtEnd at_end;
    part = new OwnPart;
  }
  return part;
}

thread_local constinit Scope* innermost = nullptr;

// "[[2, 3], [3], []]": an entry for each argument, as PyTorch's traces have it.
std::string shapes_of(const Stack& arguments) {
  std::string text;
  for (const Value& value : arguments) {
    std::string sizes;
    if (value.is<Tensor>() && value.as<Tensor>().defined()) {
      for (const int64_t size : value.as<Tensor>().sizes()) sizes += str(sizes.empty() ? "" : ", ", size);
    }
    text += str(text.empty() ? "[" : ", [", sizes, "]");
  }
  return "[" + text + "]";
}

// Of the tensors' elements, those in lists too, as if each were read or written once.
double bytes_of(const Stack& values) {
  double bytes = 0;
  const auto add = [&bytes](const Tensor& tensor) {
    if (tensor.defined()) bytes += static_cast<double>(tensor.nbytes());
  };
  for (const Value& value : values) {
    if (value.is<Tensor>()) add(value.as<Tensor>());
    if (value.is<std::vector<Tensor>>()) {
      for (const Tensor& tensor : value.as<std::vector<Tensor>>()) add(tensor);
    }
  }
  return bytes;
}

}  // namespace

bool Scope::join() {
  OwnPart* own = own_part();
  const uint64_t current = detail::recording.load(std::memory_order_relaxed);
  if (!own || current == 0) return false;
  if (current != own->id) own->attach();
  if (current != own->id) return false;
  recording_ = own->recording.get();
  recording_id_ = own->id;
  return true;
}

// Comes last in a constructor: what throws before leaves no trace.
void Scope::open() {
  event_.number = recording_->next_number();
  if (recording_->devices) {
    const uint32_t outer = innermost && innermost->recording_id_ == recording_id_ ? innermost->event_.path : 0;
    event_.path = own_part()->path_of({outer, {event_.name, event_.kind, event_.dtype, event_.shapes, event_.stack}});
    recording_->devices->enter(label_of(event_.path, event_.number));
    devices_ = recording_->devices;
  }
  outer_ = innermost;
  innermost = this;
  event_.begin = steady_now();
}

void Scope::begin(EventKind kind, std::string_view name, int64_t sequence_nr) {
  if (!join()) return;
  event_.kind = kind;
  event_.name = *recording_->keep(name);
  event_.sequence_nr = sequence_nr;
  open();
}

Scope::Scope(const OpBase& op, const Stack& arguments) {
  if (!join()) return;
  op_ = &op;
  event_.name = op.name();
  // Under autocast the operator is called again, with another dtype.
  const bool is_final = !dispatch_state.included.has(DispatchKey::Autocast);
  if (is_final && !arguments.empty() && arguments[0].is<Tensor>() && arguments[0].as<Tensor>().defined()) {
    event_.dtype = static_cast<int8_t>(arguments[0].as<Tensor>().scalar_type());
  }
  if (recording_->record_shapes) event_.shapes = recording_->keep(shapes_of(arguments));
  if (recording_->with_stack) {
    event_.stack = recording_->keep(join_frames(StackTrace::capture().frames_outside_library()));
  }
  if (recording_->with_flops) {
    flops_per_result_ = flops_per_result(op, arguments);
    event_.bytes = bytes_of(arguments);
  }
  open();
}

void Scope::see_results(const Stack& results) {
  const OwnPart* own = own_part();
  if (!recording_ || !own || own->id != recording_id_) return;  // another profile records meanwhile
  if (recording_->with_flops) event_.bytes += bytes_of(results);
  if (results.empty() || !results[0].is<Tensor>()) return;
  const Tensor& first = results[0].as<Tensor>();
  if (!first.defined()) return;
  if (recording_->profile_memory) recording_->see_memory(event_.name, first.device());
  if (sequence_nr_of) event_.sequence_nr = sequence_nr_of(first);
  event_.flops = flops_per_result_ * static_cast<double>(first.numel());
  if (first.element_size() == 2) event_.flops_16 = event_.flops;
}

void Scope::end() noexcept {
  event_.end = steady_now();
  innermost = outer_;
  if (devices_ && !detail::devices_are_the_parents.load(std::memory_order_relaxed)) devices_->leave();
  if (outer_) outer_->event_.inner += event_.end - event_.begin;
  if (OwnPart* own = own_part()) own->add(event_, recording_id_);
}

void observe_call(const OpBase& op, KeySet keys, Stack& stack) {
  const KeySet behind = stops_behind(keys) | DispatchKey::Profiler;
  const DispatchKey next = op.served_by(keys.without(KeySet(DispatchKey::Trace) | DispatchKey::Profiler));
  struct Range {
    const bool entered;
    ~Range() {
      if (entered) call_ranges.end();
    }
  } range{call_ranges.begin && keys.has_any(kAccelerators) && is_backend_key(next)};
  if (range.entered) call_ranges.begin(op.name());
  if (!is_recording() || (innermost && innermost->op_ == &op)) return op.call_boxed(stack, behind);
  Scope scope(op, stack);
  op.call_boxed(stack, behind);
  scope.see_results(stack);
}

void register_profiler(Registry& registry) { registry.fallback(DispatchKey::Profiler, observe_call); }

}  // namespace rush::profiler

namespace rush {

record_function::record_function(std::string_view name)
    : is_marked_(profiler::call_ranges.begin != nullptr), scope_(profiler::EventKind::Range, [&] { return name; }) {
  if (is_marked_) profiler::call_ranges.begin(name);
}

record_function::~record_function() {
  if (is_marked_) profiler::call_ranges.end();
}

}  // namespace rush
