// Reads ONNX models and runs them, node by node: Note [ONNX].
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include "autograd/compile/onnx/format.h"
#include "autograd/compile/onnx/model_writer.h"
#include "autograd/compile/onnx/onnx.h"
#include "autograd/grad_mode.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/io/array_bytes.h"
#include "core/io/read_file.h"
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
#include "core/ops/view/join.h"
#include "core/ops/view/pad.h"
#include "core/ops/view/view.h"

namespace rush::onnx {

using io::ProtoFields;

namespace {

using Tensors = std::vector<Tensor>;

// ---- The messages

ScalarType dtype_of(int64_t data_type) {
  const auto found = std::ranges::find(kDataTypes, data_type, &DataType::number);
  RUSH_CHECK_NOT_IMPLEMENTED(found != std::end(kDataTypes), "there is no dtype for data type ", data_type);
  return found->dtype;
}

std::pair<std::string, Tensor> read_tensor(std::string_view bytes) {
  const ProtoFields fields(bytes);
  RUSH_CHECK_NOT_IMPLEMENTED(fields.integer(tensor::data_location) == 0, "weights lie in other files");
  const std::string name(fields.text(tensor::name));
  const Ints sizes = fields.integers(tensor::dims), numbers = fields.integers(tensor::int64_data);
  const ScalarType dtype = dtype_of(fields.integer(tensor::data_type, 1));
  std::string_view data = fields.text(fields.has(tensor::raw_data) ? tensor::raw_data : tensor::float_data);
  if (!numbers.empty()) data = {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
  const bool is_shape = std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; });
  const auto size = is_shape ? io::array_bytes(sizes, dtype) : std::nullopt;
  RUSH_CHECK_IO(size && *size == data.size() && io::values_valid(data.data(), data.size(), dtype), "tensor '", name,
                "' of shape ", sizes, " and dtype ", dtype, " has ", data.size(), " bytes of values");
  const Tensor values = detail::empty_contiguous(sizes, dtype, kCPU);
  if (!data.empty()) std::memcpy(values.data_ptr(), data.data(), data.size());
  return {name, values};
}

struct ReadRow;

struct Node {
  std::string op;
  std::vector<size_t> inputs, outputs;  // places of values; 0 for none
  std::map<std::string, Value, std::less<>> attributes;
  const ReadRow* row = nullptr;        // or
  const OpBase* same = nullptr;        // an operator of the same arguments,
  Stack defaults = {};                 // and those that are not given
  std::vector<size_t> last_used = {};  // values that no later node reads
};

std::pair<std::string, Value> read_attribute(std::string_view bytes) {
  const ProtoFields fields(bytes);
  Value value = fields.integers(attribute::ints);
  if (fields.has(attribute::f)) value = static_cast<double>(fields.float32(attribute::f));
  if (fields.has(attribute::i)) value = fields.integer(attribute::i);
  if (fields.has(attribute::s)) value = std::string(fields.text(attribute::s));
  if (fields.has(attribute::t)) value = read_tensor(fields.text(attribute::t)).second;
  std::string texts;
  for (const std::string_view each : fields.texts(attribute::strings)) texts.append(each).append(" ");
  return {std::string(fields.text(attribute::name)), texts.empty() ? value : texts};
}

// ---- What a node does

// A node with its inputs. What it is asked for and does not have, it throws for.
struct Call {
  const Node& node;
  Tensors inputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  const Tensor& operator[](size_t i) const {
    RUSH_CHECK_VALUE(has(i), node.op, ": input ", i, " is missing");
    return inputs[i];
  }
  std::optional<Tensor> optional(size_t i) const { return has(i) ? std::optional(inputs[i]) : std::nullopt; }
  // The values of an input, as numbers.
  Ints ints(size_t i) const {
    const Tensor values = (*this)[i].cpu().to(kInt64).contiguous();
    const auto* first = values.data_ptr<int64_t>();
    return {first, first + values.numel()};
  }
  int64_t integer(size_t i) const {
    const Ints list = ints(i);
    RUSH_CHECK_VALUE(list.size() == 1, node.op, ": input ", i, " has ", list.size(), " numbers instead of one");
    return list[0];
  }

