#include "autograd/compile/recorded_calls.h"

#include <algorithm>
#include <atomic>

#include "autograd/compile/graph_dump.h"
#include "autograd/compile/program.h"
#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/ops/factory/factories.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

// Of copies for each kernel: as long as the host takes to launch one.
constexpr int64_t kMostCopiedPerKernel = 1 << 20;
constexpr size_t kMemoryPerRecording = 4;  // so many times what its calls make
// Two runs as they are, the second on the stream of the capture, where libraries make their handles and plans.
constexpr int kRunsBefore = 2;
// Runs that are waited for until inputs lie still, as those of a backward pass do once the forward pass is recorded.
constexpr int kMostWaits = 2;
// Runs in a row of a recorded program whose inputs lie elsewhere.
constexpr int kMostMisses = 2;

Device recording_device(const Graph& graph) {
  for (const Graph::TensorInfo& info : graph.tensors) {
    const bool records = info.device.is_accelerator() && backend_of(info.device.type).graph_runtime();
    if (records && graphs::accelerator() == info.device.type) return info.device;
  }
  return kCPU;
}

const void* address_of(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

Tensor over(const Storage& storage, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  auto impl = make_intrusive<TensorImpl>(storage, dtype, storage.device());
  impl->set_geometry(sizes, strides, offset);
  return Tensor(std::move(impl));
}

bool is_whole_storage(const Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && static_cast<size_t>(tensor.nbytes()) == tensor.storage().nbytes();
}

// Copies of storages: those of floating-point tensors that fill theirs in one launch for each dtype.
std::map<const StorageImpl*, Storage> copies_of(const std::vector<Tensor>& tensors) {
  std::map<const StorageImpl*, Storage> copies;
  std::map<ScalarType, std::vector<Tensor>> lists;
  for (const Tensor& tensor : tensors) {
    if (!copies.try_emplace(tensor.storage().get()).second) continue;
    if (tensor.is_floating_point() && has_arithmetic(tensor.scalar_type()) && is_whole_storage(tensor)) {
      lists[tensor.scalar_type()].push_back(tensor);
    } else {
      const Storage& storage = tensor.storage();
      copies[storage.get()] = over(storage, kUInt8, static_cast<int64_t>(storage.nbytes()), 1, 0).clone().storage();
    }
  }
  for (const auto& [dtype, list] : lists) {
    const std::vector<Tensor> copied = foreach_to_copy(list, dtype);
    for (size_t i = 0; i < list.size(); ++i) copies[list[i].storage().get()] = copied[i].storage();
  }
  return copies;
}

}  // namespace

RecordedCalls::RecordedCalls(Program& program, const ProgramEnds& ends, size_t fewest_kernels,
                             std::shared_ptr<size_t> places)
    : program_(program),
      ends_(ends),
      fewest_kernels_(fewest_kernels),
      places_(std::move(places)),
      device_(recording_device(program.graph())) {
  if (device_.is_cpu()) return;
  find_segments();
  find_sources();
  is_given_up_ = segments_.empty() || !fits_the_device();
}
RecordedCalls::~RecordedCalls() { forget(); }

// ---- what can be recorded

size_t RecordedCalls::end_of_row(size_t begin, const std::unordered_set<int32_t>& made_elsewhere) const {
  const Graph& graph = program_.graph();
  const auto stands_still = [&](Graph::Id id) {
    const Graph::TensorInfo& info = graph.info(id);
    return info.is_wrapped_number || (info.device == device_ && !made_elsewhere.contains(info.memory));
  };
  const auto is_recordable = [&](const Graph::Call& call) {
    return !call.host && !(call.op && call.op->has_tag(Tag::Collective)) &&
           std::ranges::all_of(Graph::tensors_of(call.arguments), stands_still) &&
           std::ranges::all_of(Graph::tensors_of(call.results), stands_still);
  };
  return static_cast<size_t>(
      std::find_if_not(graph.calls.begin() + static_cast<std::ptrdiff_t>(begin), graph.calls.end(), is_recordable) -
      graph.calls.begin());
}

