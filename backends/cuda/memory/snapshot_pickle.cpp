#include <map>

#include "backends/cuda/memory/pickle_writer.h"
#include "backends/cuda/memory/snapshot.h"

namespace rush::cuda {

namespace {

using Trace = std::shared_ptr<const MemoryTrace>;

const char* name_of(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::Action::Alloc: return "alloc";
    case TraceEntry::Action::FreeRequested: return "free_requested";
    case TraceEntry::Action::FreeCompleted: return "free_completed";
    case TraceEntry::Action::SegmentAlloc: return "segment_alloc";
    case TraceEntry::Action::SegmentFree: return "segment_free";
    case TraceEntry::Action::SegmentMap: return "segment_map";
    case TraceEntry::Action::SegmentUnmap: return "segment_unmap";
    case TraceEntry::Action::Oom: return "oom";
    case TraceEntry::Action::Snapshot: return "snapshot";
  }
  return "";
}

class SnapshotPickle {
 public:
  std::string write(const std::vector<DeviceSnapshot>& snapshots) {
    out_.begin_dict();
    out_.value("segments");
    out_.begin_list();
    for (const DeviceSnapshot& snapshot : snapshots) {
      for (const SegmentInfo& segment : snapshot.segments) write_segment(segment, snapshot.device);
    }
    out_.end_list();
    out_.value("device_traces");
    out_.begin_list();
    for (const DeviceSnapshot& snapshot : snapshots) {
      out_.begin_list();
      for (const TraceEntry& entry : snapshot.trace) write_entry(entry);
      out_.end_list();
    }
    out_.end_list();
    out_.end_dict();
    return out_.finish();
  }

 private:
  void write_segment(const SegmentInfo& segment, int device) {
    out_.begin_dict();
    out_.item("device", device);
    out_.item("address", segment.address);
    out_.item("total_size", uint64_t{segment.total_size});
    out_.item("allocated_size", uint64_t{segment.allocated_size});
    out_.item("active_size", uint64_t{segment.active_size});
    out_.item("requested_size", uint64_t{segment.requested_size});
    out_.item("stream", reinterpret_cast<uint64_t>(segment.stream));
    out_.item("segment_type", segment.small ? "small" : "large");
    out_.value("segment_pool_id");
    out_.begin_tuple();
    out_.value(segment.group);
    out_.value(0);
    out_.end_tuple();
    out_.item("is_expandable", segment.expandable);
    write_frames(nullptr);
    out_.value("blocks");
    out_.begin_list();
    for (const BlockInfo& block : segment.blocks) {
      out_.begin_dict();
      out_.item("address", block.address);
      out_.item("size", uint64_t{block.size});
      out_.item("requested_size", uint64_t{block.requested});
      out_.item("state", block.allocated ? "active_allocated" : block.active ? "active_pending_free" : "inactive");
      write_frames(block.trace);
      out_.end_dict();
    }
    out_.end_list();
    out_.end_dict();
  }

  void write_entry(const TraceEntry& entry) {
    out_.begin_dict();
    out_.item("action", name_of(entry.action));
    if (entry.action == TraceEntry::Action::Oom) {
      out_.item("device_free", entry.address);
    } else {
      out_.item("addr", entry.address);
    }
    out_.item("size", uint64_t{entry.size});
    out_.item("stream", reinterpret_cast<uint64_t>(entry.stream));
    out_.item("time_us", entry.time);
    write_frames(entry.trace);
    out_.end_dict();
  }

  void write_frames(const Trace& trace) {
    out_.value("frames");
    out_.begin_list();
    if (trace) {
      for (const std::string& frame : texts_of(trace)) {
        out_.begin_dict();
        out_.item("name", std::string_view(frame));
        out_.item("filename", "");
        out_.item("line", 0);
        out_.end_dict();
      }
    }
    out_.end_list();
  }

  // Putting a stack into words takes long, and an allocation and its release share one.
  const std::vector<std::string>& texts_of(const Trace& trace) {
    const auto [at, added] = texts_.try_emplace(trace.get());
    if (added) at->second = trace->frames();
    return at->second;
  }

  PickleWriter out_;
  std::map<const MemoryTrace*, std::vector<std::string>> texts_;
};

}  // namespace

std::string snapshot_as_pickle(const std::vector<DeviceSnapshot>& snapshots) {
  return SnapshotPickle().write(snapshots);
}

}  // namespace rush::cuda
