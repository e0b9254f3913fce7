// kRows: what stands for each operator in ONNX. https://onnx.ai/onnx/operators
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/compile/onnx/format.h"
#include "autograd/compile/onnx/model_writer.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/factories.h"

namespace rush::onnx {

using W = ModelWriter;

namespace {

// ---- Element-wise

// The dtype of a node's result where its inputs are of `operands`.
ScalarType dtype_given(std::string_view node, ScalarType operands) {
  constexpr std::string_view kPredicates[] = {
      "And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"};
  return std::ranges::count(kPredicates, node) > 0 ? kBool : operands;
}

// Arithmetic of ONNX takes no truth values, and integers of 8 and 16 bits seldom; those of 32 bits give the same when
// they are cast back.
ScalarType widened(ScalarType dtype) {
  return is_integral(dtype, /*include_bool=*/true) && element_size(dtype) < 4 ? kInt32 : dtype;
}

// ONNX promotes nothing: the dtype that the arguments are cast to.
ScalarType operand_dtype(W& w, std::string_view node) {
  if (w.op().starts_with("aten::logical") || w.op().starts_with("aten::bitwise")) return kBool;
  if (dtype_given(node, kFloat32) != kBool) return widened(w.result().dtype);
  return widened(w.arguments() == 1 ? w.info(0).dtype : result_type(w.on_meta(0), w.on_meta(1)));
}

void same(W& w, const char* node) {
  const ScalarType dtype = operand_dtype(w, node);
  const std::string_view name = node;
  if ((name == "Ceil" || name == "Floor" || name == "Round") && is_integral(dtype, false)) return w.give(w.in(0));
  Names inputs = {w.in(0, dtype)};
  if (w.arguments() > 1) inputs.push_back(w.in(1, dtype));
  if (w.arguments() > 2 && w.real(2) != 1) inputs[1] = w.node("Mul", {inputs[1], w.number(w.real(2), dtype)});  // alpha
  w.give(w.cast(w.node(node, inputs), dtype_given(node, dtype), w.result().dtype));  // in place it has another
}

void bitwise(W& w, const char* node) {
  if (w.result().dtype != kBool) w.refuse("is of integers, not of truth values");
  same(w, node);
}

// Mod of integers has the divisor's sign; of floating point it is fmod, with the dividend's.
void remainder(W& w, const char* node) {
  const ScalarType dtype = operand_dtype(w, node);
  const std::string a = w.in(0, dtype), b = w.in(1, dtype);
  const bool is_fmod = w.op().starts_with("aten::fmod");
  const auto floored = [&] { return w.node("Mul", {w.node("Floor", {w.node("Div", {a, b})}), b}); };
  const std::string r =
      is_fmod || is_integral(dtype, false) ? w.node(node, {a, b}, {{"fmod", is_fmod}}) : w.node("Sub", {a, floored()});
  w.give(w.cast(r, dtype, w.result().dtype));
}

// Div of integers is rounded to zero.
void rounded_division(W& w, const char* node) {
  const ScalarType dtype = operand_dtype(w, node);
  const bool is_whole = is_integral(dtype, false), to_zero = w.arguments() > 2 && w.text(2) == "trunc";
  std::string a = w.in(0, dtype);
  const std::string b = w.in(1, dtype);
  if (to_zero && !is_whole) w.refuse("rounds floating point to zero");
  if (!to_zero && is_whole) a = w.node("Sub", {a, w.node("Mod", {a, b})});
  const std::string quotient = w.node(node, {a, b});
  w.give(w.cast(is_whole ? quotient : w.node("Floor", {quotient}), dtype, w.result().dtype));
}

void nothing(W& w, const char* /*node*/) { w.give(w.in(0)); }
void cast(W& w, const char* /*node*/) { w.give(w.in(0, w.result().dtype)); }
void with_alpha(W& w, const char* node) { w.give(w.node(node, {w.in(0)}, {{"alpha", w.real(1)}})); }
void along_dim(W& w, const char* node) { w.give(w.node(node, {w.in(0)}, {{"axis", w.dim(1, 0)}})); }
void gelu(W& w, const char* node) { w.give(w.node(node, {w.in(0)}, {{"approximate", w.text(1)}})); }
void glu(W& w, const char* node) {
  const Names halves = w.nodes("Split", {w.in(0)}, 2, {{"axis", w.dim(1, 0)}, {"num_outputs", 2}});
  w.give(w.node(node, {halves[0], w.node("Sigmoid", {halves[1]})}));
}
void silu(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.node("Sigmoid", {w.in(0)})})); }
void log_sigmoid(W& w, const char* node) { w.give(w.node("Neg", {w.node(node, {w.node("Neg", {w.in(0)})})})); }
void hardsigmoid(W& w, const char* node) { w.give(w.node(node, {w.in(0)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})); }
void rsqrt(W& w, const char* node) { w.give(w.node(node, {w.node("Sqrt", {w.in(0, w.result().dtype)})})); }