  template <class T>
  T attribute(std::string_view name, T otherwise) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? otherwise : found->second.as<T>();
  }
  int64_t integer(std::string_view name, int64_t otherwise) const { return attribute(name, otherwise); }
  double real(std::string_view name, double otherwise) const { return attribute(name, otherwise); }
  std::string text(std::string_view name, std::string otherwise) const { return attribute(name, std::move(otherwise)); }
  Ints ints(std::string_view name, Ints otherwise = {}) const { return attribute(name, std::move(otherwise)); }
  int64_t axis(int64_t otherwise) const { return integer("axis", otherwise); }
  bool keepdims() const { return integer("keepdims", 1) != 0; }
  size_t spatial_rank() const {
    RUSH_CHECK_VALUE((*this)[0].dim() > 2, node.op, ": the input has shape ", inputs[0].sizes());
    return static_cast<size_t>(inputs[0].dim() - 2);
  }
  // The same at both ends.
  Ints pads() const {
    const size_t rank = spatial_rank();
    const Ints all = ints("pads", Ints(2 * rank, 0));
    const bool is_even =
        all.size() == 2 * rank && std::ranges::equal(std::span(all).first(rank), std::span(all).last(rank));
    RUSH_CHECK_NOT_IMPLEMENTED(is_even && text("auto_pad", "NOTSET") == "NOTSET", node.op, ": pads ", all);
    return Ints(all.begin(), all.begin() + static_cast<int64_t>(rank));
  }
};

Tensor convolve(const Call& c) {
  const Ints ones(c.spatial_rank(), 1), zeros(ones.size(), 0);
  return convolution(c[0], c[1], c.optional(2), c.ints("strides", ones), c.pads(), c.ints("dilations", ones),
                     c.node.op == "ConvTranspose", c.ints("output_padding", zeros), c.integer("group", 1));
}

Tensor pool(const Call& c) {
  const Ints kernel = c.ints("kernel_shape"), ones(kernel.size(), 1), strides = c.ints("strides", ones);
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0, counts_pads = c.integer("count_include_pad", 0) != 0;
  if (c.node.op == "MaxPool") return max_pool2d(c[0], kernel, strides, c.pads(), c.ints("dilations", ones), ceil_mode);
  return avg_pool2d(c[0], kernel, strides, c.pads(), ceil_mode, counts_pads);
}

Tensor resize(const Call& c) {
  Ints sizes = c.ints(3);
  RUSH_CHECK_NOT_IMPLEMENTED(sizes.size() == 4, "Resize: of ", sizes.size(), " dimensions");
  sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (c.text("mode", "nearest") == "nearest") return ops::upsample_nearest2d(c[0], sizes, {}, {});
  const bool align_corners = c.text("coordinate_transformation_mode", "half_pixel") == "align_corners";
  return ops::upsample_bilinear2d(c[0], sizes, align_corners, {}, {});
}

Tensor gemm(const Call& c) {
  const Tensor a = c.integer("transA", 0) ? c[0].t() : c[0], b = c.integer("transB", 0) ? c[1] : c[1].t();
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (alpha == 1 && beta == 1) return linear(a, b, c.optional(2));
  const Tensor product = linear(a, b) * alpha;
  return c.has(2) ? product + c[2] * beta : product;
}

Tensor layer_normalization(const Call& c) {
  const auto axis = static_cast<size_t>(wrap_dim(c.axis(-1), c[0].dim(), "LayerNormalization"));
  return layer_norm(c[0], c[0].sizes().slice(axis), c[1], c.optional(2), c.real("epsilon", 1e-5));
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
  Ints reversed = counted(c[0].sizes().size());
  std::ranges::reverse(reversed);
  return c[0].permute(c.ints("perm", reversed));
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
    const bool is_flip = steps[i] == -1 && starts[i] == -1 && ends[i] < -x.size(axes[i]);
    x = is_flip ? x.flip({axes[i]}) : x.slice(axes[i], starts[i], ends[i], steps[i]);
  }
  return x;
}

