// CUDA's loops that reduce rows: Note [Phases of a row].
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "backends/cuda/jit/fused_loop.h"
#include "backends/cuda/jit/kernel.h"
#include "backends/cuda/jit/loop_text.h"
#include "core/ops/pointwise/binary.h"
#include "core/str.h"

namespace rush::cuda::jit {

namespace {

bool is_element_wise(const LoopDescription::Step& step) { return step.reduces == Reduces::Nothing; }

// Whether a place has one element for each row, or fewer.
bool is_row(const LoopDescription& loop, size_t place) {
  const LoopDescription::Place& p = loop.places[place];
  return p.is_row || (!p.is_inner && repeats_along_lanes(loop, place));
}

// How many elements the library's reduction reads at a time; of several, the one whose order shows.
int reduction_lanes(const LoopDescription& loop) {
  int64_t lanes = 1;
  for (const LoopDescription::Step& step : loop.steps) {
    if (is_element_wise(step)) continue;
    const int64_t size = element_size(loop.places[step.places[1]].dtype);
    lanes = std::min<int64_t>(kVectorBytes / size, 8);
    if (step.reduces == Reduces::InOrder) break;
  }
  return static_cast<int>(lanes);
}

// How many threads a row has: see ReduceLaunch.
int64_t threads_of_row(int64_t columns, int64_t lanes) {
  const int64_t accesses = (columns + lanes - 1) / lanes;
  int64_t threads = lanes;
  while (threads < std::max(accesses / 8, std::min<int64_t>(accesses, 32)) && threads < kLoopThreads) threads *= 2;
  return threads;
}

// When the steps run, and what they read.
class Phases {
 public:
  explicit Phases(const LoopDescription& loop, bool can_hold)
      : loop_(loop), phase_(loop.steps.size(), 0), is_held_(loop.places.size(), false) {
    schedule();
    for (const bool holds : {true, false}) {
      holds_ = holds && can_hold;
      if (!holds_) is_held_.assign(loop.places.size(), false);
      steps_.assign(count_, {});
      loads_.assign(count_, {});
      for (size_t phase = 0; phase < count_; ++phase) collect(phase);
      if (!holds_ || are_few_held()) break;
    }
  }

  size_t count() const { return count_; }
  size_t of(size_t step) const { return phase_[step]; }
  // The steps on elements that run in a phase, in their order, and what they read that none of them makes.
  const std::vector<size_t>& steps(size_t phase) const { return steps_[phase]; }
  const std::set<size_t>& loads(size_t phase) const { return loads_[phase]; }
  // Whether what is read again stays in registers, and of which places.
  bool holds() const { return holds_; }
  bool is_held(size_t place) const { return is_held_[place]; }
  int held_vectors() const { return static_cast<int>(vectors_); }
  bool fills_vectors() const { return is_full_; }  // whether all threads have all of them

 private:
  static constexpr int64_t kMostHeld = 640;       // bytes of a thread
  static constexpr int64_t kMostUnrolled = 4096;  // calls of functors, which a compiler has to take its time for

  void schedule() {
    constexpr size_t kNever = std::numeric_limits<size_t>::max();
    std::vector<size_t> known(loop_.places.size(), 0), needed(loop_.places.size(), kNever);
    for (size_t s = 0; s < loop_.steps.size(); ++s) {
      const LoopDescription::Step& step = loop_.steps[s];
      for (size_t i = 1; i < step.places.size(); ++i) phase_[s] = std::max(phase_[s], known[step.places[i]]);
      known[step.places[0]] = phase_[s] + (is_element_wise(step) ? 0 : 1);
    }
    for (size_t s = loop_.steps.size(); s-- > 0;) {
      const LoopDescription::Step& step = loop_.steps[s];
      const size_t out = step.places[0];
      if (!is_row(loop_, out) && needed[out] != kNever) phase_[s] = needed[out];
      for (size_t i = 1; i < step.places.size(); ++i) {
        needed[step.places[i]] = std::min(needed[step.places[i]], phase_[s]);
      }
      count_ = std::max(count_, phase_[s] + 1);
    }
  }