void elu(W& w, const char* node) {
  if (w.real(3) != 1) w.refuse("scales its input");
  const std::string y = w.node(node, {w.in(0)}, {{"alpha", w.real(1)}});
  w.give(w.real(2) == 1 ? y : w.node("Mul", {y, w.number(w.real(2), w.result().dtype)}));
}

void softplus(W& w, const char* node) {
  const double beta = w.real(1);
  const auto times = [&](const std::string& x, double factor) {
    return beta == 1 ? x : w.node("Mul", {x, w.number(factor, w.result().dtype)});
  };
  w.give(times(w.node(node, {times(w.in(0), beta)}), 1 / beta));
}

void not_equal(W& w, const char* node) {
  const ScalarType dtype = operand_dtype(w, node);
  const std::string differ = w.node(node, {w.node("Equal", {w.in(0, dtype), w.in(1, dtype)})});
  w.give(w.cast(differ, kBool, w.result().dtype));
}

void power(W& w, const char* node) {
  const ScalarType dtype = widened(w.result().dtype);
  w.give(w.cast(w.node(node, {w.in(0, dtype), w.number(w.real(1), dtype)}), dtype, w.result().dtype));
}

void clip(W& w, const char* node) {
  const auto limit = [&](size_t i) { return w.is_given(i) ? w.number(w.real(i), w.result().dtype) : std::string(); };
  w.give(w.node(node, {w.in(0, w.result().dtype), limit(1), limit(2)}));
}

void where(W& w, const char* node) {
  const ScalarType dtype = widened(w.result().dtype);
  w.give(w.cast(w.node(node, {w.in(0), w.in(1, dtype), w.in(2, dtype)}), dtype, w.result().dtype));
}

void masked_fill(W& w, const char* node) {
  const bool by_number = w.op().ends_with("Scalar");
  const ScalarType dtype = widened(w.info(0).dtype);
  const std::string value = by_number ? w.number(w.real(2), dtype) : w.in(2, dtype);
  w.give(w.cast(w.node(node, {w.in(1), value, w.in(0, dtype)}), dtype, w.info(0).dtype));
}

// ---- Products

// x weight^T + bias
std::string affine(W& w, const std::string& x, size_t weight, size_t bias) {
  const bool has_bias = w.is_given(bias);
  if (w.dims(0) == 2 && has_bias) return w.node("Gemm", {x, w.in(weight), w.in(bias)}, {{"transB", 1}});
  const std::string product = w.node("MatMul", {x, w.transposed(w.in(weight), 2, 0, 1)});
  return has_bias ? w.node("Add", {product, w.in(bias)}) : product;
}

void linear(W& w, const char* /*node*/) { w.give(affine(w, w.in(0), 1, 2)); }

void addmm(W& w, const char* node) {
  w.give(w.node(node, {w.in(1), w.in(2), w.in(0)}, {{"alpha", w.real(4)}, {"beta", w.real(3)}}));
}

void gelu_perceptron(W& w, const char* node) {
  w.give(affine(w, w.node(node, {affine(w, w.in(0), 1, 2)}, {{"approximate", "tanh"}}), 3, 4));
}

// ---- Recurrent layers