void RecordedCalls::find_segments() {
  const Graph& graph = program_.graph();
  std::unordered_set<int32_t> made_elsewhere;
  for (size_t begin = 0; begin < graph.calls.size();) {
    const size_t end = end_of_row(begin, made_elsewhere);
    if (end > begin) segments_.push_back({begin, end});
    if (end < graph.calls.size()) {
      Graph::for_each_tensor(graph.calls[end].results,
                             [&](Graph::Id id) { made_elsewhere.insert(graph.info(id).memory); });
    }
    begin = end + 1;
  }
  for (Segment& segment : segments_) {
    for (size_t i = segment.begin; i < segment.end; ++i) {
      std::ranges::copy(program_.last_used(i), std::back_inserter(segment.let_go));
      std::ranges::copy(graph.calls[i].written, std::back_inserter(segment.written));
    }
  }
}

void RecordedCalls::find_sources() {
  const Graph& graph = program_.graph();
  std::unordered_set<int32_t> seen_elsewhere;  // memory that is written or handed out, or read by its address
  const auto note = [&](Graph::Id id) {
    if (id != Graph::kNone) seen_elsewhere.insert(graph.info(id).memory);
  };
  std::for_each_n(graph.outputs.begin(), ends_.returned, note);
  for (const Graph::Gradient& each : graph.gradients) note(each.gradient);
  for (const Graph::Call& call : graph.calls) {
    std::ranges::for_each(call.written, note);
    if (call.op == &ops::as_strided) note(call.argument(0));
  }
  std::unordered_set<Graph::Id> read;
  for (const Segment& segment : segments_) {
    for (size_t i = segment.begin; i < segment.end; ++i) {
      Graph::for_each_tensor(graph.calls[i].arguments, [&](Graph::Id id) { read.insert(id); });
    }
  }
  const auto add = [&](Graph::Id id, bool may_be_copied) {
    if (read.contains(id) && graph.info(id).device == device_) sources_.push_back({id, may_be_copied});
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Graph::TensorInfo& info = graph.info(graph.inputs[i]);
    const bool is_seen_here_alone = !seen_elsewhere.contains(info.memory) && !may_overlap(info.sizes, info.strides);
    add(graph.inputs[i], i >= ends_.kept && is_seen_here_alone);
  }
  for (const Graph::Constant& each : graph.constants) add(each.id, false);
}

// ---- a run

void RecordedCalls::run() {
  if (device_.is_cpu() || is_given_up_) return run_plainly();
  const DeviceGuard guard(device_);
  if (goes_one_by_one()) return run_plainly();
  std::vector<Source*> moved = moved_sources();
  if (is_recorded_) {
    misses_ = moved.empty() ? 0 : misses_ + 1;
    if (moved.empty() && !is_result_held()) return replay();
    if (misses_ < kMostMisses) return run_plainly();
    forget();
    moved = moved_sources();
    patience_ *= 2;
  }
  ++runs_;
  stands_still_ = std::ranges::all_of(moved, &Source::may_be_copied) ? stands_still_ + 1 : 0;
  if (runs_ < kRunsBefore) return run_plainly();
  if (runs_ == kRunsBefore) return run_beside();
  if (stands_still_ < patience_) return run_plainly();
  if (!moved.empty() && waits_++ < kMostWaits) return run_plainly();
  record(moved);
}

bool RecordedCalls::goes_one_by_one() const {
  const KeySet watched = std::atomic_ref(watching).load(std::memory_order_relaxed) |
                         dispatch_state.included.without(dispatch_state.excluded);
  return !watched.empty() || graphs::is_capturing() || current_stream(device_) == graphs::capture_stream();
}

std::vector<RecordedCalls::Source*> RecordedCalls::moved_sources() {
  std::vector<Source*> moved;
  for (Source& source : sources_) {
    if (source.is_copied) continue;
    const Tensor given = program_.at(source.id);
    if (address_of(given) != source.address) moved.push_back(&source);
    if (is_recorded_) continue;
    source.address = address_of(given);
    if (source.may_be_copied && program_.graph().info(source.id).nbytes() <= kMostCopiedPerKernel) source.last = given;
  }
  return moved;
}

bool RecordedCalls::is_result_held() const {
  const auto is_held = [](const Tensor& tensor) { return tensor.use_count() > 1; };
  return std::ranges::any_of(results_, [](const auto& each) { return each.first->use_count() > each.second; }) ||
         std::ranges::any_of(sources_, is_held, &Source::copy) ||
         std::ranges::any_of(segments_, [&](const Segment& segment) {
           return std::ranges::any_of(segment.made, is_held, &Result::tensor);
         });
}

