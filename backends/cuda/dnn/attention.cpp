// Attention by cuDNN. Only this file includes the graphs of cuDNN's frontend: its headers take ten seconds to compile.
#include "backends/cuda/dnn/attention.h"

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/cuda/check.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/dnn/handle.h"
#include "backends/cuda/dnn/show_plans.h"
#include "backends/cuda/kernels/nn/hidden_rows.h"
#include "backends/cuda/library_plans.h"
#include "backends/cuda/memory/mark_written.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/outside_capture.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

namespace fe = cudnn_frontend;

enum AttentionUid : int64_t { kQ = 1, kK, kV, kO, kStats, kBiasMask, kSeed, kOffset, kGradO, kGradQ, kGradK, kGradV };
using AttentionPointers = std::unordered_map<int64_t, void*>;

struct HeadLayout {
  std::array<int64_t, 4> sizes = {}, strides = {};
  friend bool operator==(const HeadLayout&, const HeadLayout&) = default;

  IntArrayRef size_ref() const { return {sizes.data(), 4}; }
  IntArrayRef stride_ref() const { return {strides.data(), 4}; }
  std::vector<int64_t> size_list() const { return {sizes.begin(), sizes.end()}; }
  std::vector<int64_t> stride_list() const { return {strides.begin(), strides.end()}; }
};

// Empty (B, H, L, E), in memory (B, L, H, E): the layout that cuDNN writes.
HeadLayout heads_inside(IntArrayRef sizes) {
  const int64_t heads = sizes[1], length = sizes[2], width = sizes[3];
  return {{sizes[0], heads, length, width}, {length * heads * width, width, heads * width, 1}};
}

// Views of (B, L, 3, H, E): Note [Gradients of a packed projection].
HeadLayout packed_heads(IntArrayRef sizes) {
  HeadLayout layout = heads_inside(sizes);
  layout.strides[0] *= 3;
  layout.strides[2] *= 3;
  return layout;
}

// The tensor's layout if cuDNN can read it: the last dimension has stride 1, rows are aligned to 16 bytes, and no
// element is expanded.
bool is_readable(const Tensor& t) {
  if (reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 != 0) return false;
  if (t.size(3) != 1 && t.stride(3) != 1) return false;
  for (int64_t d = 0; d < 3; ++d) {
    if (t.size(d) != 1 && (t.stride(d) <= 0 || t.stride(d) % 8 != 0)) return false;
  }
  return true;
}

// The layout that cuDNN gets: the tensor's own or that of a copy. The strides of dimensions of size 1 do not matter,
// and are those of the copy, so that a plan serves more tensors.
HeadLayout layout_of(const Tensor& t) {
  HeadLayout layout = heads_inside(t.sizes());
  if (!is_readable(t)) return layout;
  for (size_t d = 0; d < 3; ++d) {
    if (t.sizes()[d] != 1) layout.strides[d] = t.strides()[d];
  }
  return layout;
}
Tensor as_laid_out(const Tensor& t, const HeadLayout& layout) {
  bool same = is_readable(t);
  for (size_t d = 0; d < 3; ++d) same = same && (t.sizes()[d] == 1 || t.strides()[d] == layout.strides[d]);
  if (same) return t;
  Tensor copy = detail::empty_strided(layout.size_ref(), layout.stride_ref(), t.scalar_type(), t.device());
  native::copy_(copy, t, false);
  return copy;
}

// The bias with size 1 in the batch and head dimensions that are expanded: cuDNN broadcasts these itself.
Tensor without_repeats(const Tensor& bias) {
  if (!bias.defined()) return bias;
  DimVector sizes(bias.sizes()), strides(bias.strides());
  for (size_t d = 0; d < 2; ++d) {
    if (strides[d] == 0) sizes[d] = 1;
    if (sizes[d] == 1) strides[d] = sizes[2] * sizes[3];
  }
  const Tensor once = detail::make_view(bias, sizes, strides, bias.storage_offset());
  const bool readable = (strides[3] == 1 || sizes[3] == 1) && reinterpret_cast<uintptr_t>(once.data_ptr()) % 16 == 0;
  return readable ? once : native::clone_contiguous(once);
}
HeadLayout bias_layout(const Tensor& bias) {
  HeadLayout layout;
  std::copy(bias.sizes().begin(), bias.sizes().end(), layout.sizes.begin());
  std::copy(bias.strides().begin(), bias.strides().end(), layout.strides.begin());
  return layout;
}