// A node for each layer; its parameters have a dimension of directions in front, and other orders of gates.
void recurrent(W& w, const char* node) {
  const RecurrentLayer& format = *std::ranges::find(kRecurrentLayers, node, &RecurrentLayer::node);
  const Names states = w.list(1), parameters = w.list(2);
  const bool has_biases = w.flag(3), batch_first = w.flag(8);
  const auto layers = static_cast<size_t>(w.integer(4));
  const size_t directions = w.flag(7) ? 2 : 1, per_cell = parameters.size() / (layers * directions);
  if (w.flag(6) && w.real(5) != 0) w.refuse("is in training mode: call eval() before");
  if (per_cell != (has_biases ? 4 : 2)) w.refuse("has projections");
  const int64_t hidden = w.size(2, 1, 1);
  Ints rows;
  for (const char gate : format.gates)
    for (int64_t i = 0; i < hidden; ++i)
      rows.push_back(hidden * static_cast<int64_t>(format.gates_here.find(gate)) + i);
  Attributes attributes = {{"hidden_size", hidden}, {"direction", directions == 2 ? "bidirectional" : "forward"}};
  if (w.op().starts_with("aten::gru")) attributes.emplace_back("linear_before_reset", 1);
  if (w.op().starts_with("aten::rnn_relu")) attributes.emplace_back("activations", Names(directions, "Relu"));

  std::string x = batch_first ? w.transposed(w.in(0), 3, 0, 1) : w.in(0);
  std::vector<Names> last(states.size());  // of each layer
  for (size_t layer = 0; layer < layers; ++layer) {
    const auto parameter = [&](size_t number) {
      Names each;
      for (size_t d = 0; d < directions; ++d)
        each.push_back(
            w.node("Unsqueeze", {parameters[(layer * directions + d) * per_cell + number], w.integers({0})}));
      return w.node("Gather", {w.node("Concat", each, {{"axis", 0}}), w.integers(rows)}, {{"axis", 1}});
    };
    const std::string biases = has_biases ? w.node("Concat", {parameter(2), parameter(3)}, {{"axis", 1}}) : "";
    Names inputs = {x, parameter(0), parameter(1), biases, /*sequence_lens=*/""};
    const auto first = static_cast<int64_t>(layer * directions), end = static_cast<int64_t>((layer + 1) * directions);
    for (const std::string& state : states)
      inputs.push_back(w.node("Slice", {state, w.integers({first}), w.integers({end}), w.integers({0})}));
    const Names outputs = w.nodes(node, inputs, 1 + states.size(), attributes);
    x = w.node("Reshape", {w.transposed(outputs[0], 4, 1, 2), w.integers({0, 0, -1})});  // (T, D, N, H) -> (T, N, D*H)
    for (size_t i = 0; i < states.size(); ++i) last[i].push_back(outputs[1 + i]);
  }
  w.give(batch_first ? w.transposed(x, 3, 0, 1) : x);
  for (size_t i = 0; i < states.size(); ++i) w.give(w.node("Concat", last[i], {{"axis", 0}}), 1 + i);
}

// ---- Convolutions, pools

// ONNX wants the pads of all beginnings, then of all ends.
Ints twice(Ints pads) {
  const Ints ends = pads;
  pads.insert(pads.end(), ends.begin(), ends.end());
  return pads;
}

// Of an operator whose name ends with the number of spatial dimensions.
size_t spatial_rank(W& w) {
  const size_t rank = w.op().find("3d") == std::string_view::npos ? 2 : 3;
  if (static_cast<size_t>(w.dims(0)) != rank + 2) w.refuse("has an input without a batch");
  return rank;
}

void convolution(W& w, const char* /*node*/) {
  const auto rank = static_cast<size_t>(w.dims(0) - 2);
  Attributes attributes = {{"strides", w.ints(3, rank)},
                           {"pads", twice(w.ints(4, rank))},
                           {"dilations", w.ints(5, rank)},
                           {"group", w.integer(8)}};
  if (w.flag(6)) attributes.emplace_back("output_padding", w.ints(7, rank));
  w.give(w.node(w.flag(6) ? "ConvTranspose" : "Conv", {w.in(0), w.in(1), w.in(2)}, attributes));
}

void pool(W& w, const char* node) {
  const size_t rank = spatial_rank(w);
  const bool is_max = std::string_view(node) == "MaxPool";
  const Ints kernel = w.ints(1, rank);
  if (!is_max && w.is_given(6)) w.refuse("has a divisor of its own");
  w.give(w.node(node, {w.in(0)},
                {{"kernel_shape", kernel},
                 {"strides", w.ints(2).empty() ? kernel : w.ints(2, rank)},
                 {"pads", twice(w.ints(3, rank))},
                 {"ceil_mode", w.flag(is_max ? 5 : 4)},
                 is_max ? Attributes::value_type("dilations", w.ints(4, rank, 1))
                        : Attributes::value_type("count_include_pad", w.flag(5))}));
}

