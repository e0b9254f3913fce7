// The operators of ONNX that are read, by public operators of ours: Note [ONNX].
#include "autograd/compile/onnx/read_rows.h"

#include <algorithm>
#include <cmath>

#include "autograd/compile/onnx/format.h"
#include "autograd/compile/onnx/model_writer.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/factories.h"
#include "core/ops/factory/range.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/conv.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "core/ops/nn/recurrent.h"
#include "core/ops/nn/upsample.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/ternary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/sort.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/view/join.h"
#include "core/ops/view/pad.h"
#include "core/ops/view/view.h"

namespace rush::onnx {

namespace {

// The pads of a window, of all beginnings and then of all ends. For SAME they are such that only strides make the
// output smaller.
Ints window_pads(const Call& c, const Ints& kernel, const Ints& strides, const Ints& dilations) {
  const size_t rank = c.spatial_rank();
  const std::string automatic = c.text("auto_pad", "NOTSET");
  Ints pads = c.ints("pads", Ints(2 * rank, 0));
  for (const Ints& each : {kernel, strides, dilations, Ints(pads.size() / 2, 1)}) {
    const bool fits = std::ranges::all_of(each, [](int64_t n) { return n > 0 && n <= int64_t{1} << 31; });
    RUSH_CHECK_VALUE(each.size() == rank && fits, c.node.op, ": a window of ", each, " over shape ", c[0].sizes());
  }
  for (size_t d = 0; d < rank && automatic.starts_with("SAME"); ++d) {
    const int64_t in = c[0].size(static_cast<int64_t>(d) + 2), out = (in + strides[d] - 1) / strides[d];
    const int64_t all = std::max<int64_t>((out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in, 0);
    pads[d] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    pads[rank + d] = all - pads[d];
  }
  return pads;
}

// As PyTorch has them: the last dimension's first.
Ints pad_pairs(const Ints& pads) {
  Ints pairs;
  for (size_t d = pads.size() / 2; d-- > 0;) pairs.insert(pairs.end(), {pads[d], pads[d + pads.size() / 2]});
  return pairs;
}

// Around the last dimensions.
Tensor padded(const Tensor& x, const Ints& pads, const Scalar& value) {
  return constant_pad_nd(x, pad_pairs(pads), value);
}

// The input of a window, and leaves pads that are the same at both ends: where they differ, the input has them instead.
Tensor evenly_padded(const Call& c, Ints& pads, bool may_differ, const Scalar& value) {
  const Ints all = pads;
  pads.resize(all.size() / 2);
  if (std::ranges::equal(pads, std::span(all).last(pads.size()))) return c[0];
  RUSH_CHECK_NOT_IMPLEMENTED(may_differ, c.node.op, ": pads ", all);
  pads.assign(pads.size(), 0);
  return padded(c[0], all, value);
}

Tensor convolve(const Call& c) {
  RUSH_CHECK_VALUE(c[1].dim() > 2, c.node.op, ": the weight has shape ", c[1].sizes());
  const Ints ones(c.spatial_rank(), 1), zeros(ones.size(), 0), kernel(c[1].sizes().slice(2).vec());
  const Ints strides = c.ints("strides", ones), dilations = c.ints("dilations", ones);
  const bool is_transposed = c.node.op == "ConvTranspose";
  RUSH_CHECK_NOT_IMPLEMENTED(!is_transposed || !c.text("auto_pad", "").starts_with("SAME"), "ConvTranspose: auto_pad");
  Ints pads = window_pads(c, kernel, strides, dilations);
  const Tensor x = evenly_padded(c, pads, !is_transposed, 0);
  return convolution(x, c[1], c.optional(2), strides, pads, dilations, is_transposed, c.ints("output_padding", zeros),
                     c.integer("group", 1));
}

Tensor pool(const Call& c) {
  const size_t rank = c.spatial_rank();
  const Ints kernel = c.ints("kernel_shape"), ones(rank, 1), strides = c.ints("strides", ones);
  const Ints dilations = c.ints("dilations", ones);
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0, counts_pads = c.integer("count_include_pad", 0) != 0;
  const bool is_max = c.node.op == "MaxPool";
  RUSH_CHECK_NOT_IMPLEMENTED(rank <= 3, c.node.op, ": of ", rank, " dimensions");
  RUSH_CHECK_NOT_IMPLEMENTED(is_max || dilations == ones, c.node.op, ": dilations ", dilations);
  Ints pads = window_pads(c, kernel, strides, dilations);
  const Tensor x = evenly_padded(c, pads, is_max && !ceil_mode, -std::numeric_limits<double>::infinity());
  if (is_max) {
    const auto& op = rank == 1 ? ops::max_pool1d : rank == 2 ? ops::max_pool2d : ops::max_pool3d;
    return op(x, kernel, strides, pads, dilations, ceil_mode);
  }
  if (rank == 1) return ops::avg_pool1d(x, kernel, strides, pads, ceil_mode, counts_pads);
  return (rank == 2 ? ops::avg_pool2d : ops::avg_pool3d)(x, kernel, strides, pads, ceil_mode, counts_pads, {});
}

// As PyTorch says where a pixel comes from; by sizes, or by scales.
Tensor resize(const Call& c) {
  const size_t rank = c.spatial_rank();
  const std::string mode = c.text("mode", "nearest"),
                    transform = c.text("coordinate_transformation_mode", "half_pixel");
  const Ints given = c.has(3) ? c.ints(3) : Ints();
  const Tensor factors = c.has(3) ? Tensor() : c[2].cpu().to(kFloat64);
  const size_t count = c.has(3) ? given.size() : static_cast<size_t>(factors.numel());
  RUSH_CHECK_VALUE(count == rank + 2, "Resize: ", count, " sizes or scales for shape ", c[0].sizes());
  RUSH_CHECK_NOT_IMPLEMENTED(rank <= 3, "Resize: of ", rank, " dimensions");
  Ints sizes;
  std::vector<std::optional<double>> scales(rank);
  for (size_t d = 0; d < count; ++d) {
    const auto dim = static_cast<int64_t>(d);
    const double factor = c.has(3) ? 1 : factors[dim].item<double>();
    const float exact = static_cast<float>(c[0].size(dim)) * static_cast<float>(factor);  // as ONNX Runtime
    RUSH_CHECK_VALUE(exact >= 0 && exact < 1e9f, "Resize: a scale of ", factor);
    const int64_t size = c.has(3) ? given[d] : static_cast<int64_t>(exact);
    RUSH_CHECK_NOT_IMPLEMENTED(d >= 2 || size == c[0].size(dim), "Resize: of dimension ", d);
    RUSH_CHECK_NOT_IMPLEMENTED(transform != "align_corners" || c.has(3) || exact == std::floor(exact),
                               "Resize: aligned corners, by a scale that gives ", exact, " elements");
    if (d >= 2) sizes.push_back(size);
    if (d >= 2 && !c.has(3)) scales[d - 2] = factor;
  }
  const bool is_nearest = mode == "nearest", align_corners = transform == "align_corners";
  const bool is_half_pixel =
      transform == "half_pixel" || (transform == "pytorch_half_pixel" && std::ranges::find(sizes, 1) == sizes.end());
  const bool is_known =
      is_nearest ? transform == "asymmetric" && c.text("nearest_mode", "round_prefer_floor") == "floor"
                 : (is_half_pixel || align_corners) &&
                       (mode == "linear" || (mode == "cubic" && rank == 2 && c.real("cubic_coeff_a", -0.75) == -0.75));
  RUSH_CHECK_NOT_IMPLEMENTED(is_known, "Resize: ", mode, ", ", transform, ", of ", rank, " dimensions");
  const auto resized = [&](const auto& in_1, const auto& in_2, const auto& in_3, auto... how) {
    if (rank == 1) return in_1(c[0], sizes, how..., scales[0]);
    if (rank == 2) return in_2(c[0], sizes, how..., scales[0], scales[1]);
    return in_3(c[0], sizes, how..., scales[0], scales[1], scales[2]);
  };
  if (is_nearest) return resized(ops::upsample_nearest1d, ops::upsample_nearest2d, ops::upsample_nearest3d);
  if (mode == "cubic") return ops::upsample_bicubic2d(c[0], sizes, align_corners, scales[0], scales[1]);
  return resized(ops::upsample_linear1d, ops::upsample_bilinear2d, ops::upsample_trilinear3d, align_corners);
}

Tensor gemm(const Call& c) {
  const Tensor a = c.integer("transA", 0) ? c[0].t() : c[0], b = c.integer("transB", 0) ? c[1] : c[1].t();
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (alpha == 1 && beta == 1) return linear(a, b, c.optional(2));
  const Tensor product = linear(a, b) * alpha;
  return c.has(2) ? product + c[2] * beta : product;
}

Tensors layer_normalization(const Call& c) {
  const auto axis = static_cast<size_t>(wrap_dim(c.axis(-1), c[0].dim(), "LayerNormalization"));
  const auto [y, mean, inverse] =
      ops::native_layer_norm(c[0], c[0].sizes().slice(axis), c[1], c.optional(2), c.real("epsilon", 1e-5));
  return {y, mean, inverse};
}

Tensor gather_along(const Call& c) {
  std::vector<std::optional<Tensor>> indices(static_cast<size_t>(wrap_dim(c.axis(0), c[0].dim(), "Gather")));
  indices.emplace_back(c[1]);
  return ops::index(c[0], indices);
}

// A size of 0 is that of the input.
Tensor reshape_to(const Call& c) {
  Ints sizes = c.ints(1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0 && !c.integer("allowzero", 0)) sizes[d] = c[0].size(static_cast<int64_t>(d));
  }
  return c[0].reshape(sizes);
}

Tensor expand_to(const Call& c) { return c[0].expand(broadcast_shapes(c[0].sizes(), c.ints(1), "Expand")); }

Tensor transpose_axes(const Call& c) {
  return c.node.attributes.contains("perm") ? c[0].permute(c.ints("perm")) : c[0].numpy_T();
}

Tensor unsqueeze_axes(const Call& c) {
  Tensor x = c[0];
  Ints axes = c.ints(1);
  for (int64_t& axis : axes) axis = wrap_dim(axis, x.dim() + static_cast<int64_t>(axes.size()), "Unsqueeze");
  std::ranges::sort(axes);
  for (const int64_t axis : axes) x = x.unsqueeze(axis);
  return x;
}

Tensor slice_axes(const Call& c) {
  const Ints starts = c.ints(1), ends = c.ints(2), steps = c.has(4) ? c.ints(4) : Ints(starts.size(), 1);
  const Ints axes = c.has(3) ? c.ints(3) : counted(starts.size());
  RUSH_CHECK_VALUE(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
                   "Slice: ", starts.size(), " starts, but not so many ends, axes and steps");
  Tensor x = c[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] >= 0) {
      x = x.slice(axes[i], starts[i], ends[i], steps[i]);
      continue;
    }
    // Backwards: forwards through what is flipped.
    const int64_t size = x.size(axes[i]);
    const auto from_end = [&](int64_t at, int64_t least) {
      return size - 1 - std::clamp(at < 0 ? at + size : at, least, size - 1);
    };
    RUSH_CHECK_NOT_IMPLEMENTED(steps[i] > -std::numeric_limits<int64_t>::max(), "Slice: a step of ", steps[i]);
    x = x.flip({axes[i]});
    if (size > 0) x = x.slice(axes[i], from_end(starts[i], 0), from_end(ends[i], -1), -steps[i]);
  }
  return x;
}