  // The steps of a phase; without registers, also the earlier ones that make what it reads.
  void collect(size_t phase) {
    std::set<size_t>& loads = loads_[phase];
    std::vector<size_t>& steps = steps_[phase];
    for (size_t s = loop_.steps.size(); s-- > 0;) {
      const LoopDescription::Step& step = loop_.steps[s];
      const size_t out = step.places[0];
      if (is_element_wise(step) && is_row(loop_, out)) continue;
      const bool is_again = !holds_ && phase_[s] < phase && loads.contains(out);
      if (phase_[s] != phase && !is_again) continue;
      steps.push_back(s);
      loads.erase(out);
      for (size_t i = 1; i < step.places.size(); ++i) {
        if (!is_row(loop_, step.places[i])) loads.insert(step.places[i]);
      }
    }
    std::ranges::reverse(steps);
    for (const size_t place : loads) is_held_[place] = holds_ && !is_column(place);
  }

  // Whether all rows read the same, which nobody writes.
  bool is_column(size_t place) const {
    const LoopDescription::Place& p = loop_.places[place];
    return !is_written(loop_, place) &&
           std::all_of(p.strides.begin() + 1, p.strides.end(), [](int64_t stride) { return stride == 0; });
  }

  bool are_few_held() {
    const int64_t lanes = reduction_lanes(loop_), across = threads_of_row(loop_.shape[0], lanes) * lanes;
    vectors_ = (loop_.shape[0] + across - 1) / across;
    is_full_ = loop_.shape[0] % across == 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < is_held_.size(); ++i) {
      if (is_held_[i]) bytes += vectors_ * lanes * element_size(loop_.places[i].dtype);
    }
    return bytes <= kMostHeld && vectors_ * lanes * static_cast<int64_t>(loop_.steps.size()) <= kMostUnrolled;
  }

  const LoopDescription& loop_;
  std::vector<size_t> phase_;
  std::vector<bool> is_held_;
  bool holds_ = false, is_full_ = false;
  size_t count_ = 1;
  int64_t vectors_ = 0;
  std::vector<std::vector<size_t>> steps_;
  std::vector<std::set<size_t>> loads_;
};

// The order in which a row of threads takes elements that do not lie at multiples of 16 bytes.
constexpr const char* kWalk = R"(
struct Walk {
  Index columns, first, last;  // whole vectors lie between these
  __device__ Walk(Index row, Index columns) : columns(columns) {
    const Index misplaced = row % kOrder * (columns % kOrder) % kOrder;
    first = misplaced == 0 ? 0 : kOrder - misplaced;
    if (first > columns) first = columns;
    last = first + (columns - first) / kOrder * kOrder;
  }
  __device__ Index turns() const { return 2 + (last - first + kAcross * kOrder - 1) / (kAcross * kOrder) * kOrder; }
  __device__ Index at(Index turn) const {  // beyond the columns where the thread has none
    if (turn == 0) return threadIdx.x < first ? threadIdx.x : columns;
    if (turn == 1) return last + threadIdx.x;
    const Index column = first + ((turn - 2) / kOrder * kAcross + threadIdx.x) * kOrder + (turn - 2) % kOrder;
    return column < last ? column : columns;
  }
};
)";

// What divides a row by a number of its own. The steps are those of CUDA's division, whose first half is done once for
// the row; the bits are the same. Numbers beyond the range in which no step overflows or underflows are divided by
// CUDA.
constexpr const char* kRowDivision = R"(
class RowDivision {
  float by, reciprocal;
  static __device__ bool is_usual(float x) { return fabsf(x) >= 0x1p-60f && fabsf(x) <= 0x1p60f; }