void adaptive_avg_pool(W& w, const char* node) {
  const Ints out = w.ints(1, spatial_rank(w));
  if (std::ranges::all_of(out, [](int64_t size) { return size == 1; })) return w.give(w.node(node, {w.in(0)}));
  // A size that was the same in all traces may depend on one that was not.
  if (w.has_unknown_sizes()) w.refuse("does something else for each size of a dynamic dimension");
  Ints kernel;
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t in = w.size(0, d + 2);
    if (in % out[d] != 0) w.refuse("has windows of different sizes");
    kernel.push_back(in / out[d]);
  }
  w.give(w.node("AveragePool", {w.in(0)}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}

// As PyTorch says where a pixel comes from: by the scales where it is given them, unless corners are aligned.
void upsample(W& w, const char* mode) {
  const bool is_nearest = std::string_view(mode) == "nearest", aligns = !is_nearest && w.flag(2);
  const size_t scale = is_nearest ? 2 : 3;
  const char* transform = is_nearest ? "asymmetric" : aligns ? "align_corners" : "half_pixel";
  Names inputs = {w.in(0), "", "", ""};
  if (!aligns && w.is_given(scale)) {
    std::vector<float> scales = {1, 1};
    for (size_t d = 2; d < static_cast<size_t>(w.dims(0)); ++d) {
      const double given = w.real(scale + d - 2), one_of = 1 / given, in = static_cast<double>(w.info(0).sizes[d]);
      scales.push_back(static_cast<float>(given));
      const auto out = static_cast<double>(w.result().sizes[d]);
      const bool is_exact = !w.is_dynamic(0, d) || given == scales[d];
      const bool same_size =
          is_exact && std::floor(in * scales[d]) == out && std::floor(static_cast<float>(in) * scales[d]) == out;
      const bool same_pixels = !is_nearest || given == std::round(given) || one_of == std::round(one_of);
      if (!same_size || !same_pixels) w.refuse("has a scale that ONNX rounds otherwise: ask for a size");
    }
    inputs[2] = w.constant(rush::tensor(scales, TensorOptions(kFloat32).device(kCPU)));
  } else {
    const std::string leading = w.node("Shape", {w.in(0)}, {{"start", 0}, {"end", 2}});
    inputs[3] = w.node("Concat", {leading, w.integers(w.ints(1))}, {{"axis", 0}});
  }
  w.give(w.node("Resize", inputs,
                {{"mode", mode}, {"coordinate_transformation_mode", transform}, {"nearest_mode", "floor"}}));
}

// ---- Normalisations

// With the batch's own statistics, where a layer keeps none, as instance norm.
void batch_norm_of_batch(W& w) {
  if (w.is_given(3)) w.refuse("is in training mode: call eval() before");
  Ints axes = counted(static_cast<size_t>(w.dims(0))), channels(axes.size() - 1, 1);
  axes.erase(axes.begin() + 1);
  channels[0] = -1;
  const auto mean = [&](const std::string& x) { return w.node("ReduceMean", {x, w.integers(axes)}); };
  const auto for_channels = [&](size_t i) { return w.node("Reshape", {w.in(i), w.integers(channels)}); };
  const std::string x = w.node("Sub", {w.in(0), mean(w.in(0))});
  const std::string variance = w.node("Add", {mean(w.node("Mul", {x, x})), w.number(w.real(7), w.result().dtype)});
  std::string y = w.node("Div", {x, w.node("Sqrt", {variance})});
  if (w.is_given(1)) y = w.node("Mul", {y, for_channels(1)});
  w.give(w.is_given(2) ? w.node("Add", {y, for_channels(2)}) : y);
}

// With the statistics of the training.
void batch_norm(W& w, const char* node) {
  if (w.flag(5)) return batch_norm_of_batch(w);
  const int64_t channels = w.size(0, 1);
  const std::string weight = w.in_or(1, 1, channels), bias = w.in_or(2, 0, channels);
  w.give(w.node(node, {w.in(0), weight, bias, w.in(3), w.in(4)}, {{"epsilon", w.real(7)}}));
}

std::string layer_norm_of(W& w, const std::string& x, size_t sizes) {
  const Ints normalised = w.ints(sizes);
  if (normalised.size() > 1 && !(w.is_given(sizes + 1) && w.is_given(sizes + 2))) w.refuse("lacks a weight or a bias");
  return w.node("LayerNormalization",
                {x, w.in_or(sizes + 1, 1, normalised.back()), w.in_or(sizes + 2, 0, normalised.back())},
                {{"axis", -static_cast<int64_t>(normalised.size())}, {"epsilon", w.real(sizes + 3)}});
}

void layer_norm(W& w, const char* /*node*/) { w.give(layer_norm_of(w, w.in(0), 1)); }

void add_layer_norm(W& w, const char* node) {
  if (w.real(6) != 0) w.refuse("is in training mode: call eval() before");
  const std::string sum = w.node(node, {w.in(0), w.in(1)});
  w.give(layer_norm_of(w, sum, 2));
  w.give(sum, 1);
}

void rms_norm(W& w, const char* node) {
  const ScalarType dtype = w.result().dtype;
  const double least =
      dtype == kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double eps = w.is_given(3) ? w.real(3) : least;
  const Ints axes = counted(w.ints(1).size(), -static_cast<int64_t>(w.ints(1).size()));
  const std::string mean = w.node("ReduceMean", {w.node("Mul", {w.in(0), w.in(0)}), w.integers(axes)});
  const std::string y = w.node(node, {w.in(0), w.node("Sqrt", {w.node("Add", {mean, w.number(eps, dtype)})})});
  w.give(w.is_given(2) ? w.node("Mul", {y, w.in(2)}) : y);
}

void group_norm(W& w, const char* node) {
  const int64_t channels = w.size(0, 1);
  w.give(w.node(node, {w.in(0), w.in_or(1, 1, channels), w.in_or(2, 0, channels)},
                {{"num_groups", w.integer(6)}, {"epsilon", w.real(7)}}));
}

// ---- Views, joins

void reshape(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.shape(1)})); }
void expand(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.shape(1, 1)})); }
void permute(W& w, const char* node) { w.give(w.node(node, {w.in(0)}, {{"perm", w.dims_in(1, 0)}})); }
void transpose(W& w, const char* /*node*/) { w.give(w.transposed(w.in(0), w.dims(0), w.dim(1, 0), w.dim(2, 0))); }
void unsqueeze(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.index(1)})); }