Tensor pad_all(const Call& c) {
  const std::string mode = c.text("mode", "constant");
  RUSH_CHECK_NOT_IMPLEMENTED(!c.has(3) && mode != "wrap", "Pad: of some axes, or round and round");
  if (mode == "constant") return padded(c[0], c.ints(1), c.has(2) ? c[2].item() : Scalar(0));
  Ints pairs = pad_pairs(c.ints(1));
  while (pairs.size() > 2 && pairs.back() == 0 && pairs[pairs.size() - 2] == 0) pairs.resize(pairs.size() - 2);
  return rush::pad(c[0], pairs, mode == "edge" ? "replicate" : mode);
}

Tensor reduce(const Call& c) {
  Ints axes = c.has(1) ? c.ints(1) : c.ints("axes");
  if (axes.empty() && c.integer("noop_with_empty_axes", 0)) return c[0];
  if (axes.empty()) axes = counted(static_cast<size_t>(c[0].dim()));
  if (c.node.op == "ReduceSum") return c[0].sum(axes, c.keepdims(), c[0].scalar_type());
  if (c.node.op == "ReduceMean") return c[0].mean(axes, c.keepdims());
  if (c.node.op == "ReduceL1") return linalg_vector_norm(c[0], 1, axes, c.keepdims());
  if (c.node.op == "ReduceL2") return linalg_vector_norm(c[0], 2, axes, c.keepdims());
  if (c.node.op == "ReduceLogSumExp") return logsumexp(c[0], axes, c.keepdims());
  return c.node.op == "ReduceMax" ? c[0].amax(axes, c.keepdims()) : c[0].amin(axes, c.keepdims());
}