void RecordedCalls::run_plainly() { program_.run_calls(0, program_.graph().calls.size()); }

// Calls run(segment) for each, and does the calls between them.
template <class Run>
void RecordedCalls::for_each_segment(const Run& run) {
  size_t next = 0;
  for (Segment& segment : segments_) {
    program_.run_calls(next, segment.begin);
    run(segment);
    next = segment.end;
  }
  program_.run_calls(next, program_.graph().calls.size());
}

void RecordedCalls::run_beside() {
  backend_of(device_.type).allocator().empty_cache();  // what the caller's stream had is of no use to the other
  for_each_segment([&](const Segment& segment) {
    const Stream caller = current_stream(device_), side = graphs::capture_stream();
    wait_stream(side, caller);
    {
      const StreamGuard guard(side);
      program_.run_calls(segment.begin, segment.end);
    }
    wait_stream(caller, side);
  });
}

void RecordedCalls::replay() {
  follow(current_stream(device_));
  copy_sources();
  for_each_segment([&](Segment& segment) {
    segment.graph->replay();
    hand_over(segment);
  });
}

// What the last replay reads and writes is used on `now` from here on.
void RecordedCalls::follow(const Stream& now) {
  if (last_.is_queue()) wait_stream(now, last_);
  last_ = now;
}

void RecordedCalls::copy_sources() {
  for (Source& source : sources_) {
    if (!source.is_copied) continue;
    source.copy.copy_(program_.at(source.id));
    program_.set(source.id, source.copy);
  }
}

void RecordedCalls::hand_over(const Segment& segment) {
  std::vector<std::pair<Graph::Id, Tensor>> views;
  for (const Result& each : segment.made) {
    if (each.view_of == Graph::kNone) continue;
    const Tensor input = program_.at(each.view_of);
    const int64_t bytes = input.storage_offset() * input.element_size() + each.view.storage_offset;
    views.emplace_back(each.id, over(input.storage(), each.view.dtype, each.view.sizes, each.view.strides,
                                     bytes / element_size(each.view.dtype)));
  }
  for (const Graph::Id id : segment.written) {
    if (program_.at(id).defined()) program_.at(id).bump_version();
  }
  for (const Graph::Id id : segment.let_go) program_.set(id, {});
  for (const Result& each : segment.made) program_.set(each.id, each.tensor);
  for (const auto& [id, view] : views) program_.set(id, view);
}

// ---- a recording

void RecordedCalls::record(const std::vector<Source*>& moved) {
  forget();  // what an error cut short
  for (Source* source : moved) source->is_copied = source->may_be_copied;
  is_given_up_ = *places_ == 0 || !make_copies();
  if (is_given_up_) return run_plainly();
  waits_ = kMostWaits;
  misses_ = 0;
  pool_ = graphs::make_pool_id();
  backend_of(device_.type).allocator().empty_cache();  // the recording has memory of its own
  follow(current_stream(device_));
  copy_sources();
  for_each_segment([&](Segment& segment) {
    if (is_given_up_ || !capture(segment)) return program_.run_calls(segment.begin, segment.end);
    segment.graph->replay();
    hand_over(segment);
  });
  is_given_up_ = is_given_up_ || !is_worth_it();
  if (is_given_up_) return forget();
  note_results();
  --*places_;
  is_recorded_ = true;
}

bool RecordedCalls::fits_the_device() const {
  const size_t there_is = backend_of(device_.type).properties(device_.index).total_memory;  // 0: not known
  int64_t bytes = 0;
  for (const Graph::Call& call : program_.graph().calls) {
    if (call.op && call.op->is_view()) continue;
    Graph::for_each_tensor(call.results, [&](Graph::Id id) { bytes += program_.graph().info(id).nbytes(); });
  }
  return there_is == 0 || static_cast<size_t>(bytes) <= there_is / kMemoryPerRecording;
}

