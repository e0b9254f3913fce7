#include "backends/cuda/fft/plan.h"

#include "backends/cuda/fft/plan_cache.h"

#if __has_include(<cufftXt.h>)
#include <cufftXt.h>

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/library_plans.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/stream/current_stream.h"
#include "core/device/backend.h"
#include "core/device/guard.h"

namespace rush::cuda {

namespace {

const char* meaning_of(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN (not a plan)";
    case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED (no memory for the plan)";
    case CUFFT_INVALID_TYPE: return "CUFFT_INVALID_TYPE (a type that it does not transform)";
    case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE (a bad pointer or argument)";
    case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR (a failure inside the driver or the library)";
    case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED (the transform could not be launched)";
    case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED (the library could not initialise)";
    case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE (a size that it does not transform)";
    case CUFFT_UNALIGNED_DATA: return "CUFFT_UNALIGNED_DATA (data that is not aligned)";
    case CUFFT_INVALID_DEVICE: return "CUFFT_INVALID_DEVICE (a plan of another device)";
    case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE (no work area was set)";
    case CUFFT_NOT_IMPLEMENTED: return "CUFFT_NOT_IMPLEMENTED (the library lacks this)";
    case CUFFT_NOT_SUPPORTED: return "CUFFT_NOT_SUPPORTED (not for these arguments)";
    default: return "a status that has no name here";
  }
}

}  // namespace

// RUSH_CUDA_CHECK checks cuFFT's statuses too.
[[noreturn]] RUSH_COLD static void throw_error(cufftResult status, const char* call) {
  throw_failure(call, str(meaning_of(status), ", cuFFT status ", static_cast<int>(status)),
                status == CUFFT_ALLOC_FAILED);
}

namespace {

using LongLongs = std::array<long long, 3>;

LongLongs as_long_long(const std::array<int64_t, 3>& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

struct ElementTypes {
  cudaDataType in, out, compute;
};

ElementTypes element_types(const FftProblem& p) {
  const cudaDataType real = p.double_precision ? CUDA_R_64F : CUDA_R_32F;
  const cudaDataType complex = p.double_precision ? CUDA_C_64F : CUDA_C_32F;
  return {p.type == FftType::R2c ? real : complex, p.type == FftType::C2r ? real : complex, complex};
}

class FftPlan {
 public:
  explicit FftPlan(const FftProblem& p) {
    const OutsideCapture relaxed;  // cuFFT allocates and fills tables
    RUSH_CUDA_CHECK(cufftCreate(&handle_));
    try {
      RUSH_CUDA_CHECK(cufftSetAutoAllocation(handle_, 0));
      make(p);
    } catch (...) {
      static_cast<void>(cufftDestroy(handle_));
      throw;
    }
  }
  ~FftPlan() {
    const RelaxedCapture relaxed;  // cuFFT frees its tables
    static_cast<void>(cufftDestroy(handle_));
  }
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  // The caller holds the cache's lock: stream and work area belong to the handle.
  void run(cudaStream_t stream, void* in, void* out, bool forward) const {
    enter_context();
    const Scratch work(work_size_);
    RUSH_CUDA_CHECK(cufftSetStream(handle_, stream));
    RUSH_CUDA_CHECK(cufftSetWorkArea(handle_, work.data()));
    RUSH_CUDA_CHECK(cufftXtExec(handle_, in, out, forward ? CUFFT_FORWARD : CUFFT_INVERSE));
  }

 private:
  void make(const FftProblem& p) {
    LongLongs points = as_long_long(p.points);
    LongLongs in_embed = as_long_long(p.in.embed), out_embed = as_long_long(p.out.embed);
    const bool simple = p.in.dense && p.out.dense;  // null stands for contiguous signals
    const ElementTypes types = element_types(p);
    RUSH_CUDA_CHECK(cufftXtMakePlanMany(handle_, p.rank, points.data(), simple ? nullptr : in_embed.data(), p.in.stride,
                                        p.in.dist, types.in, simple ? nullptr : out_embed.data(), p.out.stride,
                                        p.out.dist, types.out, p.batch, &work_size_, types.compute));
  }

  cufftHandle handle_ = 0;
  size_t work_size_ = 0;
};

struct ProblemHash {
  size_t operator()(const FftProblem& p) const {
    WordHash hash;
    for (const int64_t n : p.points) hash.mix(n);
    for (const FftLayout& layout : {p.in, p.out}) {
      for (const int64_t n : layout.embed) hash.mix(n);
      hash.mix(layout.stride);
      hash.mix(layout.dist);
    }
    hash.mix(p.batch);
    hash.mix(static_cast<int64_t>(p.type) | p.double_precision << 4 | p.rank << 5);
    return hash.value();
  }
};

// Note [cuFFT's plans]
// A plan holds tables in device memory, which cuFFT allocates, but no work area, which each transform takes from the
// caching allocator. A captured graph reads the tables at every replay, so its plan must be kept.
using PlanCache = LibraryPlans<FftProblem, FftPlan, ProblemHash>;
constexpr int64_t kDefaultLimit = 4096;  // PyTorch's

// The caches are never destroyed: Note [Handles of libraries].
PlanCache& cache_of(int device) {
  static auto& caches = *new std::unordered_map<int, std::unique_ptr<PlanCache>>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<PlanCache>& cache = caches[device];
  if (!cache) cache = std::make_unique<PlanCache>(kDefaultLimit);
  return *cache;
}

}  // namespace

void run_fft_plan(const FftProblem& problem, void* in, void* out, bool forward) {
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const cudaStream_t stream = current_stream();
  PlanCache& cache = cache_of(device);
  const std::lock_guard<std::mutex> lock(cache.mutex());
  const std::shared_ptr<const FftPlan> plan = cache.find_or_make(problem);
  plan->run(stream, in, out, forward);
  if (is_capturing(stream)) cache.keep_for_graphs(plan);
}

namespace cufft_plan_cache {

namespace {

// The cache of a device, with its lock held and the device current, since a plan is destroyed on its device.
class Locked {
 public:
  explicit Locked(int device)
      : device_(checked(device)), cache_(cache_of(device_.index)), lock_(cache_.mutex()), guard_(device_) {}
  PlanCache* operator->() { return &cache_; }

 private:
  static Device checked(int device) {
    RUSH_CHECK_VALUE(device >= -1 && device < 128, "cufft_plan_cache: there is no CUDA device ", device);
    return concrete_device(Device(kCUDA, device));
  }

  Device device_;
  PlanCache& cache_;
  std::lock_guard<std::mutex> lock_;
  DeviceGuard guard_;
};

}  // namespace

int64_t size(int device) { return Locked(device)->size(); }
int64_t max_size(int device) { return Locked(device)->limit(); }
void set_max_size(int64_t plans, int device) {
  RUSH_CHECK_VALUE(plans >= 0, "cufft_plan_cache: the size must not be negative, got ", plans);
  Locked(device)->set_limit(plans);
}
void clear(int device) { Locked(device)->shrink_to(0); }

}  // namespace cufft_plan_cache

}  // namespace rush::cuda
#else
#include "core/error/error.h"

namespace rush::cuda::cufft_plan_cache {

namespace {

[[noreturn]] void throw_absent() { throw NotImplementedError("cufft_plan_cache: the library was built without cuFFT"); }

}  // namespace

int64_t size(int) { throw_absent(); }
int64_t max_size(int) { throw_absent(); }
void set_max_size(int64_t, int) { throw_absent(); }
void clear(int) { throw_absent(); }

}  // namespace rush::cuda::cufft_plan_cache
#endif