struct AttentionPlanKey {
  bool backward, with_stats, causal, deterministic, packed;
  ScalarType dtype;
  int device;
  HeadLayout query, key, value, bias;  // no sizes: no bias
  double scale, dropout_p;

  friend bool operator==(const AttentionPlanKey&, const AttentionPlanKey&) = default;
  bool has_bias() const { return bias.sizes[3] > 0; }
  HeadLayout gradient(const HeadLayout& input) const {
    return packed ? packed_heads(input.size_ref()) : heads_inside(input.size_ref());
  }
  HeadLayout out() const { return heads_inside({query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]}); }
};

struct AttentionPlanKeyHash {
  size_t operator()(const AttentionPlanKey& key) const {
    WordHash hash;
    for (const HeadLayout& layout : {key.query, key.key, key.value, key.bias}) {
      for (const int64_t size : layout.sizes) hash.mix(size);
      for (const int64_t stride : layout.strides) hash.mix(stride);
    }
    hash.mix(std::bit_cast<int64_t>(key.scale));
    hash.mix(std::bit_cast<int64_t>(key.dropout_p));
    hash.mix(key.backward | key.with_stats << 1 | key.causal << 2 | key.deterministic << 3 | key.device << 4 |
             static_cast<int>(key.dtype) << 12 | key.packed << 20);
    return hash.value();
  }
};

AttentionPlanKey plan_key(const AttentionProblem& p, const Tensor& bias, bool backward, bool with_stats) {
  return {.backward = backward,
          .with_stats = with_stats,
          .causal = p.is_causal,
          .deterministic = backward && dnn_deterministic(),
          .packed = backward && native::are_packed(p),
          .dtype = p.query.scalar_type(),
          .device = p.query.device().index,
          .query = layout_of(p.query),
          .key = layout_of(p.key),
          .value = layout_of(p.value),
          .bias = bias.defined() ? bias_layout(bias) : HeadLayout(),
          .scale = p.scale,
          .dropout_p = p.dropout_p};
}

struct AttentionPlan {
  std::unique_ptr<fe::graph::Graph> graph;  // null: cuDNN has no plan
  int64_t workspace = 0;
  // cuDNN does not promise that two threads may run one plan at the same time.
  std::unique_ptr<std::mutex> running = std::make_unique<std::mutex>();
};

using GraphTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// A graph of one operation; its tensors have the AttentionUids.
class AttentionGraph {
 public:
  explicit AttentionGraph(const AttentionPlanKey& key) : key_(key), graph_(std::make_unique<fe::graph::Graph>()) {
    const auto dtype = key.dtype == kFloat16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
    graph_->set_io_data_type(dtype)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    q_ = input("query", kQ, key.query);
    k_ = input("key", kK, key.key);
    v_ = input("value", kV, key.value);
    if (key.backward) {
      add_backward();
    } else {
      add_forward();
    }
  }
  std::unique_ptr<fe::graph::Graph> take() { return std::move(graph_); }

 private:
  GraphTensor input(const char* name, AttentionUid uid, const HeadLayout& layout) {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_name(name)
                              .set_uid(uid)
                              .set_dim(layout.size_list())
                              .set_stride(layout.stride_list()));
  }
  GraphTensor number(const char* name, AttentionUid uid) {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_name(name)
                              .set_uid(uid)
                              .set_dim({1, 1, 1, 1})
                              .set_stride({1, 1, 1, 1})
                              .set_data_type(fe::DataType_t::INT64));
  }
  static void set_output(const GraphTensor& tensor, AttentionUid uid, const HeadLayout& layout) {
    tensor->set_output(true).set_uid(uid).set_dim(layout.size_list()).set_stride(layout.stride_list());
  }
  // logsumexp (B, H, L, 1)
  HeadLayout stats() const {
    const auto [batch, heads, length, width] = key_.query.sizes;
    return {{batch, heads, length, 1}, {heads * length, length, 1, 1}};
  }
  template <class Attributes>
  void configure(Attributes& attributes) {
    attributes.set_attn_scale(static_cast<float>(key_.scale)).set_causal_mask(key_.causal);
    if (key_.has_bias()) attributes.set_bias(input("bias", kBiasMask, key_.bias));
    if (key_.dropout_p > 0) {
      attributes.set_dropout(static_cast<float>(key_.dropout_p), number("seed", kSeed), number("offset", kOffset));
    }
  }

  void add_forward() {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(key_.with_stats);
    configure(attributes);
    const auto [out, sums] = graph_->sdpa(q_, k_, v_, attributes);
    set_output(out, kO, key_.out());
    if (!key_.with_stats) return;
    set_output(sums, kStats, stats());
    sums->set_data_type(fe::DataType_t::FLOAT);
  }

  void add_backward() {
    const GraphTensor out = input("out", kO, key_.out()), grad = input("grad", kGradO, key_.out());
    const GraphTensor sums = input("stats", kStats, stats());
    sums->set_data_type(fe::DataType_t::FLOAT);
    auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention gradient");
    configure(attributes);
    attributes.set_deterministic_algorithm(key_.deterministic);
    const auto [dq, dk, dv] = graph_->sdpa_backward(q_, k_, v_, out, grad, sums, attributes);
    set_output(dq, kGradQ, key_.gradient(key_.query));
    set_output(dk, kGradK, key_.gradient(key_.key));
    set_output(dv, kGradV, key_.gradient(key_.value));
  }

  const AttentionPlanKey& key_;
  std::unique_ptr<fe::graph::Graph> graph_;
  GraphTensor q_, k_, v_;
};