bool RecordedCalls::is_worth_it() const {
  const Graph& graph = program_.graph();
  int64_t bytes = 0;
  size_t kernels = 0;
  for (const Source& source : sources_) {
    if (source.is_copied) bytes += graph.info(source.id).nbytes();
  }
  for (size_t i = 0; i < ends_.returned; ++i) {
    if (graph.outputs[i] != Graph::kNone) bytes += graph.info(graph.outputs[i]).nbytes();
  }
  for (const Segment& segment : segments_) kernels += segment.graph->nodes();
  return kernels >= fewest_kernels_ * segments_.size() && bytes <= static_cast<int64_t>(kernels) * kMostCopiedPerKernel;
}

// False where there is no memory for them.
bool RecordedCalls::make_copies() {
  try {
    for (Source& source : sources_) {
      const Tensor now = program_.at(source.id);
      source.address = address_of(now);
      source.last.reset();
      if (!source.is_copied) continue;
      source.copy = detail::empty_strided(now.sizes(), now.strides(), now.scalar_type(), now.device());
      source.copy.requires_grad_(now.requires_grad());  // which results of some operators depend on
    }
  } catch (const OutOfMemoryError& error) {
    refuse(error);
  }
  return !is_given_up_;
}

void RecordedCalls::refuse(const Error& error) {
  log(str("not recorded: ", error.what()));
  is_given_up_ = true;
}

// False where the device refuses: nothing is done then.
bool RecordedCalls::capture(Segment& segment) {
  const std::vector<Tensor> before = program_.tensors();
  try {
    segment.graph = std::make_unique<graphs::Graph>();
    // Other threads may do what they like.
    const graphs::Capture capture(*segment.graph, pool_, std::nullopt, graphs::CaptureMode::ThreadLocal);
    program_.run_calls(segment.begin, segment.end);
  } catch (const Error& error) {
    program_.go_back_to(before);
    refuse(error);
    return false;
  }
  std::unordered_set<Graph::Id> known;
  for (size_t i = segment.begin; i < segment.end; ++i) {
    for (const Graph::Id id : Graph::tensors_of(program_.graph().calls[i].results)) {
      const bool is_made = program_.at(id).defined() && !program_.at(id).is_same(before[static_cast<size_t>(id)]);
      if (is_made && known.insert(id).second) segment.made.push_back(result_of(id, before));
    }
  }
  program_.go_back_to(before);
  return true;
}

RecordedCalls::Result RecordedCalls::result_of(Graph::Id id, const std::vector<Tensor>& before) const {
  const Tensor tensor = program_.at(id);
  for (const Source& source : sources_) {
    const Tensor& input = before[static_cast<size_t>(source.id)];
    if (source.is_copied || !input.defined() || !tensor.is_alias_of(input)) continue;
    const int64_t bytes = static_cast<char*>(tensor.data_ptr()) - static_cast<char*>(input.data_ptr());
    return {id, {}, source.id, {tensor.sizes(), tensor.strides(), bytes, tensor.scalar_type(), tensor.device()}};
  }
  return {id, tensor};
}

void RecordedCalls::note_results() {
  for (const Source& source : sources_) {
    if (source.is_copied) ++results_[source.copy.storage().get()];
  }
  for (const Segment& segment : segments_) {
    for (const Result& each : segment.made) {
      if (each.tensor.defined()) ++results_[each.tensor.storage().get()];
    }
  }
}

std::vector<Tensor> RecordedCalls::as_returned(std::vector<Tensor> outputs) const {
  std::vector<Tensor> here;
  std::copy_if(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(ends_.returned), std::back_inserter(here),
               [&](const Tensor& output) { return output.defined() && results_.contains(output.storage().get()); });
  if (here.empty()) return outputs;
  const std::map<const StorageImpl*, Storage> copies = copies_of(here);
  for (size_t i = 0; i < ends_.returned; ++i) {
    Tensor& output = outputs[i];
    const auto copied = output.defined() ? copies.find(output.storage().get()) : copies.end();
    if (copied == copies.end()) continue;
    output = over(copied->second, output.scalar_type(), output.sizes(), output.strides(), output.storage_offset());
  }
  return outputs;
}

void RecordedCalls::forget() {
  if (is_recorded_) ++*places_;
  is_recorded_ = false;
  results_.clear();
  for (Segment& segment : segments_) {
    segment.graph.reset();
    segment.made.clear();
  }
  for (Source& source : sources_) source.copy.reset();
}

}  // namespace rush::compiler