Tensor pad_all(const Call& c) {
  RUSH_CHECK_NOT_IMPLEMENTED(c.text("mode", "constant") == "constant" && !c.has(3), "Pad: by more than constants");
  const Ints pads = c.ints(1);
  Ints pairs;
  for (size_t d = pads.size() / 2; d-- > 0;) pairs.insert(pairs.end(), {pads[d], pads[d + pads.size() / 2]});
  return constant_pad_nd(c[0], pairs, c.has(2) ? c[2].item() : Scalar(0));
}

Tensor reduce(const Call& c) {
  const Ints axes = c.has(1) ? c.ints(1) : c.ints("axes");
  if (axes.empty() && c.integer("noop_with_empty_axes", 0)) return c[0];
  if (c.node.op == "ReduceSum") return c[0].sum(axes, c.keepdims());
  if (c.node.op == "ReduceMean") return c[0].mean(axes, c.keepdims());
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

Tensors split(const Call& c) { return c[0].split(c.ints(1), c.axis(0)); }

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

struct ReadRow {
  std::string_view op;
  size_t data;  // so many of the first inputs are data, on one device; others are sizes, read on the CPU
  Tensor (*run)(const Call& c);
  Tensors (*run_all)(const Call& c) = nullptr;  // where there are several outputs
};
constexpr size_t kAll = std::numeric_limits<size_t>::max();

// clang-format off
const ReadRow kReadRows[] = {
    {"ArgMax", kAll, [](const Call& c) { return c[0].argmax(c.axis(0), c.keepdims()); }},
    {"ArgMin", kAll, [](const Call& c) { return c[0].argmin(c.axis(0), c.keepdims()); }},
    {"AveragePool", kAll, pool},
    {"BatchNormalization", kAll,
     [](const Call& c) { return batch_norm(c[0], c[1], c[2], c[3], c[4], false, 0, c.real("epsilon", 1e-5)); }},
    {"Cast", kAll, [](const Call& c) { return c[0].to(dtype_of(c.integer("to", 0))); }},
    {"Clip", kAll, [](const Call& c) { return clamp(c[0], c.optional(1), c.optional(2)); }},
    {"Concat", kAll, [](const Call& c) { return rush::cat(c.inputs, c.axis(0)); }},
    {"Constant", kAll, [](const Call& c) { return c.attribute("value", Tensor()); }},
    {"Conv", kAll, convolve}, {"ConvTranspose", kAll, convolve},
    {"CumSum", 1, [](const Call& c) { return c[0].cumsum(c.integer(1)); }},
    {"Div", kAll, divide},
    {"Elu", kAll, [](const Call& c) { return elu(c[0], c.real("alpha", 1)); }},
    {"Expand", 1, expand_to},
    {"Gather", kAll, gather_along},
    {"GatherElements", kAll, [](const Call& c) { return c[0].gather(c.axis(0), c[1]); }},
    {"GRU", kAll, nullptr, recurrent},
    {"Gelu", kAll, [](const Call& c) { return gelu(c[0], c.text("approximate", "none")); }},
    {"Gemm", kAll, gemm},
    {"GlobalAveragePool", kAll, [](const Call& c) { return c[0].mean(counted(c.spatial_rank(), 2), true); }},
    {"GroupNormalization", kAll,
     [](const Call& c) { return group_norm(c[0], c.integer("num_groups", 1), c[1], c[2], c.real("epsilon", 1e-5)); }},
    {"Identity", kAll, [](const Call& c) { return c[0]; }},
    {"LSTM", kAll, nullptr, recurrent},
    {"LayerNormalization", kAll, layer_normalization},
    {"LeakyRelu", kAll, [](const Call& c) { return leaky_relu(c[0], c.real("alpha", 0.01)); }},
    {"LogSoftmax", kAll, [](const Call& c) { return c[0].log_softmax(c.axis(-1)); }},
    {"MaxPool", kAll, pool}, {"Pad", 1, pad_all},
    {"RNN", kAll, nullptr, recurrent},
    {"Range", 0, [](const Call& c) { return arange(c.integer(0), c.integer(1), c.integer(2), kInt64); }},
    {"ReduceMax", 1, reduce}, {"ReduceMean", 1, reduce}, {"ReduceMin", 1, reduce}, {"ReduceSum", 1, reduce},
    {"Reshape", 1, reshape_to}, {"Resize", 1, resize}, {"Shape", kAll, shape_of}, {"Slice", 1, slice_axes},
    {"Softmax", kAll, [](const Call& c) { return c[0].softmax(c.axis(-1)); }},
    {"Split", 1, nullptr, split},
    {"Squeeze", 1, [](const Call& c) { return c.has(1) ? c[0].squeeze(c.ints(1)) : c[0].squeeze(); }},
    {"Transpose", kAll, transpose_axes},
    {"Trilu", 1, triangle},
    {"Unsqueeze", 1, unsqueeze_axes},
    {"Where", kAll, [](const Call& c) { return where(c[0], c[1], c[2]); }},
};
// clang-format on

// ---- The model

class Model {
 public:
  Model(std::string_view bytes, Device device) : device_(device) {
    const ProtoFields fields(bytes);
    int64_t opset = 0;
    for (const std::string_view each : fields.texts(model::opset_import))
      opset = std::max(opset, ProtoFields(each).integer(2));
    read_graph(fields.text(model::graph));
    RUSH_CHECK_IO(!outputs_.empty(), "it has no graph with outputs");
    RUSH_CHECK_NOT_IMPLEMENTED(opset >= 13, "opset ", opset, ", of which load_model reads 13 and later");
  }

  Tensors run(const Tensors& inputs) const {
    RUSH_CHECK_VALUE(inputs.size() == inputs_.size(), "the loaded model has ", inputs_.size(), " inputs, got ",
                     inputs.size());
    const NoGradGuard no_grad;
    Tensors values = constants_;
    for (size_t i = 0; i < inputs.size(); ++i) values[inputs_[i]] = inputs[i];
    for (const Node& node : nodes_) {
      const Tensors results = results_of(node, values);
      RUSH_CHECK_VALUE(results.size() >= node.outputs.size(), node.op, ": ", node.outputs.size(), " outputs");
      for (size_t i = 0; i < node.outputs.size(); ++i) values[node.outputs[i]] = results[i];
      for (const size_t value : node.last_used) values[value].reset();
    }
    Tensors outputs;
    for (const size_t output : outputs_) outputs.push_back(values[output]);
    return outputs;
  }

 private:
  // Whatever their order in the file: nodes name what the others give.
  void read_graph(std::string_view bytes) {
    const ProtoFields fields(bytes);
    for (const std::string_view each : fields.texts(graph::initializer)) read_initializer(each);
    for (const std::string_view each : fields.texts(graph::input)) {
      const std::string name(ProtoFields(each).text(1));
      if (!places_.contains(name)) inputs_.push_back(new_place(name));  // an initializer may be named there, too
    }
    for (const std::string_view each : fields.texts(graph::node)) read_node(each);
    for (const std::string_view each : fields.texts(graph::output))
      outputs_.push_back(place_of(std::string(ProtoFields(each).text(1))));
    constants_.resize(count_);
    find_last_uses();
  }

  // Sizes and indices, of which there are few, stay on the CPU, where they are read.
  void read_initializer(std::string_view bytes) {
    const auto [name, value] = read_tensor(bytes);
    constants_.resize(new_place(name) + 1);
    constants_.back() = value.scalar_type() == kInt64 && value.dim() <= 1 ? value : value.to(device_);
  }

  void read_node(std::string_view bytes) {
    const ProtoFields fields(bytes);
    Node node;
    node.op = fields.text(node::op_type);
    for (const std::string_view each : fields.texts(node::input)) node.inputs.push_back(place_of(std::string(each)));
    for (const std::string_view each : fields.texts(node::attribute)) node.attributes.insert(read_attribute(each));
    find_operator(node);
    for (const std::string_view each : fields.texts(node::output))
      node.outputs.push_back(each.empty() ? 0 : new_place(std::string(each)));
    nodes_.push_back(std::move(node));
  }

  static void find_operator(Node& node) {
    const auto row = std::ranges::find(kReadRows, node.op, &ReadRow::op);
    if (row != std::end(kReadRows)) node.row = row;
    if (node.row) return;
    const auto same = std::ranges::find_if(kRows, [&](const Row& r) { return r.is_same() && node.op == r.node; });
    RUSH_CHECK_NOT_IMPLEMENTED(same != kRows.end(), "there is no row for the operator ", node.op);
    node.same = registry().find(same->op);
    const Schema schema = Schema::parse(node.same->schema());
    for (size_t i = node.inputs.size(); i < schema.arguments.size(); ++i)
      node.defaults.push_back(schema.arguments[i].default_value.value_or(Value()));
    RUSH_CHECK_IO(node.inputs.size() <= schema.arguments.size(), node.op, ": ", node.inputs.size(), " inputs");
  }

  size_t place_of(const std::string& name) const {
    if (name.empty()) return 0;
    const auto found = places_.find(name);
    RUSH_CHECK_IO(found != places_.end(), "'", name, "' is read before anything gives it");
    return found->second;
  }
  size_t new_place(const std::string& name) {
    RUSH_CHECK_IO(places_.emplace(name, count_).second, "'", name, "' is given twice");
    return count_++;
  }

  void find_last_uses() {
    std::vector<bool> is_read(count_, false);
    for (const size_t output : outputs_) is_read[output] = true;
    for (size_t i = nodes_.size(); i-- > 0;) {
      for (const size_t input : nodes_[i].inputs) {
        if (!is_read[input]) nodes_[i].last_used.push_back(input);
        is_read[input] = true;
      }
    }
  }

  static Tensors results_of(const Node& node, const Tensors& values) {
    Call call{node, {}};
    Device device = kCPU;
    const size_t data = std::min(node.row ? node.row->data : kAll, node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      call.inputs.push_back(values[node.inputs[i]]);
      if (i < data && call.has(i) && !call[i].is_cpu()) device = call[i].device();
    }
    for (size_t i = 0; i < data; ++i) {
      if (call.has(i)) call.inputs[i] = call[i].to(device);
    }
    if (node.row) return node.row->run_all ? node.row->run_all(call) : Tensors{node.row->run(call)};
    Stack stack(call.inputs.begin(), call.inputs.end());
    stack.insert(stack.end(), node.defaults.begin(), node.defaults.end());
    node.same->call_boxed(stack);
    return {stack[0].as<Tensor>()};
  }

  const Device device_;
  std::map<std::string, size_t> places_;
  size_t count_ = 1;  // of values; the first is undefined
  Tensors constants_ = Tensors(1);
  std::vector<size_t> inputs_, outputs_;
  std::vector<Node> nodes_;
};

}  // namespace

LoadedGraph load_model(const std::string& path, Device device) {
  const std::vector<uint8_t> bytes = io::read_file(path);
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto model = std::make_shared<const Model>(text, device);
    return LoadedGraph([model](const Tensors& inputs) { return model->run(inputs); });
  } catch (const IOError& error) {
    RUSH_THROW(IOError, path, ": damaged, or no ONNX model: ", error.msg());
  } catch (const NotImplementedError& error) {
    RUSH_THROW(NotImplementedError, path, ": ", error.msg());
  }
}

}  // namespace rush::onnx