void squeeze(W& w, const char* node) {
  Ints axes;
  for (const int64_t d : w.dims_in(1, 0)) {
    if (!w.is_dynamic(0, static_cast<size_t>(d)) && w.size(0, static_cast<size_t>(d)) == 1) axes.push_back(d);
  }
  w.give(axes.empty() ? w.in(0) : w.node(node, {w.in(0), w.integers(axes)}));
}

void slice(W& w, const char* node) {
  const auto limit = [&](size_t i, int64_t otherwise) { return w.is_given(i) ? w.index(i) : w.integers({otherwise}); };
  const std::string start = limit(2, 0), end = limit(3, std::numeric_limits<int64_t>::max());
  w.give(w.node(node, {w.in(0), start, end, w.integers({w.dim(1, 0)}), w.index(4)}));
}

void flip(W& w, const char* node) {
  const Ints axes = w.dims_in(1, 0), from(axes.size(), -1), to(axes.size(), std::numeric_limits<int64_t>::min());
  w.give(w.node(node, {w.in(0), w.integers(from), w.integers(to), w.integers(axes), w.integers(from)}));
}

void split(W& w, const char* node) {
  const int64_t dim = w.dim(2, 0);
  const Ints sizes = w.result_sizes(static_cast<size_t>(dim));
  w.give_list(w.nodes(node, {w.in(0), w.integers(sizes)}, sizes.size(), {{"axis", dim}}));
}

void select(W& w, const char* node) {
  w.give(w.node(node, {w.in(0), w.node("Squeeze", {w.index(2)})}, {{"axis", w.dim(1, 0)}}));
}

void unbind(W& w, const char* node) {
  Names names;
  for (size_t i = 0; i < w.results(0); ++i)
    names.push_back(w.node(node, {w.in(0), w.number(static_cast<double>(i), kInt64)}, {{"axis", w.dim(1, 0)}}));
  w.give_list(names);
}

void join(W& w, const char* node) {
  Names parts = w.list(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = w.cast(parts[i], w.info(0, i).dtype, w.result().dtype);
    if (w.op() == "aten::stack") parts[i] = w.node("Unsqueeze", {parts[i], w.index(1)});
  }
  w.give(w.node(node, parts, {{"axis", w.integer(1)}}));
}

void triangle(W& w, const char* node) {
  const std::string diagonal = w.node("Squeeze", {w.index(1)});
  w.give(w.node(node, {w.in(0), diagonal}, {{"upper", w.op().starts_with("aten::triu")}}));
}

// PyTorch gives the last dimension's pads first, in pairs.
void pad(W& w, const char* mode) {
  const Ints pairs = w.ints(1);
  const auto dims = static_cast<size_t>(w.dims(0));
  Ints pads(2 * dims, 0);
  for (size_t i = 0; i < pairs.size(); ++i) pads[dims * (i % 2) + dims - 1 - i / 2] = pairs[i];
  const bool is_constant = std::string_view(mode) == "constant";
  const std::string value = is_constant ? w.number(w.real(2), w.info(0).dtype) : "";
  w.give(w.node("Pad", {w.in(0), w.integers(pads), value}, {{"mode", mode}}));
}

// ---- Indices

void embedding(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.in(1)})); }
void one_hot(W& w, const char* node) {
  const std::string classes = w.integers(counted(static_cast<size_t>(w.integer(1))));
  w.give(w.cast(w.node(node, {w.node("Unsqueeze", {w.in(0, kInt64), w.integers({-1})}), classes}), kBool, kInt64));
}
void gather(W& w, const char* node) { w.give(w.node(node, {w.in(0), w.in(2)}, {{"axis", w.dim(1, 0)}})); }

// One list of indices, for one dimension; a mask ends the trace.
void index(W& w, const char* node) {
  const Names indices = w.list(1);
  const auto given = std::ranges::find_if(indices, [](const std::string& name) { return !name.empty(); });
  const auto others = std::ranges::count(indices, "");
  if (others + 1 != static_cast<int64_t>(indices.size())) w.refuse("has indices for several dimensions");
  w.give(w.node(node, {w.in(0), *given}, {{"axis", given - indices.begin()}}));
}

// ---- Factories