 public:
  explicit __device__ RowDivision(float by) : by(by), reciprocal(__frcp_rn(by)) {}
  template <class T, class Out, class In>
  __device__ void divide(Out (&out)[n], const In (&in)[n]) const {
    bool are_usual = is_usual(by);
#pragma unroll
    for (int l = 0; l < n; ++l) are_usual &= is_usual(in[l]);
    if (are_usual) {
#pragma unroll
      for (int l = 0; l < n; ++l) {
        const float q = in[l] * reciprocal;
        out[l] = static_cast<T>(fmaf(fmaf(-by, q, in[l]), reciprocal, q));
      }
    } else {
#pragma unroll
      for (int l = 0; l < n; ++l) out[l] = static_cast<T>(in[l] / by);
    }
  }
};
)";

// Whether a step divides the elements of a row by a number of that row, in float.
bool divides_row(const LoopDescription& loop, const LoopDescription::Step& step) {
  return step.call->kernel_address() == &kernels::div && !is_row(loop, step.places[0]) &&
         !is_row(loop, step.places[1]) && is_row(loop, step.places[2]) &&
         std::ranges::all_of(step.places, [&](size_t place) {
           const ScalarType dtype = loop.places[place].dtype;
           return dtype == kFloat32 || dtype == kHalf || dtype == kBFloat16;
         });
}

// Writes the source.
class RowText {
 public:
  RowText(const LoopDescription& loop, int lanes)
      : loop_(loop), externals_(loop), lanes_(lanes), phases_(loop, lanes > 1) {}

  std::string write() {
    const int order = reduction_lanes(loop_);
    const int64_t threads = threads_of_row(loop_.shape[0], order);
    text_ = prologue_text(loop_, externals_, lanes_);
    text_ += str("constexpr Index kAcross = ", threads, ", kOrder = ", order, ";\n");
    if (lanes_ == 1) text_ += kWalk;
    if (std::ranges::any_of(loop_.steps, [&](const auto& step) { return divides_row(loop_, step); })) {
      text_ += kRowDivision;
    }
    text_ += str("extern \"C\" __global__ void __launch_bounds__(", kLoopThreads, ") ", kernel_name(loop_),
                 "(const __grid_constant__ Where where, Index rows) {\n"
                 "  const Index columns = where.shape[0];\n"
                 "  // Threads beyond the last row take that one, too: they write what is written anyway.\n"
                 "  Index row = blockIdx.x * ",
                 kLoopThreads / threads,
                 "u + threadIdx.y;\n"
                 "  if (row >= rows) row = rows - 1;\n");
    if (lanes_ == 1) text_ += "  const Walk walk(row, columns);\n";
    text_ += addresses_text(loop_, externals_, 1, "row");
    declare();
    for (size_t phase = 0; phase < phases_.count(); ++phase) {
      compute_rows(phase);
      if (!phases_.steps(phase).empty()) walk(phase);
    }
    return text_ + "}\n";
  }

 private:
  std::string address(size_t place) const {
    if (lanes_ > 1) return str("at", place, " + column * sizeof(", type_of(loop_, place), ")");
    const auto e = std::ranges::find(externals_.device, place) - externals_.device.begin();
    return str("at", place, " + column * where.strides[", e, "][0]");
  }
  bool is_external(size_t place) const { return !loop_.places[place].is_inner; }

  // The rows' numbers and what is held. Those that the loop does not make are read.
  void declare() {
    for (size_t place = 0; place < loop_.places.size(); ++place) {
      const char* const type = type_of(loop_, place);
      if (phases_.is_held(place)) text_ += str("  Lanes<", type, ", n> h", place, "[", phases_.held_vectors(), "];\n");
      if (!is_row(loop_, place)) continue;
      text_ += str("  opmath_t<", type, "> v", place, ";\n");
      if (is_written(loop_, place)) continue;
      const auto h = std::ranges::find(externals_.host, place);
      const std::string at =
          h == externals_.host.end() ? str("at", place) : str("&where.numbers[", h - externals_.host.begin(), "]");
      text_ += str("  v", place, " = *reinterpret_cast<const ", type, "*>(", at, ");\n");
    }
  }

