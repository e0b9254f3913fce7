#include "core/profiler/trace_writer.h"

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rush::profiler {

namespace {

const char* category(EventKind kind) {
  switch (kind) {
    case EventKind::Operator:
    case EventKind::Backward: return "cpu_op";
    default: return "user_annotation";
  }
}

std::string as_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, which the format counts in, to the nanosecond.
std::string microseconds(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

}  // namespace

void TraceWriter::Closer::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

TraceWriter::TraceWriter(std::string path) : path_(std::move(path)), process_(getpid()) {
  errno = 0;
  file_.reset(gzopen(path_.c_str(), path_.ends_with(".gz") ? "wb1" : "wbT"));
  RUSH_CHECK_IO(file_, path_, ": cannot be written: ", std::strerror(errno ? errno : ENOMEM));
  gzbuffer(static_cast<gzFile>(file_.get()), 1 << 17);
  write("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceName\": " + as_json(path_) +
        ", \"deviceProperties\": [], \"traceEvents\": [\n" +
        str("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", process_,
            ", \"tid\": 0, \"ts\": 0, \"args\": {\"name\": \"rushlight\"}}"));
}

TraceWriter::~TraceWriter() {
  if (getpid() != process_) static_cast<void>(file_.release());
}

void TraceWriter::write(const std::string& text) {
  errno = 0;
  const auto size = static_cast<unsigned>(text.size());
  RUSH_CHECK_IO(gzwrite(static_cast<gzFile>(file_.get()), text.data(), size) == static_cast<int>(size), path_,
                ": cannot be written: ", std::strerror(errno ? errno : EIO));
}

void TraceWriter::add(const Event& event, int64_t thread) {
  const bool is_step = event.kind == EventKind::Step;
  const std::string name = is_step ? str("ProfilerStep#", event.sequence_nr) : std::string(event.name);
  std::string text =
      str(",\n{\"ph\": \"X\", \"cat\": \"", category(event.kind), "\", \"name\": ", as_json(name),
          ", \"pid\": ", process_, ", \"tid\": ", thread, ", \"ts\": ", microseconds(event.begin),
          ", \"dur\": ", microseconds(event.end - event.begin), ", \"args\": {\"External id\": ", event.number);
  const bool has_node = event.sequence_nr >= 0 && !is_step;
  if (has_node) text += str(", \"Sequence number\": ", event.sequence_nr);
  if (event.shapes) text += ", \"Input Dims\": " + *event.shapes;
  if (event.flops > 0) text += str(", \"flops\": ", event.flops);
  if (event.stack) text += ", \"Call stack\": " + as_json(*event.stack);
  write(text + "}}");
  if (has_node) add_arrow(event, thread);
}

void TraceWriter::add(const Activity& activity) {
  const bool on_device = is_on_device(activity.kind);
  if (on_device) introduce(activity.device, activity.stream);
  const auto list = [](const std::array<int32_t, 3>& n) { return str("[", n[0], ", ", n[1], ", ", n[2], "]"); };
  const std::string where = on_device ? str(", \"pid\": ", activity.device, ", \"tid\": ", activity.stream)
                                      : str(", \"pid\": ", process_, ", \"tid\": ", activity.thread);
  std::string text =
      str(",\n{\"ph\": \"X\", \"cat\": \"", activity.category, "\", \"name\": ", as_json(activity.name), where,
          ", \"ts\": ", microseconds(activity.begin), ", \"dur\": ", microseconds(activity.end - activity.begin),
          ", \"args\": {\"External id\": ", number_of(activity.label), ", \"correlation\": ", activity.correlation);
  if (on_device) text += str(", \"device\": ", activity.device, ", \"stream\": ", activity.stream);
  if (activity.kind == ActivityKind::Kernel) {
    text += str(", \"grid\": ", list(activity.grid), ", \"block\": ", list(activity.block),
                ", \"registers per thread\": ", activity.registers, ", \"shared memory\": ", activity.shared_memory);
  }
  if (activity.bytes > 0) {
    const double seconds = static_cast<double>(activity.end - activity.begin) * 1e-9;
    text += str(", \"bytes\": ", activity.bytes);
    if (seconds > 0)
      text += str(", \"memory bandwidth (GB/s)\": ", static_cast<double>(activity.bytes) / seconds * 1e-9);
  }
  if (activity.graph_node != 0) text += str(", \"graph node id\": ", activity.graph_node);
  write(text + "}}");
  if (activity.correlation == 0 || (!on_device && activity.kind != ActivityKind::Launch)) return;
  // From the call to what it started.
  write(str(",\n{\"ph\": \"", on_device ? "f" : "s",
            "\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": ", activity.correlation, where,
            ", \"ts\": ", microseconds(activity.begin), on_device ? ", \"bp\": \"e\"" : "", "}"));
}

// A counter, which viewers draw as areas on top of each other.
void TraceWriter::add(const MemorySample& sample) {
  std::string bytes;
  for (size_t i = kNumMemoryUses; i-- > 0;) {
    const auto use = static_cast<MemoryUse>(i);
    bytes += str(bytes.empty() ? "" : ", ", as_json(memory_use_name(use)), ": ", sample.uses[use]);
  }
  write(str(",\n{\"ph\": \"C\", \"name\": ", as_json(str("memory of ", sample.device)), ", \"pid\": ", process_,
            ", \"ts\": ", microseconds(sample.time), ", \"args\": {", bytes, "}}"));
}

void TraceWriter::add(const CounterSample& sample) {
  write(str(",\n{\"ph\": \"C\", \"name\": \"GPU ", sample.device, " ", sample.counter.name, "\", \"pid\": ", process_,
            ", \"ts\": ", microseconds(sample.time), ", \"args\": {\"value\": ", sample.counter.value, "}}"));
}

// Names a device and its stream, once.
void TraceWriter::introduce(int32_t device, uint32_t stream) {
  const auto name = [&](const char* what, int64_t thread, const std::string& text) {
    write(str(",\n{\"ph\": \"M\", \"name\": \"", what, "\", \"pid\": ", device, ", \"tid\": ", thread,
              ", \"ts\": 0, \"args\": {\"name\": ", as_json(text), "}}"));
  };
  if (!introduced_.emplace(device, stream).second) return;
  name("process_name", 0, str("GPU ", device));
  name("thread_name", stream, str("stream ", stream));
}

// From a forward call to the node of the backward pass that belongs to it. Only the innermost call, which ends first,
// made the node; those around it and later ones return the same tensor.
void TraceWriter::add_arrow(const Event& event, int64_t thread) {
  const bool forward = event.kind == EventKind::Operator;
  if (forward) {
    int64_t& newest = newest_nodes_.try_emplace(thread, -1).first->second;
    if (event.sequence_nr <= newest) return;
    newest = event.sequence_nr;
  }
  write(str(",\n{\"ph\": \"", forward ? "s" : "f",
            "\", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": ", event.sequence_nr, ", \"pid\": ", process_,
            ", \"tid\": ", thread, ", \"ts\": ", microseconds(event.begin), forward ? "" : ", \"bp\": \"e\"", "}"));
}

void TraceWriter::finish() {
  write("\n]}\n");
  errno = 0;
  RUSH_CHECK_IO(gzclose(static_cast<gzFile>(file_.release())) == Z_OK, path_,
                ": cannot be written: ", std::strerror(errno ? errno : EIO));
}

}  // namespace rush::profiler