// What is the same at all sizes is computed here and now.
void arange(W& w, const char* node) {
  const size_t first = w.op() == "aten::arange" ? 0 : 1;  // the end
  const bool has_step = w.op() == "aten::arange.start_step";
  if (!w.depends(0) && !w.depends(first) && !(has_step && w.depends(2))) return w.give(w.evaluated());
  const auto limit = [&](size_t i) { return w.node("Squeeze", {w.index(i)}); };
  const std::string start = first == 0 ? w.number(0, kInt64) : limit(0);
  const std::string range = w.node(node, {start, limit(first), has_step ? limit(2) : w.number(1, kInt64)});
  w.give(w.cast(range, kInt64, w.result().dtype));
}

std::string filling(W& w) {
  const bool is_given = w.op().starts_with("aten::full") || w.op().starts_with("aten::fill");
  return w.number(is_given ? w.real(1) : w.op().starts_with("aten::ones"), w.result().dtype);
}

void filled(W& w, const char* node) { w.give(w.depends(0) ? w.node(node, {filling(w), w.shape(0)}) : w.evaluated()); }
void filled_like(W& w, const char* node) { w.give(w.node(node, {filling(w), w.node("Shape", {w.in(0)})})); }

void made(W& w, const char* /*node*/) {
  for (size_t i = 0; i < w.arguments(); ++i) {
    if (w.depends(i)) w.refuse("depends on a dynamic dimension");
  }
  w.give(w.evaluated());
}

// ---- Reductions

// Arguments: self, dims, keepdim, and maybe dtype; of those of all elements self and maybe dtype.
void reduce(W& w, const char* node) {
  const bool has_dims = w.arguments() > 2;
  const Ints axes = has_dims ? w.dims_in(1, 0) : counted(w.info(0).sizes.size());
  const bool is_bool = w.op().starts_with("aten::all") || w.op().starts_with("aten::any");
  const ScalarType dtype = is_bool ? kBool : w.result().dtype;
  std::string y = w.in(0, dtype);
  if (!axes.empty()) y = w.node(node, {y, w.integers(axes)}, {{"keepdims", has_dims && w.flag(2)}});
  w.give(w.cast(y, dtype, w.result().dtype));
}

void arg_extremum(W& w, const char* node) {
  const bool has_dim = w.is_given(1);
  const std::string x = has_dim ? w.in(0) : w.node("Reshape", {w.in(0), w.integers({-1})});
  w.give(w.node(node, {x}, {{"axis", has_dim ? w.dim(1, 0) : 0}, {"keepdims", has_dim && w.flag(2)}}));
}

// The extremes of a dimension, and their places.
void extremes(W& w, const char* node) {
  const int64_t dim = w.dim(1, 0);
  const char* const places = w.op() == "aten::max.dim" ? "ArgMax" : "ArgMin";
  w.give(w.node(node, {w.in(0), w.integers({dim})}, {{"keepdims", w.flag(2)}}));
  w.give(w.node(places, {w.in(0)}, {{"axis", dim}, {"keepdims", w.flag(2)}}), 1);
}

void topk(W& w, const char* node) {
  const Names both =
      w.nodes(node, {w.in(0), w.index(1)}, 2, {{"axis", w.dim(2, 0)}, {"largest", w.flag(3)}, {"sorted", w.flag(4)}});
  for (size_t i = 0; i < both.size(); ++i) w.give(both[i], i);
}

void vector_norm(W& w, const char* /*node*/) {
  const double order = w.real(1);
  if (order != 1 && order != 2) w.refuse(str("is of order ", order, ", not 1 or 2"));
  const Names inputs = {w.in(0, w.result().dtype), w.integers(w.dims_in(2, 0))};
  w.give(w.node(order == 1 ? "ReduceL1" : "ReduceL2", inputs, {{"keepdims", w.flag(3)}}));
}

void variance(W& w, const char* /*node*/) {
  const ScalarType dtype = w.result().dtype;
  const Ints axes = w.dims_in(1, 0);
  double count = w.is_given(2) ? -w.real(2) : -1, size = 1;
  for (const int64_t d : axes) size *= static_cast<double>(w.size(0, static_cast<size_t>(d)));
  count += size;
  const std::string x = w.node("Sub", {w.in(0), w.node("ReduceMean", {w.in(0), w.integers(axes)})});
  const std::string sum = w.node("ReduceSum", {w.node("Mul", {x, x}), w.integers(axes)}, {{"keepdims", w.flag(3)}});
  const std::string variance = w.node("Div", {sum, w.number(std::max(count, 0.0), dtype)});
  w.give(w.op().starts_with("aten::std") ? w.node("Sqrt", {variance}) : variance);
}

void cumsum(W& w, const char* node) { w.give(w.node(node, {w.in(0, w.result().dtype), w.index(1)})); }

}  // namespace