  std::string inputs(const LoopDescription::Step& step) const {
    return inputs_text(loop_, step, [&](size_t place) { return is_row(loop_, place) ? "" : "[l]"; });
  }

  // The steps on rows whose inputs are known before a phase.
  void compute_rows(size_t phase) {
    for (size_t s = 0; s < loop_.steps.size(); ++s) {
      const LoopDescription::Step& step = loop_.steps[s];
      const size_t out = step.places[0];
      if (phases_.of(s) != phase || !is_element_wise(step) || !is_row(loop_, out)) continue;
      text_ += at_program_line(step, str("  v", out, " = ", functor_call(loop_, step, inputs(step))));
      store_row(out);
    }
  }
  void store_row(size_t place) {
    if (!is_external(place)) return;
    const char* const type = type_of(loop_, place);
    text_ += str("  if (threadIdx.x == 0) *reinterpret_cast<", type, "*>(at", place, ") = static_cast<", type, ">(v",
                 place, ");\n");
  }

  void walk(size_t phase) {
    fetch(phase);
    for (const size_t s : phases_.steps(phase)) {
      if (divides_row(loop_, loop_.steps[s])) {
        text_ += str("  const RowDivision d", s, "_", phase, "(v", loop_.steps[s].places[2], ");\n");
      }
      if (is_element_wise(loop_.steps[s])) continue;
      const size_t out = loop_.steps[s].places[0];
      text_ += str("  const auto f", out, " = ", functor_object(loop_, loop_.steps[s]), ";\n  auto a", out, " = f", out,
                   ".identity();\n");
    }
    open_loop();
    load(phase);
    const char* const each_lane = "#pragma unroll\n  for (int l = 0; l < n; ++l) {\n";
    text_ += each_lane;
    for (const size_t s : phases_.steps(phase)) {
      const LoopDescription::Step& step = loop_.steps[s];
      const size_t out = step.places[0];
      if (divides_row(loop_, step)) {
        text_ += str("  }\n",
                     at_program_line(step, str("  d", s, "_", phase, ".divide<", type_of(loop_, out), ">(v", out, ", v",
                                               step.places[1], ");  // ", step.call->kernel(), "\n")),
                     each_lane);
        continue;
      }
      text_ += at_program_line(step, is_element_wise(step)
                                         ? str("    v", out, "[l] = ", functor_call(loop_, step, inputs(step)))
                                         : str("    a", out, " = f", out, ".take(a", out, ", ", inputs(step), ");\n"));
    }
    text_ += "  }\n";
    store(phase);
    text_ += "  }\n";
    for (const size_t s : phases_.steps(phase)) {
      if (is_element_wise(loop_.steps[s])) continue;
      const size_t out = loop_.steps[s].places[0];
      text_ += str("  v", out, " = settled(static_cast<", type_of(loop_, out), ">(f", out,
                   ".result(cuda::combine_row(a", out, ", f", out, "))), where.zero);\n");
      store_row(out);
    }
  }

  // All accesses of a phase to memory, before it computes.
  void fetch(size_t phase) {
    for (const size_t place : phases_.loads(phase)) {
      if (!phases_.is_held(place) || is_written(loop_, place) || !fetched_.insert(place).second) continue;
      open_loop();
      text_ += str("    h", place, "[k] = *reinterpret_cast<const Lanes<", type_of(loop_, place), ", n>*>(",
                   address(place), ");\n  }\n");
    }
  }

  void open_loop() {
    if (phases_.holds()) {
      text_ += str("#pragma unroll\n  for (Index k = 0; k < ", phases_.held_vectors(),
                   "; ++k) {\n    const Index column = (k * kAcross + threadIdx.x) * n;\n");
      if (!phases_.fills_vectors()) text_ += "    if (column >= columns) continue;\n";
    } else if (lanes_ > 1) {
      text_ += "  for (Index column = threadIdx.x * n; column < columns; column += kAcross * n) {\n";
    } else {
      text_ +=
          "  for (Index turn = 0; turn < walk.turns(); ++turn) {\n    const Index column = walk.at(turn);\n"
          "    if (column >= columns) continue;\n";
    }
  }

