// Plans of cuDNN's convolutions. Of the files for convolutions, only this one includes cuDNN's frontend: its headers
// take ten seconds to compile.
#include "backends/cuda/dnn/conv_plan.h"

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/cuda/check.h"
#include "backends/cuda/dnn/handle.h"
#include "backends/cuda/dnn/show_plans.h"
#include "backends/cuda/library_plans.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/outside_capture.h"
#include "core/device/context.h"

namespace rush::cuda {

namespace {

namespace fe = cudnn_frontend;

enum Uid : int64_t { kInput = 1, kWeight, kOutput, kBias };
using Pointers = std::unordered_map<int64_t, void*>;

struct PlanKey {
  ConvProblem problem;
  int device;
  bool deterministic, allow_tf32, benchmark;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    WordHash hash;
    const ConvProblem& p = key.problem;
    for (const auto& sizes : {p.input, p.weight, p.output}) {
      for (const int64_t size : sizes) hash.mix(size);
    }
    for (const auto& numbers : {p.stride, p.padding, p.dilation}) {
      for (const int64_t number : numbers) hash.mix(number);
    }
    hash.mix(static_cast<int64_t>(p.direction));
    hash.mix(static_cast<int64_t>(p.dtype));
    hash.mix(static_cast<int64_t>(p.result));
    hash.mix(p.channels_last | p.bias << 1 | key.deterministic << 2 | key.allow_tf32 << 3 | key.benchmark << 4 |
             key.device << 5);
    return hash.value();
  }
};

struct Plan {
  std::unique_ptr<fe::graph::Graph> graph;  // null: cuDNN has no plan
  int64_t index = 0;                        // of the candidate that is used
  int64_t workspace = 0;
  // cuDNN does not promise that two threads may run one plan at the same time.
  std::unique_ptr<std::mutex> running = std::make_unique<std::mutex>();
};

fe::DataType_t frontend_type(ScalarType dtype) {
  switch (dtype) {
    case kFloat16: return fe::DataType_t::HALF;
    case kBFloat16: return fe::DataType_t::BFLOAT16;
    case kFloat64: return fe::DataType_t::DOUBLE;
    default: return fe::DataType_t::FLOAT;
  }
}

using Dims = std::vector<int64_t>;

// A convolution of two dimensions where the first of the three does nothing: cuDNN has more kernels for those.
bool is_flat(const ConvProblem& p) {
  return p.input[2] == 1 && p.weight[2] == 1 && p.output[2] == 1 && p.padding[0] == 0;
}

template <size_t N>
Dims without_depth(const std::array<int64_t, N>& numbers, bool flat) {
  Dims all(numbers.begin(), numbers.end());
  if (flat) all.erase(all.begin() + N - 3);
  return all;
}

Dims dense_strides(const Dims& sizes, bool channels_last) {
  Dims strides(sizes.size());
  int64_t step = 1;
  if (channels_last) {
    strides[1] = 1;
    step = sizes[1];
  }
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d == 1 && channels_last) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

// The graph of one operation, and of the bias behind it; its tensors have the Uids.
std::unique_ptr<fe::graph::Graph> make_graph(const ConvProblem& p) {
  const bool flat = is_flat(p);
  auto graph = std::make_unique<fe::graph::Graph>();
  const fe::DataType_t compute = p.dtype == kFloat64 ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
  graph->set_io_data_type(frontend_type(p.dtype)).set_intermediate_data_type(compute).set_compute_data_type(compute);
  const auto tensor = [&](const char* name, const std::array<int64_t, 5>& sizes, Uid uid) {
    const Dims dims = without_depth(sizes, flat);
    return fe::graph::Tensor_attributes().set_name(name).set_uid(uid).set_dim(dims).set_stride(
        dense_strides(dims, p.channels_last));
  };
  const auto set_result = [&](auto result, const std::array<int64_t, 5>& sizes, Uid uid) {
    const Dims dims = without_depth(sizes, flat), strides = dense_strides(dims, p.channels_last);
    if (p.bias) {
      result->set_dim(dims).set_stride(strides);
      const std::array<int64_t, 5> channels = {1, sizes[1], 1, 1, 1};
      result = graph->pointwise(result, graph->tensor(tensor("bias", channels, kBias)),
                                fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }
    result->set_output(true).set_data_type(frontend_type(p.result)).set_uid(uid).set_dim(dims).set_stride(strides);
  };
  const auto configure = [&](auto attributes) {
    attributes.set_padding(without_depth(p.padding, flat))
        .set_stride(without_depth(p.stride, flat))
        .set_dilation(without_depth(p.dilation, flat));
    return attributes;
  };
  if (p.direction == ConvDirection::Output) {
    const auto x = graph->tensor(tensor("input", p.input, kInput));
    const auto w = graph->tensor(tensor("weight", p.weight, kWeight));
    set_result(graph->conv_fprop(x, w, configure(fe::graph::Conv_fprop_attributes())), p.output, kOutput);
  } else if (p.direction == ConvDirection::InputGradient) {
    const auto dy = graph->tensor(tensor("output", p.output, kOutput));
    const auto w = graph->tensor(tensor("weight", p.weight, kWeight));
    set_result(graph->conv_dgrad(dy, w, configure(fe::graph::Conv_dgrad_attributes())), p.input, kInput);
  } else {
    const auto dy = graph->tensor(tensor("output", p.output, kOutput));
    const auto x = graph->tensor(tensor("input", p.input, kInput));
    set_result(graph->conv_wgrad(dy, x, configure(fe::graph::Conv_wgrad_attributes())), p.weight, kWeight);
  }
  return graph;
}

// Which candidates PyTorch rules out.
std::vector<fe::NumericalNote_t> unwanted_notes(const PlanKey& key) {
  std::vector<fe::NumericalNote_t> notes = {fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (key.deterministic) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (!key.allow_tf32 && key.problem.dtype == kFloat32) notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
  return notes;
}

// A graph with the candidates of one of cuDNN's heuristics; null where there are none.
std::unique_ptr<fe::graph::Graph> with_candidates(const PlanKey& key, fe::HeurMode_t mode, const Dnn& dnn) {
  auto graph = make_graph(key.problem);
  if (graph->validate().is_bad() || graph->build_operation_graph(dnn.handle()).is_bad()) return nullptr;
  if (graph->create_execution_plans({mode}).is_bad()) return nullptr;
  graph->deselect_numeric_notes(unwanted_notes(key));
  return graph;
}

Plan heuristic_plan(const PlanKey& key, const Dnn& dnn) {
  for (const fe::HeurMode_t mode : {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}) {
    auto graph = with_candidates(key, mode, dnn);
    if (!graph || graph->check_support().is_bad()) continue;
    if (graph->build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE).is_bad()) continue;
    const int64_t workspace = graph->get_workspace_size();
    return {.graph = std::move(graph), .index = -1, .workspace = workspace};
  }
  return {};
}

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    RUSH_CUDA_CHECK(cudaEventCreate(&begin_));
    RUSH_CUDA_CHECK(cudaEventCreate(&end_));
  }
  ~Timer() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  void start() { RUSH_CUDA_CHECK(cudaEventRecord(begin_, stream_)); }
  // Milliseconds since the start, once the device has come so far.
  float stop() {
    RUSH_CUDA_CHECK(cudaEventRecord(end_, stream_));
    RUSH_CUDA_CHECK(cudaEventSynchronize(end_));
    float time = 0;
    RUSH_CUDA_CHECK(cudaEventElapsedTime(&time, begin_, end_));
    return time;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Milliseconds of a run; negative if the candidate cannot run. Short runs are timed in a batch after an untimed one:
// the time of a single one would be what the host takes to launch its kernels.
float time_candidate(fe::graph::Graph& graph, int64_t index, Pointers& pointers, const Dnn& dnn, Timer& timer) {
  constexpr float kShort = 0.25f;  // milliseconds of a batch
  constexpr int kBatches = 3, kMostRuns = 10;
  const Scratch workspace(static_cast<size_t>(graph.get_workspace_size_plan_at_index(index)));
  const auto run = [&] {
    return graph.execute_plan_at_index(dnn.handle(), pointers, workspace.data(), index).is_good();
  };
  // The first loads kernels, the second tells how many runs a batch needs.
  if (!run()) return -1;
  timer.start();
  if (!run()) return -1;
  const float once = timer.stop();
  const int runs = once < kShort ? std::min(kMostRuns, static_cast<int>(kShort / std::max(once, 1e-3f)) + 1) : 1;
  float best = once;
  for (int batch = 0; batch < kBatches; ++batch) {
    if (runs > 1 && !run()) return -1;
    timer.start();
    for (int i = 0; i < runs; ++i) {
      if (!run()) return -1;
    }
    best = std::min(best, timer.stop() / static_cast<float>(runs));
  }
  return best;
}

// Calls visit(index) for those that cuDNN builds, as many as globalContext() wants to be timed.
template <class Visit>
void for_each_candidate(fe::graph::Graph& graph, const Visit& visit) {
  const int limit = globalContext().benchmarkLimitCuDNN();
  int tried = 0;
  for (int64_t i = 0; i < graph.get_execution_plan_count() && (limit == 0 || tried < limit); ++i) {
    if (graph.build_plan_at_index(i).is_bad()) continue;
    ++tried;
    visit(i);
  }
}

// The candidate that runs fastest on this data, which is overwritten anyway.
Plan timed_plan(const PlanKey& key, const Dnn& dnn, Pointers& pointers) {
  auto graph = with_candidates(key, fe::HeurMode_t::A, dnn);
  if (!graph) return {};
  Timer timer(dnn.stream());
  int64_t best = -1;
  float least = 0;
  for_each_candidate(*graph, [&](int64_t i) {
    try {
      const float time = time_candidate(*graph, i, pointers, dnn, timer);
      if (time >= 0 && (best < 0 || time < least)) {
        best = i;
        least = time;
      }
    } catch (const OutOfMemoryError&) {
      // Its workspace does not fit: another's may.
    }
  });
  if (best < 0) return {};
  const int64_t workspace = graph->get_workspace_size_plan_at_index(best);
  return {.graph = std::move(graph), .index = best, .workspace = workspace};
}

void show(const PlanKey& key, const Plan& plan) {
  constexpr const char* kDirections[] = {"convolution", "its gradient by the input", "its gradient by the weight"};
  std::string name = "none: Rushlight's own kernels";
  if (plan.graph && plan.index < 0) static_cast<void>(plan.graph->get_plan_name(name));
  if (plan.graph && plan.index >= 0) static_cast<void>(plan.graph->get_plan_name_at_index(plan.index, name));
  const ConvProblem& p = key.problem;
  const std::string line =
      str("cuDNN plan for ", kDirections[static_cast<int>(p.direction)], ", ", p.dtype,
          p.channels_last ? " NHWC" : " NCHW", p.result != p.dtype ? " in float32" : "", p.bias ? " with a bias" : "",
          ", input ", IntArrayRef(p.input.data(), 5), ", weight ", IntArrayRef(p.weight.data(), 5), ", stride ",
          IntArrayRef(p.stride.data(), 3), ", padding ", IntArrayRef(p.padding.data(), 3), ", dilation ",
          IntArrayRef(p.dilation.data(), 3), ": ", name, ", workspace ", plan.workspace, " bytes\n");
  std::fputs(line.c_str(), stderr);
}

Plan choose_plan(const PlanKey& key, const Dnn& dnn, Pointers& pointers) {
  const OutsideCapture relaxed;  // cuDNN may compile and load a kernel
  Plan plan;
  if (key.benchmark) plan = timed_plan(key, dnn, pointers);
  if (!plan.graph) plan = heuristic_plan(key, dnn);
  if (shows_dnn_plans()) show(key, plan);
  return plan;
}

PlanKey plan_key(const ConvProblem& problem, const Dnn& dnn) {
  return {problem, dnn.device(), dnn_deterministic(), globalContext().allowTF32CuDNN(),
          globalContext().benchmarkCuDNN()};
}

LibraryPlans<PlanKey, Plan, PlanKeyHash>& conv_plans() {
  static auto& plans = *new LibraryPlans<PlanKey, Plan, PlanKeyHash>(kMostPlans);
  return plans;
}

// The largest workspace of those that timed_plan times.
int64_t workspace_of_candidates(const PlanKey& key, const Dnn& dnn) {
  const auto graph = with_candidates(key, fe::HeurMode_t::A, dnn);
  if (!graph) return 0;
  int64_t most = 0;
  for_each_candidate(*graph, [&](int64_t i) { most = std::max(most, graph->get_workspace_size_plan_at_index(i)); });
  return most;
}

}  // namespace

bool estimate_conv_plan(const ConvProblem& problem) {
  const Dnn dnn;
  PlanKey key = plan_key(problem, dnn);
  if (key.benchmark && !conv_plans().knows(key)) {
    rush::detail::estimate_scratch(workspace_of_candidates(key, dnn));
    key.benchmark = false;
  }
  Pointers none;
  const std::shared_ptr<const Plan> plan = conv_plans().of(key, false, [&] { return choose_plan(key, dnn, none); });
  rush::detail::estimate_scratch(plan->workspace);
  return plan->graph != nullptr;
}

bool run_conv_plan(const ConvProblem& problem, const ConvPointers& data) {
  const Dnn dnn;
  PlanKey key = plan_key(problem, dnn);
  Pointers pointers = {{kInput, data.input}, {kWeight, data.weight}, {kOutput, data.output}};
  if (problem.bias) pointers.emplace(kBias, data.bias);
  auto& plans = conv_plans();
  const bool is_captured = is_capturing(dnn.stream());
  // Timing waits for the device, which a stream that is being captured in a graph cannot.
  if (is_captured && key.benchmark) key.benchmark = plans.knows(key);
  const std::shared_ptr<const Plan> plan = plans.of(key, is_captured, [&] { return choose_plan(key, dnn, pointers); });
  if (!plan->graph) return false;
  const Scratch workspace(static_cast<size_t>(plan->workspace));
  const std::lock_guard<std::mutex> lock(*plan->running);
  auto status = plan->index < 0
                    ? plan->graph->execute(dnn.handle(), pointers, workspace.data())
                    : plan->graph->execute_plan_at_index(dnn.handle(), pointers, workspace.data(), plan->index);
  RUSH_CHECK_AS(CudaError, status.is_good(), "cuDNN could not run a plan that it chose", in_operator(), ": ",
                status.get_message());
  return true;
}

}  // namespace rush::cuda