void show_attention_plan(const AttentionPlanKey& key, const AttentionPlan& plan, const std::string& refusal) {
  std::string name = "none: " + refusal;
  if (plan.graph) static_cast<void>(plan.graph->get_plan_name(name));
  const auto shape = [](const HeadLayout& layout) {
    return str(layout.size_ref(), " of strides ", layout.stride_ref());
  };
  const std::string line = str("cuDNN plan for attention", key.backward ? "'s gradient" : "", ", ", key.dtype,
                               ", query ", shape(key.query), ", key ", shape(key.key), ", value ", shape(key.value),
                               key.has_bias() ? ", bias " + shape(key.bias) : "", key.causal ? ", causal" : "",
                               ", dropout ", key.dropout_p, ": ", name, ", workspace ", plan.workspace, " bytes\n");
  std::fputs(line.c_str(), stderr);
}

AttentionPlan build_attention_plan(const AttentionPlanKey& key, const Dnn& dnn) {
  const OutsideCapture relaxed;  // cuDNN may compile and load a kernel
  auto graph = AttentionGraph(key).take();
  AttentionPlan plan;
  auto status = graph->validate();
  if (status.is_good()) status = graph->build_operation_graph(dnn.handle());
  if (status.is_good()) status = graph->create_execution_plans({fe::HeurMode_t::A});
  if (status.is_good()) status = graph->check_support();
  if (status.is_good()) status = graph->build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
  if (status.is_good()) {
    plan.workspace = graph->get_workspace_size();
    plan.graph = std::move(graph);
  }
  if (shows_dnn_plans()) show_attention_plan(key, plan, status.get_message());
  return plan;
}

std::shared_ptr<const AttentionPlan> attention_plan(const AttentionPlanKey& key, const Dnn& dnn) {
  static auto& plans = *new LibraryPlans<AttentionPlanKey, AttentionPlan, AttentionPlanKeyHash>(kMostPlans);
  return plans.of(key, is_capturing(dnn.stream()), [&] { return build_attention_plan(key, dnn); });
}

bool has_plan(const AttentionPlanKey& key) { return attention_plan(key, Dnn())->graph != nullptr; }

// In an estimate of memory, whose tensors are on meta, the workspace counts, and nothing runs.
void run_plan(const char* op, const AttentionPlanKey& key, AttentionPointers& pointers, Device device) {
  const Dnn dnn;
  const std::shared_ptr<const AttentionPlan> plan = attention_plan(key, dnn);
  RUSH_CHECK_NOT_IMPLEMENTED(plan->graph, op, ": cuDNN has no plan for this attention");
  if (device.is_meta()) return rush::detail::estimate_scratch(plan->workspace);
  const Scratch workspace(static_cast<size_t>(plan->workspace));
  const std::lock_guard<std::mutex> lock(*plan->running);
  auto status = plan->graph->execute(dnn.handle(), pointers, workspace.data());
  RUSH_CHECK_AS(CudaError, status.is_good(), "cuDNN could not run a plan that it chose", in_operator(), ": ",
                status.get_message());
}

