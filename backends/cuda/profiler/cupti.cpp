// CUPTI's activity records. The library is looked up at run time: programs run where there is none.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/profiler/activity_sources.h"
#include "core/debug/stack_trace.h"
#include "core/error/warning.h"

#ifdef RUSH_CUPTI_LIBRARY
#include <cupti.h>

namespace rush::cuda {

namespace {

using profiler::Activity;
using profiler::ActivityKind;

// clang-format off
#define RUSH_CUPTI_FUNCTIONS(_) \
  _(cuptiActivityRegisterCallbacks) \
  _(cuptiActivityRegisterTimestampCallback) \
  _(cuptiActivityEnable) \
  _(cuptiActivityDisable) \
  _(cuptiActivityFlushAll) \
  _(cuptiActivityGetNextRecord) \
  _(cuptiActivityPushExternalCorrelationId) \
  _(cuptiActivityPopExternalCorrelationId) \
  _(cuptiSetThreadIdType) \
  _(cuptiGetCallbackName) \
  _(cuptiGetResultString) \
  _(cuptiActivityEnableRuntimeApi) \
  _(cuptiActivityEnableDriverApi)
// clang-format on

struct Cupti {
#define RUSH_DECLARE(name) decltype(&::name) name = nullptr;
  RUSH_CUPTI_FUNCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE

  // Empty, or what is missing.
  std::string load() {
    const std::string soname = str("libcupti.so.", CUDART_VERSION / 1000);
    void* library = nullptr;
    for (const std::string& name : {soname, std::string(RUSH_CUPTI_LIBRARY)}) {
      if (!library && !name.empty()) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) return soname + " is not found";
#define RUSH_LOAD(name)                                           \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) return soname + " has no " #name;
    RUSH_CUPTI_FUNCTIONS(RUSH_LOAD)
#undef RUSH_LOAD
    return {};
  }
};

uint64_t CUPTIAPI timestamp() { return static_cast<uint64_t>(profiler::steady_now()); }

constexpr CUpti_ExternalCorrelationKind kLabels = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// The records of older versions begin as those of newer ones do, so these serve CUDA 12 and 13.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using SetRecord = CUpti_ActivityMemset4;

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

const char* copy_name(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "Memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "Memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "Memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "Memcpy HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "Memcpy PtoP";
    default: return "Memcpy";
  }
}

// Calls that start work, wait for it, or change memory: what the others cost is seen in the operators.
bool is_told(std::string_view name) {
  for (const char* word : {"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "Free", "HostAlloc", "MemCreate"}) {
    if (name.find(word) != name.npos) return name.find("Query") == name.npos && name.find("Config") == name.npos;
  }
  return false;
}

// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
std::string without_version(std::string name) {
  if (const size_t at = name.find("_ptsz"); at != name.npos) name.resize(at);
  if (const size_t at = name.rfind("_v");
      at != name.npos && name.find_first_not_of("0123456789", at + 2) == name.npos) {
    name.resize(at);
  }
  return name;
}

ActivityKind kind_of(std::string_view name) {
  const auto has = [name](std::string_view word) { return name.find(word) != name.npos; };
  if (has("Synchronize") || name == "cudaMemcpy" || name == "cudaMemcpy2D") return ActivityKind::Wait;
  return has("Launch") || has("Memcpy") || has("Memset") ? ActivityKind::Launch : ActivityKind::Runtime;
}

class CuptiSource final : public profiler::ActivitySource {
 public:
  // Empty, or why it cannot be used.
  std::string prepare() {
    if (std::string trouble = cupti_.load(); !trouble.empty()) return trouble;
    CUptiResult status = cupti_.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (status == CUPTI_SUCCESS) status = cupti_.cuptiActivityRegisterTimestampCallback(timestamp);
    if (status == CUPTI_SUCCESS) status = cupti_.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    // Whether another tool holds it is known when something is asked for.
    if (status == CUPTI_SUCCESS) status = cupti_.cuptiActivityEnable(kKinds[0]);
    if (status == CUPTI_SUCCESS) status = cupti_.cuptiActivityDisable(kKinds[0]);
    if (status != CUPTI_SUCCESS) return "CUPTI: " + text_of(status);
    sort_calls(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, runtime_calls_, silent_runtime_calls_);
    sort_calls(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, driver_calls_, silent_driver_calls_);
    return {};
  }

  void start(profiler::ActivitySink& sink) override {
    {
      const std::lock_guard lock(mutex_);
      sink_ = &sink;
      labels_.assign(kLabelled, {});
      lost_ = 0;
    }
    try {
      for (const CUpti_ActivityKind kind : kKinds) check(cupti_.cuptiActivityEnable(kind), "cuptiActivityEnable");
    } catch (const std::exception&) {
      for (const CUpti_ActivityKind kind : kKinds) static_cast<void>(cupti_.cuptiActivityDisable(kind));
      forget_sink();
      throw;
    }
    // To save their cost: one that is refused is dropped when it is read.
    for (const CUpti_CallbackId call : silent_runtime_calls_) {
      static_cast<void>(cupti_.cuptiActivityEnableRuntimeApi(call, 0));
    }
    for (const CUpti_CallbackId call : silent_driver_calls_) {
      static_cast<void>(cupti_.cuptiActivityEnableDriverApi(call, 0));
    }
  }

  void enter(uint64_t label) override {
    check(cupti_.cuptiActivityPushExternalCorrelationId(kLabels, label), "cuptiActivityPushExternalCorrelationId");
  }
  void leave() noexcept override {
    uint64_t left;
    static_cast<void>(cupti_.cuptiActivityPopExternalCorrelationId(kLabels, &left));
  }

  std::vector<profiler::Counter> counters(int device) override { return nvml_counters(device); }

  void stop() override {
    const Forget at_end{*this};
    // First the calls, of which the one below is none of the program's.
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
      check(cupti_.cuptiActivityDisable(kind), "cuptiActivityDisable");
    }
    static_cast<void>(wait_for_device());  // an error is the program's, which meets it in its next call
    for (const CUpti_ActivityKind kind : kKinds) check(cupti_.cuptiActivityDisable(kind), "cuptiActivityDisable");
    check(cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    std::unique_lock lock(mutex_);
    report(std::exchange(unlabelled_, {}), true);
    const int64_t lost = lost_;
    lock.unlock();
    if (lost > 0) RUSH_WARN("profiler: CUPTI lost ", lost, " records, whose times are missing");
  }

 private:
  // The sink goes, whatever fails.
  struct Forget {
    CuptiSource& source;
    ~Forget() { source.forget_sink(); }
  };
  void forget_sink() {
    const std::lock_guard lock(mutex_);
    sink_ = nullptr;
    labels_ = {};
    unlabelled_ = {};
  }

  struct Call {
    CUpti_CallbackId id;
    std::string name;
  };
  // Which label a call of the runtime or the driver was made under.
  struct Labelled {
    uint32_t correlation = 0;
    uint64_t label = 0;
  };
  static constexpr size_t kLabelled = size_t{1} << 20;  // of the last calls; CUPTI numbers them in turn
  static constexpr size_t kBufferSize = size_t{4} << 20;

  std::string text_of(CUptiResult status) const {
    const char* text = nullptr;
    return cupti_.cuptiGetResultString(status, &text) == CUPTI_SUCCESS && text ? text : str("status ", int{status});
  }
  void check(CUptiResult status, const char* call) const {
    RUSH_CHECK_AS(CudaError, status == CUPTI_SUCCESS, "profiler: ", call, ": ", text_of(status));
  }

  // Those that are told, and the others.
  void sort_calls(CUpti_CallbackDomain domain, CUpti_CallbackId size, std::vector<Call>& told,
                  std::vector<CUpti_CallbackId>& silent) const {
    for (CUpti_CallbackId id = 1; id < size; ++id) {
      const char* name = nullptr;
      if (cupti_.cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
      if (is_told(name)) {
        told.push_back({id, without_version(name)});
      } else {
        silent.push_back(id);
      }
    }
  }
  static CuptiSource*& instance() {
    static CuptiSource* source = nullptr;
    return source;
  }
  friend profiler::ActivitySource* cuda::cupti_source(std::string& trouble);

  static void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferSize));
    *size = *buffer ? kBufferSize : 0;
    *most = 0;
  }
  static void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t size) {
    if (CuptiSource* self = instance()) self->take(buffer, size);
    std::free(buffer);
  }

  void take(uint8_t* buffer, size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    if (!sink_) return;
    try {
      std::vector<Activity> activities = std::exchange(unlabelled_, {});
      CUpti_Activity* record = nullptr;
      while (cupti_.cuptiActivityGetNextRecord(buffer, size, &record) == CUPTI_SUCCESS) read(*record, activities);
      report(std::move(activities), false);
    } catch (const std::exception&) {
      ++lost_;
    }
  }

  // Calls are reported at once; what ran on the device when the label of its call is known, at the latest in the end.
  void report(std::vector<Activity> activities, bool all) {
    const auto known = std::partition(activities.begin(), activities.end(), [&](Activity& activity) {
      const Labelled& entry = labels_[activity.correlation % kLabelled];
      const bool found = entry.correlation == activity.correlation;
      if (found) activity.label = entry.label;
      return found || all || !is_on_device(activity.kind);
    });
    if (sink_) sink_->take({activities.data(), static_cast<size_t>(known - activities.begin())});
    unlabelled_.assign(known, activities.end());
  }

  template <class Record>
  static Activity on_device(const Record& record, ActivityKind kind) {
    Activity activity;
    activity.kind = kind;
    activity.category = kind == ActivityKind::Kernel ? "kernel"
                        : kind == ActivityKind::Copy ? "gpu_memcpy"
                                                     : "gpu_memset";
    activity.begin = static_cast<int64_t>(record.start);
    activity.end = static_cast<int64_t>(record.end);
    activity.correlation = record.correlationId;
    activity.device = static_cast<int32_t>(record.deviceId);
    activity.graph_node = record.graphNodeId;
    return activity;
  }

  template <class Record>
  static Activity copy_of(const Record& record) {
    Activity activity = on_device(record, ActivityKind::Copy);
    activity.name = copy_name(record.copyKind);
    activity.stream = record.streamId;
    activity.bytes = record.bytes;
    activity.is_pageable =
        record.srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE || record.dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    return activity;
  }

  void read(const CUpti_Activity& record, std::vector<Activity>& out) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& labelled = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
        if (labelled.externalKind != kLabels) return;
        labels_[labelled.correlationId % kLabelled] = {labelled.correlationId, labelled.externalId};
        return;
      }
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
        Activity& activity = out.emplace_back(on_device(kernel, ActivityKind::Kernel));
        activity.name = kernel_name(kernel.name);
        activity.stream = kernel.streamId;
        activity.grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
        activity.block = {kernel.blockX, kernel.blockY, kernel.blockZ};
        activity.registers = kernel.registersPerThread;
        activity.shared_memory = static_cast<uint32_t>(kernel.staticSharedMemory + kernel.dynamicSharedMemory);
        return;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: out.push_back(copy_of(reinterpret_cast<const CopyRecord&>(record))); return;
      case CUPTI_ACTIVITY_KIND_MEMCPY2: out.push_back(copy_of(reinterpret_cast<const PeerCopyRecord&>(record))); return;
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = reinterpret_cast<const SetRecord&>(record);
        Activity& activity = out.emplace_back(on_device(set, ActivityKind::Set));
        activity.name = "Memset";
        activity.stream = set.streamId;
        activity.bytes = set.bytes;
        return;
      }
      case CUPTI_ACTIVITY_KIND_RUNTIME:
        return read_call(reinterpret_cast<const CUpti_ActivityAPI&>(record), runtime_calls_, "cuda_runtime", out);
      case CUPTI_ACTIVITY_KIND_DRIVER:
        return read_call(reinterpret_cast<const CUpti_ActivityAPI&>(record), driver_calls_, "cuda_driver", out);
      default: return;
    }
  }

  static void read_call(const CUpti_ActivityAPI& record, const std::vector<Call>& calls, const char* category,
                        std::vector<Activity>& out) {
    const auto call = std::ranges::lower_bound(calls, record.cbid, {}, &Call::id);
    if (call == calls.end() || call->id != record.cbid) return;
    Activity& activity = out.emplace_back();
    activity.kind = kind_of(call->name);
    activity.name = call->name;
    activity.category = category;
    activity.begin = static_cast<int64_t>(record.start);
    activity.end = static_cast<int64_t>(record.end);
    activity.correlation = record.correlationId;
    activity.thread = record.threadId;
  }

  // As C++ writes it, once for each.
  std::string_view kernel_name(const char* mangled) {
    const auto [entry, is_new] = names_.try_emplace(mangled);
    if (is_new) entry->second = demangle(mangled);
    return entry->second;
  }

  Cupti cupti_;
  std::vector<Call> runtime_calls_, driver_calls_;
  std::vector<CUpti_CallbackId> silent_runtime_calls_, silent_driver_calls_;
  std::mutex mutex_;  // of all below; CUPTI calls back from a thread of its own
  profiler::ActivitySink* sink_ = nullptr;
  std::vector<Labelled> labels_;
  std::vector<Activity> unlabelled_;
  std::unordered_map<std::string, std::string> names_;
  int64_t lost_ = 0;
};

}  // namespace

// Never destroyed: CUPTI may call back while the process ends.
profiler::ActivitySource* cupti_source(std::string& trouble) {
  static CuptiSource& source = *new CuptiSource;
  static const std::string why = source.prepare();
  trouble = why;
  if (!why.empty()) return nullptr;
  CuptiSource::instance() = &source;
  return &source;
}

}  // namespace rush::cuda

#else

namespace rush::cuda {
profiler::ActivitySource* cupti_source(std::string& trouble) {
  trouble = "this program was built without CUPTI, which comes with CUDA 13";
  return nullptr;
}
}  // namespace rush::cuda

#endif