// clang-format off
const std::vector<Row> kRows = {
    {"aten::abs", same, "Abs"}, {"aten::acos", same, "Acos"}, {"aten::asin", same, "Asin"},
    {"aten::atan", same, "Atan"}, {"aten::ceil", same, "Ceil"}, {"aten::cos", same, "Cos"},
    {"aten::cosh", same, "Cosh"}, {"aten::erf", same, "Erf"}, {"aten::exp", same, "Exp"},
    {"aten::floor", same, "Floor"}, {"aten::hardswish", same, "HardSwish"}, {"aten::isnan", same, "IsNaN"},
    {"aten::log", same, "Log"}, {"aten::mish", same, "Mish"}, {"aten::neg", same, "Neg"},
    {"aten::reciprocal", same, "Reciprocal"}, {"aten::relu", same, "Relu"}, {"aten::round", same, "Round"},
    {"aten::sigmoid", same, "Sigmoid"}, {"aten::sign", same, "Sign"}, {"aten::sin", same, "Sin"},
    {"aten::sinh", same, "Sinh"}, {"aten::sqrt", same, "Sqrt"}, {"aten::tan", same, "Tan"},
    {"aten::tanh", same, "Tanh"}, {"aten::add.Tensor", same, "Add"}, {"aten::sub.Tensor", same, "Sub"},
    {"aten::mul.Tensor", same, "Mul"}, {"aten::div.Tensor", same, "Div"}, {"aten::pow.Tensor_Tensor", same, "Pow"},
    {"aten::maximum", same, "Max"}, {"aten::minimum", same, "Min"}, {"aten::eq.Tensor", same, "Equal"},
    {"aten::lt.Tensor", same, "Less"}, {"aten::le.Tensor", same, "LessOrEqual"}, {"aten::gt.Tensor", same, "Greater"},
    {"aten::ge.Tensor", same, "GreaterOrEqual"}, {"aten::ne.Tensor", not_equal, "Not"},
    {"aten::logical_not", same, "Not"}, {"aten::logical_and", same, "And"}, {"aten::logical_or", same, "Or"},
    {"aten::logical_xor", same, "Xor"}, {"aten::bitwise_not", bitwise, "Not"},
    {"aten::bitwise_and.Tensor", bitwise, "And"}, {"aten::bitwise_or.Tensor", bitwise, "Or"},
    {"aten::bitwise_xor.Tensor", bitwise, "Xor"}, {"aten::remainder.Tensor", remainder, "Mod"},
    {"aten::fmod.Tensor", remainder, "Mod"}, {"aten::floor_divide", rounded_division, "Div"},
    {"aten::div.Tensor_mode", rounded_division, "Div"}, {"aten::_prelu_kernel", same, "PRelu"},
    {"aten::softplus", softplus, "Softplus"}, {"aten::log_sigmoid_forward", log_sigmoid, "Softplus"},
    {"aten::hardsigmoid", hardsigmoid, "HardSigmoid"}, {"aten::alias", nothing}, {"aten::detach", nothing}, {"aten::clone", nothing},
    {"aten::_to_copy", cast}, {"aten::leaky_relu", with_alpha, "LeakyRelu"}, {"aten::elu", elu, "Elu"},
    {"aten::gelu", gelu, "Gelu"}, {"aten::silu", silu, "Mul"}, {"aten::glu", glu, "Mul"}, {"aten::rsqrt", rsqrt, "Reciprocal"},
    {"aten::pow.Tensor_Scalar", power, "Pow"}, {"aten::clamp", clip, "Clip"}, {"aten::hardtanh", clip, "Clip"},
    {"aten::where.self", where, "Where"}, {"aten::masked_fill.Scalar", masked_fill, "Where"},
    {"aten::masked_fill.Tensor", masked_fill, "Where"},
    {"aten::_softmax", along_dim, "Softmax"}, {"aten::_log_softmax", along_dim, "LogSoftmax"},

    {"aten::matmul", same, "MatMul"}, {"aten::mm", same, "MatMul"}, {"aten::bmm", same, "MatMul"},
    {"aten::mv", same, "MatMul"}, {"aten::dot", same, "MatMul"},
    {"aten::addmm", addmm, "Gemm"}, {"aten::linear", linear}, {"rush::gelu_perceptron", gelu_perceptron, "Gelu"},
    {"aten::lstm.input", recurrent, "LSTM"}, {"aten::gru.input", recurrent, "GRU"},
    {"aten::rnn_tanh.input", recurrent, "RNN"}, {"aten::rnn_relu.input", recurrent, "RNN"},
    {"aten::convolution", convolution}, {"aten::max_pool2d_with_indices", pool, "MaxPool"},
    {"aten::avg_pool2d", pool, "AveragePool"},
    {"aten::max_pool3d_with_indices", pool, "MaxPool"}, {"aten::avg_pool3d", pool, "AveragePool"}, {"aten::_adaptive_avg_pool2d", adaptive_avg_pool, "GlobalAveragePool"},
    {"aten::upsample_bilinear2d", upsample, "linear"}, {"aten::upsample_nearest2d", upsample, "nearest"},
    {"aten::upsample_linear1d", upsample, "linear"}, {"aten::upsample_nearest1d", upsample, "nearest"},
    {"aten::upsample_trilinear3d", upsample, "linear"}, {"aten::upsample_nearest3d", upsample, "nearest"},
    {"aten::upsample_bicubic2d", upsample, "cubic"},
    {"aten::batch_norm", batch_norm, "BatchNormalization"},
    {"aten::native_layer_norm", layer_norm}, {"rush::add_layer_norm", add_layer_norm, "Add"},
    {"aten::native_group_norm", group_norm, "GroupNormalization"}, {"aten::_fused_rms_norm", rms_norm, "Div"},

    {"aten::view", reshape, "Reshape"}, {"aten::reshape", reshape, "Reshape"}, {"aten::expand", expand, "Expand"},
    {"aten::permute", permute, "Transpose"}, {"aten::transpose.int", transpose},
    {"aten::unsqueeze", unsqueeze, "Unsqueeze"}, {"aten::squeeze", squeeze, "Squeeze"},
    {"aten::squeeze.dim", squeeze, "Squeeze"}, {"aten::squeeze.dims", squeeze, "Squeeze"},
    {"aten::slice.Tensor", slice, "Slice"}, {"aten::flip", flip, "Slice"}, {"aten::split.Tensor", split, "Split"},
    {"aten::split_with_sizes", split, "Split"}, {"aten::select.int", select, "Gather"},
    {"aten::unbind.int", unbind, "Gather"}, {"aten::cat", join, "Concat"}, {"aten::stack", join, "Concat"},
    {"aten::tril", triangle, "Trilu"}, {"aten::triu", triangle, "Trilu"},
    {"aten::constant_pad_nd", pad, "constant"},
    {"aten::reflection_pad1d", pad, "reflect"}, {"aten::reflection_pad2d", pad, "reflect"},
    {"aten::replication_pad1d", pad, "edge"}, {"aten::replication_pad2d", pad, "edge"},
    {"aten::embedding", embedding, "Gather"}, {"aten::one_hot", one_hot, "Equal"}, {"aten::gather", gather, "GatherElements"},
    {"aten::index_select", gather, "Gather"}, {"aten::index.Tensor", index, "Gather"},
    {"aten::arange", arange, "Range"}, {"aten::arange.start", arange, "Range"},
    {"aten::arange.start_step", arange, "Range"}, {"aten::zeros", filled, "Expand"}, {"aten::ones", filled, "Expand"},
    {"aten::full", filled, "Expand"}, {"aten::zeros_like", filled_like, "Expand"},
    {"aten::ones_like", filled_like, "Expand"}, {"aten::full_like", filled_like, "Expand"},
    {"aten::fill.Scalar", filled_like, "Expand"}, {"aten::zero", filled_like, "Expand"}, {"aten::eye", made},
    {"aten::eye.m", made}, {"aten::linspace", made}, {"aten::scalar_tensor", made},

    {"aten::sum", reduce, "ReduceSum"}, {"aten::sum.dim_IntList", reduce, "ReduceSum"},
    {"aten::mean", reduce, "ReduceMean"}, {"aten::mean.dim", reduce, "ReduceMean"},
    {"aten::amax", reduce, "ReduceMax"}, {"aten::max", reduce, "ReduceMax"}, {"aten::amin", reduce, "ReduceMin"},
    {"aten::min", reduce, "ReduceMin"}, {"aten::all", reduce, "ReduceMin"}, {"aten::all.dim", reduce, "ReduceMin"},
    {"aten::any", reduce, "ReduceMax"}, {"aten::any.dim", reduce, "ReduceMax"}, {"aten::argmax", arg_extremum, "ArgMax"},
    {"aten::argmin", arg_extremum, "ArgMin"}, {"aten::max.dim", extremes, "ReduceMax"},
    {"aten::min.dim", extremes, "ReduceMin"}, {"aten::topk", topk, "TopK"},
    {"aten::linalg_vector_norm", vector_norm}, {"aten::std.correction", variance}, {"aten::var.correction", variance},
    {"aten::logsumexp", reduce, "ReduceLogSumExp"}, {"aten::cumsum", cumsum, "CumSum"},
};
// clang-format on

bool Row::is_same() const { return write == same; }

const Row* row_of(std::string_view op) {
  std::string name(op);
  const size_t end = std::min(name.find('.'), name.size());
  if (name[end - 1] == '_') name.erase(end - 1, 1);  // "aten::add.Tensor" of "aten::add_.Tensor"
  const auto found = std::ranges::find(kRows, name, &Row::op);
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace rush::onnx