  void load(size_t phase) {
    for (const size_t s : phases_.steps(phase)) {
      if (is_element_wise(loop_.steps[s])) text_ += declaration_text(loop_, loop_.steps[s].places[0]);
    }
    for (const size_t place : phases_.loads(phase)) {
      text_ += declaration_text(loop_, place);
      text_ += phases_.is_held(place)
                   ? str("  for (int l = 0; l < n; ++l) v", place, "[l] = h", place, "[k].lane[l];\n")
                   : load_text(loop_, place, address(place));
    }
  }

  void store(size_t phase) {
    for (const size_t s : phases_.steps(phase)) {
      const size_t out = loop_.steps[s].places[0];
      if (!is_element_wise(loop_.steps[s]) || phases_.of(s) != phase) continue;
      if (is_external(out)) text_ += store_text(loop_, out, address(out));
      if (!phases_.is_held(out)) continue;
      text_ += str("  for (int l = 0; l < n; ++l) h", out, "[k].lane[l] = static_cast<", type_of(loop_, out), ">(v",
                   out, "[l]);\n");
    }
  }

  const LoopDescription& loop_;
  const Externals externals_;
  const int lanes_;
  const Phases phases_;
  std::set<size_t> fetched_;
  std::string text_;
};

class RowKernel final : public ElementWiseLoop {
 public:
  explicit RowKernel(LoopDescription description)
      : loop_(std::move(description)),
        externals_(loop_),
        lanes_(most_lanes()),
        threads_(threads_of_row(loop_.shape[0], reduction_lanes(loop_))) {
    if (loop_.shape.size() == 1) {
      loop_.shape.push_back(1);
      for (LoopDescription::Place& place : loop_.places) place.strides.push_back(0);
    }
    for (size_t d = 1; d < loop_.shape.size(); ++d) rows_ *= loop_.shape[d];
  }

  void prepare() override { kernel(lanes_).load(); }
  void run(char* const* data) override {
    const int lanes = are_aligned(loop_, externals_.device, data, lanes_) ? lanes_ : 1;
    std::vector<uint64_t> where = where_of(loop_, externals_, data, loop_.shape, 1);
    auto rows = static_cast<uint32_t>(rows_);
    void* parameters[] = {where.data(), &rows};
    const int64_t at_a_time = kLoopThreads / threads_;
    const auto blocks = static_cast<uint32_t>((rows_ + at_a_time - 1) / at_a_time);
    kernel(lanes).launch(name_.c_str(),
                         {{blocks, 1, 1}, {static_cast<uint32_t>(threads_), static_cast<uint32_t>(at_a_time), 1}},
                         parameters);
  }

 private:
  int most_lanes() const {
    const int lanes = reduction_lanes(loop_);
    const bool fit = loop_.shape[0] % lanes == 0 && std::ranges::all_of(externals_.device, [&](size_t place) {
                       return is_row(loop_, place) || fits_lanes(loop_, place, lanes);
                     });
    return fit ? lanes : 1;
  }

  const Kernel& kernel(int lanes) {
    std::optional<Kernel>& kernel = lanes == 1 ? one_ : several_;
    if (!kernel) kernel.emplace(Source{name_, RowText(loop_, lanes).write(), {name_}});
    return *kernel;
  }

  LoopDescription loop_;
  const Externals externals_;
  const int lanes_;
  const int64_t threads_;
  const std::string name_ = kernel_name(loop_);
  int64_t rows_ = 1;
  std::optional<Kernel> one_, several_;
};

}  // namespace

std::unique_ptr<ElementWiseLoop> fuse_rows(LoopDescription description) {
  return std::make_unique<RowKernel>(std::move(description));
}

}  // namespace rush::cuda::jit