Tensor divide(const Call& c) {
  return is_integral(c[0].scalar_type(), /*include_bool=*/false) ? c[0].div(c[1], "trunc") : c[0] / c[1];
}

Tensor triangle(const Call& c) {
  const int64_t diagonal = c.has(1) ? c.integer(1) : 0;
  return c.integer("upper", 1) ? c[0].triu(diagonal) : c[0].tril(diagonal);
}

Tensor shape_of(const Call& c) {
  const Ints sizes(c[0].sizes().begin(), c[0].sizes().end());
  const Tensor all = rush::tensor(sizes, TensorOptions(kInt64).device(kCPU));
  return all.slice(0, c.integer("start", 0), c.integer("end", c[0].dim()));
}

// Of equal elements the first comes first, as topk does not promise.
Tensors top_k(const Call& c) {
  const auto [values, places] = sort(c[0], /*stable=*/true, c.axis(-1), c.integer("largest", 1) != 0);
  return {values.narrow(c.axis(-1), 0, c.integer(1)), places.narrow(c.axis(-1), 0, c.integer(1))};
}

Tensors split(const Call& c) {
  if (c.has(1)) return c[0].split(c.ints(1), c.axis(0));
  const auto parts = static_cast<int64_t>(c.node.outputs.size());
  RUSH_CHECK_VALUE(parts > 0, "Split: it has no outputs");
  return c[0].split(std::max<int64_t>((c[0].size(c.axis(0)) + parts - 1) / parts, 1), c.axis(0));
}

