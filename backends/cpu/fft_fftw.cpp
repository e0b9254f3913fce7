// FftLine by FFTW, where the library is built with RUSH_FFTW.
#ifdef RUSH_HAS_FFTW
#include <fftw3.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "backends/cpu/fft_line.h"
#include "backends/cpu/scratch.h"
#include "core/error.h"

namespace rush::cpu {

namespace {

// FFTW is two libraries of the same functions: fftw_... for double, fftwf_... for float.
template <class T>
struct Fftw;
#define RUSH_FFTW_API(T, prefix)                                        \
  template <>                                                           \
  struct Fftw<T> {                                                      \
    using Plan = prefix##_plan;                                         \
    using Complex = prefix##_complex;                                   \
    using Size = prefix##_iodim64;                                      \
    static constexpr auto plan_complex = prefix##_plan_guru64_dft;      \
    static constexpr auto plan_forward = prefix##_plan_guru64_dft_r2c;  \
    static constexpr auto plan_backward = prefix##_plan_guru64_dft_c2r; \
    static constexpr auto execute_complex = prefix##_execute_dft;       \
    static constexpr auto execute_forward = prefix##_execute_dft_r2c;   \
    static constexpr auto execute_backward = prefix##_execute_dft_c2r;  \
    static constexpr auto destroy = prefix##_destroy_plan;              \
    static constexpr auto alignment_of = prefix##_alignment_of;         \
    RUSH_FFTW_THREADS(prefix)                                           \
  };
#ifdef RUSH_HAS_FFTW_THREADS
#define RUSH_FFTW_THREADS(prefix)                             \
  static constexpr auto init_threads = prefix##_init_threads; \
  static constexpr auto plan_with_threads = prefix##_plan_with_nthreads;
#else
#define RUSH_FFTW_THREADS(prefix)
#endif
RUSH_FFTW_API(float, fftwf)
RUSH_FFTW_API(double, fftw)
#undef RUSH_FFTW_THREADS
#undef RUSH_FFTW_API

// Of FFTW only the execution of a plan may run on several threads at once.
std::mutex& planner() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

// How long FFTW looks for the fastest way: RUSH_FFTW_PLAN=estimate, measure or patient.
unsigned planner_effort() {
  static const unsigned effort = [] {
    const char* text = std::getenv("RUSH_FFTW_PLAN");
    const std::string_view name = text ? text : "estimate";
    RUSH_CHECK_VALUE(name == "estimate" || name == "measure" || name == "patient",
                     "RUSH_FFTW_PLAN must be estimate, measure or patient, got '", name, "'");
    return name == "patient" ? FFTW_PATIENT : name == "measure" ? FFTW_MEASURE : FFTW_ESTIMATE;
  }();
  return effort;
}

// What a plan is kept for.
struct PlanKey {
  FftKind kind;
  int64_t n;
  int threads;
  bool aligned;  // both ends of the transform, as vector instructions want it
  auto operator<=>(const PlanKey&) const = default;
};

template <class T>
class Plan {
 public:
  using Api = Fftw<T>;
  using Complex = typename Api::Complex;

  Plan(const char* op, const PlanKey& key) : kind_(key.kind) {
    const std::lock_guard<std::mutex> lock(planner());
#ifdef RUSH_HAS_FFTW_THREADS
    static const bool ready = Api::init_threads() != 0;
    if (ready) Api::plan_with_threads(key.threads);
#endif
    const Scratch<Complex> in(key.n), out(key.n);  // what is measured overwrites them
    const typename Api::Size size{static_cast<ptrdiff_t>(key.n), 1, 1};
    const unsigned flags = planner_effort() | FFTW_PRESERVE_INPUT | (key.aligned ? 0u : FFTW_UNALIGNED);
    auto* in_real = reinterpret_cast<T*>(in.data());
    auto* out_real = reinterpret_cast<T*>(out.data());
    switch (kind_) {
      case FftKind::Forward:
      case FftKind::Backward:
        plan_ = Api::plan_complex(1, &size, 0, nullptr, in.data(), out.data(),
                                  kind_ == FftKind::Forward ? FFTW_FORWARD : FFTW_BACKWARD, flags);
        break;
      case FftKind::RealToHalf: plan_ = Api::plan_forward(1, &size, 0, nullptr, in_real, out.data(), flags); break;
      case FftKind::HalfToReal: plan_ = Api::plan_backward(1, &size, 0, nullptr, in.data(), out_real, flags); break;
    }
    RUSH_CHECK(plan_, op, ": FFTW has no plan for ", key.n, " points");
  }
  ~Plan() {
    const std::lock_guard<std::mutex> lock(planner());
    Api::destroy(plan_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void run(const void* from, void* to) const {
    void* in = const_cast<void*>(from);  // FFTW_PRESERVE_INPUT
    switch (kind_) {
      case FftKind::Forward:
      case FftKind::Backward: return Api::execute_complex(plan_, static_cast<Complex*>(in), static_cast<Complex*>(to));
      case FftKind::RealToHalf: return Api::execute_forward(plan_, static_cast<T*>(in), static_cast<Complex*>(to));
      case FftKind::HalfToReal: return Api::execute_backward(plan_, static_cast<Complex*>(in), static_cast<T*>(to));
    }
  }

 private:
  FftKind kind_;
  typename Api::Plan plan_ = nullptr;
};

// The plan that is kept for this, or else is made now.
template <class T>
std::shared_ptr<const Plan<T>> plan_for(const char* op, const PlanKey& key) {
  constexpr size_t kMostPlans = 512;
  static auto& plans = *new std::map<PlanKey, std::shared_ptr<const Plan<T>>>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= kMostPlans) plans.clear();  // those in use live on
  return plans[key] = std::make_shared<const Plan<T>>(op, key);
}

}  // namespace

template <class T>
class FftEngine {
 public:
  FftEngine(const char* op, FftKind kind, int64_t n, int threads) : op_(op), key_{kind, n, threads, false} {}

  void run(const void* in, void* out) {
    const bool aligned = is_aligned(in) && is_aligned(out);
    std::shared_ptr<const Plan<T>>& plan = plans_[aligned];
    key_.aligned = aligned;
    if (!plan) plan = plan_for<T>(op_, key_);
    plan->run(in, out);
  }

 private:
  static bool is_aligned(const void* data) {
    return Fftw<T>::alignment_of(static_cast<T*>(const_cast<void*>(data))) == 0;
  }

  const char* op_;
  PlanKey key_;
  std::shared_ptr<const Plan<T>> plans_[2];
};

template <class T>
FftLine<T>::FftLine(const char* op, FftKind kind, int64_t n, int threads)
    : engine_(std::make_unique<FftEngine<T>>(op, kind, n, threads)) {}
template <class T>
FftLine<T>::~FftLine() = default;
template <class T>
void FftLine<T>::operator()(const void* in, void* out) const {
  engine_->run(in, out);
}

// Below this, starting threads costs more than they give.
template <class T>
bool FftLine<T>::shares_lines([[maybe_unused]] int64_t n) {
#ifdef RUSH_HAS_FFTW_THREADS
  return n >= 1 << 14;
#else
  return false;
#endif
}

template class FftLine<float>;
template class FftLine<double>;

}  // namespace rush::cpu
#endif