// The refusals that need no plan.
const char* plain_refusal(const AttentionProblem& p) {
  const int64_t queries = p.query.size(2), keys = p.key.size(2), width = p.query.size(3), values = p.value.size(3);
  if (!dnn_enabled_for(p.query.scalar_type())) return "cuDNN is switched off";
  if (p.query.scalar_type() != kFloat16 && p.query.scalar_type() != kBFloat16) {
    return "computes in float16 and bfloat16 only";
  }
  if (p.query.numel() == 0 || p.key.numel() == 0 || p.value.numel() == 0) return "has nothing to compute";
  if (width % 8 != 0 || values % 8 != 0) return "has heads of a multiple of 8 numbers only";
  if (width > 256 || values > 256) return "has heads of at most 256 numbers";
  if (current_properties().major < 8) return "needs a GPU of compute capability 8.0 or above";
  // cuDNN accepts these, but PyTorch does not pass them to it.
  if (keys == 1) return "has no attention to a single key";
  if (queries == 1 && p.dropout_p > 0) return "has no dropout with a single query";
  return nullptr;
}

void add_dropout(AttentionPointers& pointers, const AttentionProblem& p) {
  if (p.dropout_p == 0) return;
  pointers.emplace(kSeed, p.seed.data_ptr());
  pointers.emplace(kOffset, p.offset.data_ptr());
}

}  // namespace

void dnn_attention_refusal(const char*& why, const AttentionProblem& p, bool with_gradient) {
  why = plain_refusal(p);
  if (why) return;
  const Tensor bias = without_repeats(p.bias);
  // A mask may hide all keys of a row, which LSE shows. The forward pass refuses what the backward pass would refuse.
  if (!has_plan(plan_key(p, bias, false, with_gradient || bias.defined())) ||
      (with_gradient && !has_plan(plan_key(p, bias, true, true)))) {
    why = "cuDNN has no plan for it (RUSH_SHOW_PLANS=1 says why)";
  }
}

void dnn_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& p) {
  const char* op = kernels::cudnn_attention.name();
  const char* why = plain_refusal(p);
  RUSH_CHECK_NOT_IMPLEMENTED(!why, op, ": ", why);
  const Tensor bias = without_repeats(p.bias);
  Tensor sums = logsumexp;
  if (bias.defined() && !sums.defined()) {
    sums = detail::empty_contiguous({out.size(0), out.size(1), out.size(2)}, kFloat32, out.device());
  }
  const AttentionPlanKey key = plan_key(p, bias, false, sums.defined());
  const Tensor q = as_laid_out(p.query, key.query), k = as_laid_out(p.key, key.key);
  const Tensor v = as_laid_out(p.value, key.value);
  AttentionPointers pointers = {{kQ, q.data_ptr()}, {kK, k.data_ptr()}, {kV, v.data_ptr()}, {kO, out.data_ptr()}};
  if (sums.defined()) pointers.emplace(kStats, sums.data_ptr());
  if (bias.defined()) pointers.emplace(kBiasMask, bias.data_ptr());
  add_dropout(pointers, p);
  run_plan(op, key, pointers, out.device());
  mark_written(out);
  mark_written(sums);
  if (bias.defined() && !out.device().is_meta()) clear_hidden_rows(out, sums);
}

void dnn_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                            const Tensor& logsumexp, const AttentionProblem& p) {
  const char* op = kernels::cudnn_attention_backward.name();
  const char* why = plain_refusal(p);
  RUSH_CHECK_NOT_IMPLEMENTED(!why, op, ": ", why);
  const Tensor bias = without_repeats(p.bias);
  const AttentionPlanKey key = plan_key(p, bias, true, true);
  const Tensor q = as_laid_out(p.query, key.query), k = as_laid_out(p.key, key.key);
  const Tensor v = as_laid_out(p.value, key.value), sums = native::contiguous(logsumexp);
  const Tensor o = as_laid_out(out, key.out()), g = as_laid_out(grad, key.out());
  AttentionPointers pointers = {{kQ, q.data_ptr()},
                                {kK, k.data_ptr()},
                                {kV, v.data_ptr()},
                                {kO, o.data_ptr()},
                                {kGradO, g.data_ptr()},
                                {kStats, sums.data_ptr()},
                                {kGradQ, grads[0].data_ptr()},
                                {kGradK, grads[1].data_ptr()},
                                {kGradV, grads[2].data_ptr()}};
  if (bias.defined()) pointers.emplace(kBiasMask, bias.data_ptr());
  add_dropout(pointers, p);
  run_plan(op, key, pointers, out.device());
  for (const Tensor& each : grads) mark_written(each);
}

}  // namespace rush::cuda