// Of the sum up to an element, from either end, with it or without.
Tensor cumulative_sum(const Call& c) {
  const int64_t axis = c.integer(1), size = c[0].size(axis);
  const bool is_reverse = c.integer("reverse", 0) != 0;
  Tensor sums = (is_reverse ? c[0].flip({axis}) : c[0]).cumsum(axis, c[0].scalar_type());
  if (c.integer("exclusive", 0) && size > 0) {
    sums = rush::cat({zeros_like(sums.narrow(axis, 0, 1)), sums.narrow(axis, 0, size - 1)}, axis);
  }
  return is_reverse ? sums.flip({axis}) : sums;
}

// Indices below 0 count from the end.
Tensor gather_elements(const Call& c) {
  return c[0].gather(c.axis(0), where(c[1].lt(0), c[1] + c[0].size(c.axis(0)), c[1]));
}

Tensor fold(const Call& c) {
  Tensor result = c[0];
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    const bool is_sum = c.node.op == "Sum";
    result = is_sum ? result + c[i] : c.node.op == "Max" ? result.maximum(c[i]) : result.minimum(c[i]);
  }
  return result;
}

Tensor range(const Call& c) {
  return arange(c[0].item(), c[1].item(), c[2].item(), TensorOptions(c[0].scalar_type()).device(kCPU));
}

Tensor constant(const Call& c) {
  const auto on_cpu = [](ScalarType dtype) { return TensorOptions(dtype).device(kCPU); };
  for (const auto& [name, value] : c.node.attributes) {
    if (name == "value" || name == "value_floats") return value.as<Tensor>();
    if (name == "value_float") return full({}, value.as<double>(), on_cpu(kFloat32));
    if (name == "value_int") return full({}, value.as<int64_t>(), on_cpu(kInt64));
    if (name == "value_ints") return rush::tensor(value.as<Ints>(), on_cpu(kInt64));
  }
  RUSH_THROW(NotImplementedError, "Constant: of text, or of no value");
}

Tensors dropout_of_inference(const Call& c) {
  RUSH_CHECK_NOT_IMPLEMENTED(!c.has(2) || !c[2].item<bool>(), "Dropout: of training");
  if (c.node.outputs.size() < 2) return {c[0]};
  return {c[0], ones_like(c[0], c[0].options().dtype(kBool))};  // the mask
}

Tensor flatten(const Call& c) {
  const int64_t dims = c[0].dim(), axis = c.axis(1) < 0 ? c.axis(1) + dims : c.axis(1);
  RUSH_CHECK_VALUE(axis >= 0 && axis <= dims, "Flatten: there is no axis ", c.axis(1), " in shape ", c[0].sizes());
  Ints sizes = {1, 1};
  for (int64_t d = 0; d < dims; ++d) sizes[d < axis ? 0 : 1] *= c[0].size(d);
  return c[0].reshape(sizes);
}

// One layer with one or two directions D: x (T, N, in), W (D, gates * H, in), R (D, gates * H, H), biases of both
// (D, 2 * gates * H), lengths, h and c (D, N, H) -> y (T, D, N, H), h, c.
Tensors recurrent(const Call& c) {
  const RecurrentLayer& format = *std::ranges::find(kRecurrentLayers, c.node.op, &RecurrentLayer::node);
  const std::string direction = c.text("direction", "forward"), activations = c.text("activations", "");
  const int64_t directions = c[1].size(0), hidden = c[2].size(-1);
  const auto is = [&](std::string_view each) { return activations == (directions == 2 ? str(each, each) : each); };
  const bool is_gru = format.node == "GRU", is_relu = format.node == "RNN" && is("Relu ");
  const bool is_whole = !c.has(4) && !c.has(7) && c.real("clip", 0) == 0 && c.integer("input_forget", 0) == 0;
  const bool is_known = activations.empty() || is(format.activations) || is_relu;
  RUSH_CHECK_NOT_IMPLEMENTED(
      is_whole && is_known && c.integer("layout", 0) == 0 && c.integer("linear_before_reset", 0) == (is_gru ? 1 : 0),
      format.node, ": lengths, peepholes, clip, layout, input_forget, activations '", activations,
      "' or a reset that PyTorch's layer lacks");
  const auto in_order = [&](const Tensor& parameter) {
    const Tensors gates = parameter.chunk(static_cast<int64_t>(format.gates.size()));
    Tensors ordered;
    for (const char gate : format.gates_here) ordered.push_back(gates.at(format.gates.find(gate)));
    return rush::cat(ordered);
  };
  Tensors parameters;
  for (int64_t d = 0; d < directions; ++d) {
    parameters.insert(parameters.end(), {in_order(c[1][d]), in_order(c[2][d])});
    for (const Tensor& biases : c.has(3) ? c[3][d].chunk(2) : Tensors()) parameters.push_back(in_order(biases));
  }
  const bool is_reverse = direction == "reverse";
  const Tensor x = is_reverse ? c[0].flip({0}) : c[0];
  const auto state = [&](size_t i) { return c.has(i) ? c[i] : zeros({directions, x.size(1), hidden}, x.options()); };
  const auto run = [&](const auto& op, const auto& states) {
    return op(x, states, parameters, c.has(3), 1, 0.0, /*train=*/false, directions == 2, /*batch_first=*/false);
  };
  Tensors results(3);
  if (format.node == "LSTM") {
    std::tie(results[0], results[1], results[2]) = run(ops::lstm, Tensors{state(5), state(6)});
  } else {
    std::tie(results[0], results[1]) = run(is_gru ? ops::gru : is_relu ? ops::rnn_relu : ops::rnn_tanh, state(5));
  }
  const Tensor y = results[0].unflatten(2, {directions, hidden}).transpose(1, 2);
  results[0] = is_reverse ? y.flip({0}) : y;
  return results;
}

constexpr std::string_view kOfConv = "auto_pad dilations group kernel_shape output_padding pads strides";
constexpr std::string_view kOfPool = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides";
constexpr std::string_view kOfReduce = "axes keepdims noop_with_empty_axes";
constexpr std::string_view kOfRecurrent =
    "activations clip direction hidden_size input_forget layout linear_before_reset";

// clang-format off
const ReadRow kOperators[] = {
    {"ArgMax", kAll, "axis keepdims", [](const Call& c) { return c[0].argmax(c.axis(0), c.keepdims()); }},
    {"ArgMin", kAll, "axis keepdims", [](const Call& c) { return c[0].argmin(c.axis(0), c.keepdims()); }},
    {"AveragePool", kAll, kOfPool, pool},
    {"BatchNormalization", kAll, "epsilon momentum",
     [](const Call& c) { return batch_norm(c[0], c[1], c[2], c[3], c[4], false, 0, c.real("epsilon", 1e-5)); }},
    {"Cast", kAll, "to saturate", [](const Call& c) { return c[0].to(dtype_of(c.integer("to", 0))); }},
    {"Clip", kAll, "",
     [](const Call& c) { return c.has(1) || c.has(2) ? clamp(c[0], c.optional(1), c.optional(2)) : c[0]; }},
    {"Concat", kAll, "axis", [](const Call& c) { return rush::cat(c.inputs, c.axis(0)); }},
    {"Constant", kAll, "value value_float value_floats value_int value_ints", constant},
    {"Conv", kAll, kOfConv, convolve}, {"ConvTranspose", kAll, kOfConv, convolve},
    {"CumSum", 1, "exclusive reverse", cumulative_sum},
    {"Div", kAll, "", divide},
    {"Dropout", kAll, "ratio seed", nullptr, dropout_of_inference},
    {"Elu", kAll, "alpha", [](const Call& c) { return elu(c[0], c.real("alpha", 1)); }},
    {"Expand", 1, "", expand_to},
    {"Flatten", kAll, "axis", flatten},
    {"Gather", kAll, "axis", gather_along},
    {"GatherElements", kAll, "axis", gather_elements},
    {"GRU", kAll, kOfRecurrent, nullptr, recurrent},
    {"Gelu", kAll, "approximate", [](const Call& c) { return gelu(c[0], c.text("approximate", "none")); }},
    {"Gemm", kAll, "alpha beta transA transB", gemm},
    {"GlobalAveragePool", kAll, "", [](const Call& c) { return c[0].mean(counted(c.spatial_rank(), 2), true); }},
    {"GroupNormalization", kAll, "epsilon num_groups stash_type",
     [](const Call& c) { return group_norm(c[0], c.integer("num_groups", 1), c[1], c[2], c.real("epsilon", 1e-5)); }},
    {"HardSigmoid", kAll, "alpha beta",
     [](const Call& c) { return clamp(c[0] * c.real("alpha", 0.2) + c.real("beta", 0.5), 0, 1); }},
    {"Identity", kAll, "", [](const Call& c) { return c[0]; }},
    {"InstanceNormalization", kAll, "epsilon",
     [](const Call& c) { return instance_norm(c[0], c[1], c[2], {}, {}, true, 0, c.real("epsilon", 1e-5)); }},
    {"LSTM", kAll, kOfRecurrent, nullptr, recurrent},
    {"LayerNormalization", kAll, "axis epsilon stash_type", nullptr, layer_normalization},
    {"LeakyRelu", kAll, "alpha", [](const Call& c) { return leaky_relu(c[0], c.real("alpha", 0.01)); }},
    {"LogSoftmax", kAll, "axis", [](const Call& c) { return c[0].log_softmax(c.axis(-1)); }},
    {"Max", kAll, "", fold}, {"MaxPool", kAll, kOfPool, pool}, {"Min", kAll, "", fold},
    {"Mod", kAll, "fmod", [](const Call& c) { return c.integer("fmod", 0) ? c[0].fmod(c[1]) : c[0].remainder(c[1]); }},
    {"Pad", 1, "mode", pad_all},
    {"Pow", kAll, "", [](const Call& c) { return c[0].pow(c[1]).to(c[0].scalar_type()); }},
    {"RNN", kAll, kOfRecurrent, nullptr, recurrent},
    {"Range", 0, "", range},
    {"ReduceL1", 1, kOfReduce, reduce}, {"ReduceL2", 1, kOfReduce, reduce},
    {"ReduceLogSumExp", 1, kOfReduce, reduce},
    {"ReduceMax", 1, kOfReduce, reduce}, {"ReduceMean", 1, kOfReduce, reduce},
    {"ReduceMin", 1, kOfReduce, reduce}, {"ReduceSum", 1, kOfReduce, reduce},
    {"Reshape", 1, "allowzero", reshape_to},
    {"Resize", 1, "coordinate_transformation_mode cubic_coeff_a mode nearest_mode", resize},
    {"Shape", kAll, "end start", shape_of}, {"Slice", 1, "", slice_axes},
    {"Softmax", kAll, "axis", [](const Call& c) { return c[0].softmax(c.axis(-1)); }},
    {"Softplus", kAll, "", [](const Call& c) { return softplus(c[0]); }},
    {"Split", 1, "axis num_outputs", nullptr, split},
    {"Squeeze", 1, "", [](const Call& c) { return c.has(1) ? c[0].squeeze(c.ints(1)) : c[0].squeeze(); }},
    {"Sum", kAll, "", fold},
    {"TopK", 1, "axis largest sorted", nullptr, top_k},
    {"Transpose", kAll, "perm", transpose_axes},
    {"Trilu", 1, "upper", triangle},
    {"Unsqueeze", 1, "", unsqueeze_axes},
    {"Where", kAll, "", [](const Call& c) { return where(c[0], c[1], c[2]); }},
};
// clang-format on

}  // namespace

constinit const std::span<const ReadRow> kReadRows = kOperators;

ScalarType dtype_of(int64_t data_type) {
  const auto found = std::ranges::find(kDataTypes, data_type, &DataType::number);
  RUSH_CHECK_NOT_IMPLEMENTED(found != std::end(kDataTypes), "there is no dtype for data type ", data_type);
  return found->dtype;
}

}  // namespace rush::onnx
