// Puts fused operators in the place of several calls: Note [Replacements].
#include <algorithm>
#include <optional>

#include "autograd/compile/graph_module.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/uses.h"
#include "core/ops/factory/factories.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/conv.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/nn/fused.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush::compiler {

namespace {

// A graph, and what is to become of its calls.
class Editor {
 public:
  explicit Editor(Graph& graph) : uses(graph), graph_(graph) {}

  const Uses uses;

  size_t size() const { return graph_.calls.size(); }
  const Graph::Call& operator[](size_t i) const { return graph_.calls[i]; }
  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.info(id); }
  // The call, if it is one of this operator and will be run.
  const Graph::Call* call_of(const OpBase& op, std::optional<size_t> i) const {
    return i && !instead_.contains(*i) && graph_.calls[*i].op == &op ? &graph_.calls[*i] : nullptr;
  }
  bool is_written(std::initializer_list<Graph::Id> ids, size_t first, size_t last) const {
    return std::ranges::any_of(ids,
                               [&](Graph::Id id) { return id != Graph::kNone && uses.is_written(id, first, last); });
  }
  // Another tensor of the same memory as `id`, with its rows as columns.
  Graph::Id add_turned(Graph::Id id) {
    Graph::TensorInfo turned = info(id);
    std::swap(turned.sizes[0], turned.sizes[1]);
    std::swap(turned.strides[0], turned.strides[1]);
    graph_.tensors.push_back(std::move(turned));
    return static_cast<Graph::Id>(graph_.tensors.size()) - 1;
  }
  Graph::Id add(const Graph::TensorInfo& info) { return graph_.add(info); }
  void replace(size_t i, std::vector<Graph::Call> calls) { instead_[i] = std::move(calls); }
  void remove(std::optional<size_t> i) {
    if (i) instead_[*i] = {};
  }
  // Where `id` was read `other` is, which holds the same then.
  void rename(Graph::Id id, Graph::Id other) {
    stands_for_[id] = other;
    share_memory(graph_, id, other);
  }

  void finish() {
    exchange_calls(graph_, std::move(instead_));
    graph_.rename(stands_for_);
  }

 private:
  Graph& graph_;
  std::map<size_t, std::vector<Graph::Call>> instead_;
  std::map<Graph::Id, Graph::Id> stands_for_;
};

Graph::Call call(const OpBase& op, std::vector<Graph::Argument> arguments, std::vector<Graph::Argument> results) {
  return {.op = &op, .name = std::string(op.name()), .arguments = std::move(arguments), .results = std::move(results)};
}

bool has_sizes_of(const Graph::TensorInfo& a, const Graph::TensorInfo& b) {
  return a.sizes == b.sizes && a.device == b.device;
}
bool is_number(const Value& value, int number) {
  return (value.is<int64_t>() && value.as<int64_t>() == number) || (value.is<double>() && value.as<double>() == number);
}
bool is_one(const Value& value) { return is_number(value, 1); }

// The one reader of a tensor, if it casts to a 16-bit dtype and changes nothing else.
std::optional<size_t> only_cast_to_16_bits(const Editor& editor, Graph::Id id) {
  const std::optional<size_t> reader = editor.uses.only_reader(id);
  const Graph::Call* const cast = editor.call_of(ops::_to_copy, reader);
  if (!cast) return std::nullopt;
  const Graph::TensorInfo &from = editor.info(id), &to = editor.info(cast->result());
  const bool is_cast = (to.dtype == kBFloat16 || to.dtype == kFloat16) && has_sizes_of(from, to) && to.is_contiguous();
  return is_cast ? reader : std::nullopt;
}

// The dropout in training that makes `id`, if nothing but call `reader` reads that, and none of the calls between them
// draws random numbers.
std::optional<size_t> dropout_before(const Editor& editor, Graph::Id id, size_t reader) {
  const std::optional<size_t> at = editor.uses.maker(id);
  const Graph::Call* const dropout = editor.call_of(ops::native_dropout, at);
  if (!dropout || editor.uses.only_reader(id) != reader || editor.is_written({dropout->argument(0)}, *at, reader))
    return std::nullopt;
  const Value& train = dropout->arguments[2].value;
  const double p = dropout->arguments[1].value.as<double>();
  if (!(train.is_none() || train.as<bool>()) || p <= 0 || p >= 1) return std::nullopt;
  for (size_t i = *at + 1; i < reader; ++i) {
    if (editor[i].is_random) return std::nullopt;
  }
  return at;
}

void replace_add_layer_norm(Editor& editor, size_t i) {
  const Graph::Call* const norm = editor.call_of(ops::native_layer_norm, i);
  if (!norm) return;
  const Graph::Id sum = norm->argument(0), y = norm->result();
  const std::optional<size_t> at = editor.uses.maker(sum);
  const Graph::Call* const add = editor.call_of(ops::add, at);
  if (!add || !is_one(add->arguments[2].value)) return;
  Graph::Id self = add->argument(0), other = add->argument(1);
  const Graph::TensorInfo& s = editor.info(sum);
  for (const size_t parameter : {2, 3}) {
    const Graph::Id id = norm->argument(parameter);
    if (s.device.is_accelerator() && id != Graph::kNone && element_size(editor.info(id).dtype) < 4) return;
  }
  if (editor.info(self).dtype != s.dtype) std::swap(self, other);
  if (editor.info(self).dtype != s.dtype || !has_sizes_of(editor.info(self), s) ||
      !has_sizes_of(editor.info(other), s) || !s.is_contiguous())
    return;
  std::optional<size_t> cast = only_cast_to_16_bits(editor, y);
  const ScalarType low = editor.info(other).dtype;
  if (cast && (s.dtype != kFloat32 || editor.info(editor[*cast].result()).dtype != low)) cast.reset();
  if (low != s.dtype && !cast) return;
  if (editor.is_written({sum, norm->argument(2), norm->argument(3)}, *at, i)) return;
  if (cast && editor.is_written({y}, i, *cast)) return;
  const Graph::Id output = cast ? editor[*cast].result() : y;
  const Graph::Argument output_dtype{cast ? Value(low) : Value(), {}};
  std::optional<size_t> dropout = dropout_before(editor, other, *at);
  if (!dropout && low == s.dtype && (dropout = dropout_before(editor, self, *at))) std::swap(self, other);
  Graph::Argument mask = tensor_argument(Graph::kNone), p{0.0, {}};
  if (dropout) {
    other = editor[*dropout].argument(0);
    mask = editor[*dropout].results[1];
    p = editor[*dropout].arguments[1];
  }
  Graph::Call both = call(ops::add_layer_norm,
                          {tensor_argument(self), tensor_argument(other), norm->arguments[1], norm->arguments[2],
                           norm->arguments[3], norm->arguments[4], p, output_dtype},
                          {tensor_argument(output), tensor_argument(sum), norm->results[1], norm->results[2], mask});
  both.is_random = dropout.has_value();
  editor.replace(*at, {std::move(both)});
  editor.remove(dropout);
  editor.remove(i);
  editor.remove(cast);
}

bool is_every_gradient_wanted(const Graph::Call& norm) {
  const Value& mask = norm.arguments.back().value;
  return mask.is<std::vector<bool>>() && !std::ranges::count(mask.as<std::vector<bool>>(), false);
}

// A reader of a tensor that casts it to this dtype.
std::optional<size_t> cast_of(const Editor& editor, Graph::Id id, ScalarType dtype) {
  for (const size_t reader : editor.uses.readers(id)) {
    const Graph::Call* const cast = editor.call_of(ops::_to_copy, reader);
    if (!cast) continue;
    const Graph::TensorInfo& to = editor.info(cast->result());
    if (to.dtype == dtype && has_sizes_of(to, editor.info(id)) && to.is_contiguous()) return reader;
  }
  return std::nullopt;
}

bool are_read_before(const Editor& editor, std::initializer_list<Graph::Id> ids, size_t call) {
  return std::ranges::any_of(ids, [&](Graph::Id id) {
    return id != Graph::kNone && !editor.uses.readers(id).empty() && editor.uses.readers(id)[0] < call;
  });
}

// The arguments and results of a layer norm's or an RMS norm's gradient; of the latter some are absent.
struct NormGradient {
  explicit NormGradient(const Graph::Call& call, bool is_layer_norm) : shape(call.arguments[2]) {
    if (is_layer_norm) {
      mean = call.arguments[3];
      bias = call.arguments[6];
      bias_gradient = call.results[2];
    }
    const size_t after_mean = is_layer_norm ? 4 : 3;
    rstd = call.arguments[after_mean];
    weight = call.arguments[after_mean + 1];
    weight_gradient = call.results[1];
  }

  Graph::Argument shape, rstd, weight, weight_gradient;
  Graph::Argument mean = tensor_argument(Graph::kNone), bias = mean, bias_gradient = mean;
};

// The gradient of a dropout that reads `gradient`, which alone must do so if it is told to.
std::optional<size_t> dropout_backward_of(const Editor& editor, Graph::Id gradient, bool is_alone) {
  if (is_alone && !editor.uses.only_reader(gradient)) return std::nullopt;
  for (const size_t reader : editor.uses.readers(gradient)) {
    const Graph::Call* const dropout = editor.call_of(ops::native_dropout_backward, reader);
    if (!dropout || dropout->argument(0) != gradient) continue;
    const Graph::TensorInfo &mask = editor.info(dropout->argument(1)), &to = editor.info(dropout->result());
    if (mask.dtype == kBool && has_sizes_of(mask, to) && has_sizes_of(editor.info(gradient), to) && to.is_contiguous())
      return reader;
  }
  return std::nullopt;
}

// The call that computes the gradients of linear's parameters from this gradient, or from a view of it.
std::optional<size_t> parameter_gradients_of(const Editor& editor, Graph::Id gradient) {
  for (const size_t reader : editor.uses.readers(gradient)) {
    const Graph::Call* const own = editor.call_of(ops::linear_parameter_gradients, reader);
    if (own && own->argument(0) == gradient) return reader;
    const Graph::Call* const view = editor.call_of(ops::view, reader);
    if (!view || editor.info(view->result()).sizes.back() != editor.info(gradient).sizes.back()) continue;
    if (const auto found = parameter_gradients_of(editor, view->result())) return found;
  }
  return std::nullopt;
}

// The call that computes linear's parameters' gradients, if there is one, is to compute the weight's alone: the bias's,
// which is returned, is made by call `i`.
Graph::Argument without_bias(Editor& editor, Graph::Id gradient, size_t i) {
  const std::optional<size_t> at = parameter_gradients_of(editor, gradient);
  if (!at || editor.is_written({gradient}, i, *at)) return tensor_argument(Graph::kNone);
  const Graph::Call& parameters = editor[*at];
  const Graph::Id rows = parameters.argument(0), columns = editor.add_turned(rows);
  const Graph::Argument bias = parameters.results[1];
  editor.replace(*at, {call(ops::t, {tensor_argument(rows)}, {tensor_argument(columns)}),
                       call(ops::mm, {tensor_argument(columns), parameters.arguments[1]}, {parameters.results[0]})});
  return bias;
}

// The gradient of a norm's input, and its sum with what comes past the norm.
void replace_add_layer_norm_backward(Editor& editor, size_t i) {
  const Graph::Call* const layer_norm = editor.call_of(ops::native_layer_norm_backward, i);
  const Graph::Call* const norm = layer_norm ? layer_norm : editor.call_of(ops::_fused_rms_norm_backward, i);
  if (!norm || !is_every_gradient_wanted(*norm)) return;
  const NormGradient parts(*norm, layer_norm);
  const Graph::Id through = norm->result(), input = norm->argument(1);
  const std::optional<size_t> at = editor.uses.only_reader(through);
  const Graph::Call* const add = editor.call_of(ops::add, at);
  if (!add || !is_one(add->arguments[2].value)) return;
  const Graph::Id first = add->argument(0), past = first == through ? add->argument(1) : first;
  const Graph::Id total = add->result();
  const Graph::TensorInfo& sum = editor.info(input);
  for (const Graph::Id each : {past, total, input}) {
    const Graph::TensorInfo& info = editor.info(each);
    if (each == through || info.dtype != sum.dtype || !has_sizes_of(info, sum) || !info.is_contiguous()) return;
  }
  if (are_read_before(editor, {parts.weight_gradient.id(), parts.bias_gradient.id()}, *at)) return;
  // Autocast's cast of the gradient that comes in, and that of the sum.
  Graph::Id gradient = norm->argument(0);
  const std::optional<size_t> maker = editor.uses.maker(gradient);
  const Graph::Call* const raise = editor.call_of(ops::_to_copy, maker);
  std::optional<size_t> lower;
  if (sum.dtype == kFloat32) {
    for (const ScalarType low : {kBFloat16, kFloat16}) {
      if (!lower) lower = cast_of(editor, total, low);
    }
  }
  if (lower && editor.is_written({total}, *at, *lower)) lower.reset();
  const bool is_raised = lower && raise && editor.uses.only_reader(gradient) == i &&
                         editor.info(raise->argument(0)).dtype == editor.info(editor[*lower].result()).dtype;
  if (is_raised) gradient = raise->argument(0);
  if (editor.is_written({gradient, input, parts.mean.id(), parts.rstd.id(), parts.weight.id(), parts.bias.id()},
                        is_raised ? *maker : i, *at))
    return;
  const Graph::Id lowered = lower ? editor[*lower].result() : total;
  // What goes to the other addend, whose dropout and bias come right after.
  const std::optional<size_t> dropout = dropout_backward_of(editor, lowered, lower.has_value());
  const Graph::Id by_other = dropout ? editor[*dropout].result() : lower ? lowered : Graph::kNone;
  Graph::Argument mask = tensor_argument(Graph::kNone), scale{1.0, {}}, bias_gradient = mask;
  if (dropout) {
    mask = editor[*dropout].arguments[1];
    scale = editor[*dropout].arguments[2];
  }
  const bool is_row = parts.shape.value.as<std::vector<int64_t>>().size() == 1;  // so long is the bias
  if (by_other != Graph::kNone && is_row) bias_gradient = without_bias(editor, by_other, *at);
  editor.replace(*at, {call(ops::add_layer_norm_backward,
                            {tensor_argument(gradient),
                             tensor_argument(past),
                             tensor_argument(input),
                             parts.shape,
                             parts.mean,
                             parts.rstd,
                             parts.weight,
                             parts.bias,
                             {editor.info(lowered).dtype, {}},
                             mask,
                             scale,
                             {bias_gradient.id() != Graph::kNone, {}}},
                            {tensor_argument(total), tensor_argument(by_other), parts.weight_gradient,
                             parts.bias_gradient, bias_gradient})});
  editor.remove(i);
  if (is_raised) editor.remove(maker);
  editor.remove(lower);
  editor.remove(dropout);
}

bool is_tanh(const Graph::Argument& approximate) {
  return approximate.value.is<std::string>() && approximate.value.as<std::string>() == "tanh";
}

void replace_linear_gelu(Editor& editor, size_t i) {
  const Graph::Call* const gelu = editor.call_of(ops::gelu, i);
  if (!gelu || !is_tanh(gelu->arguments[1])) return;
  const Graph::Id pre = gelu->argument(0), output = gelu->result();
  const std::optional<size_t> at = editor.uses.maker(pre);
  const Graph::Call* const linear = editor.call_of(ops::linear, at);
  if (!linear || !is_floating_point(editor.info(pre).dtype) || !editor.info(output).is_contiguous()) return;
  const Graph::Id weight = linear->argument(1), bias = linear->argument(2);
  if (bias == Graph::kNone || editor.info(weight).sizes.size() != 2 || editor.is_written({pre}, *at, i)) return;
  if (IntArrayRef(editor.info(bias).sizes) != IntArrayRef(editor.info(weight).sizes[0])) return;
  editor.replace(*at, {call(ops::linear_gelu, linear->arguments, {tensor_argument(output), tensor_argument(pre)})});
  editor.remove(i);
}

void replace_gelu_bias_backward(Editor& editor, size_t i) {
  const Graph::Call* const gelu = editor.call_of(ops::gelu_backward, i);
  if (!gelu || !is_tanh(gelu->arguments[2])) return;
  const Graph::Id before = gelu->argument(0), pre = gelu->argument(1), after = gelu->result();
  const Graph::TensorInfo& info = editor.info(before);
  if (info.dtype != editor.info(pre).dtype || !has_sizes_of(info, editor.info(pre)) || !info.is_contiguous() ||
      !editor.info(after).is_contiguous() || !editor.uses.is_free_after(before, i) ||
      editor.uses.is_seen_outside(after))
    return;
  const Graph::Argument bias = without_bias(editor, after, i);
  if (bias.id() == Graph::kNone) return;
  Graph::Call in_place = call(ops::gelu_bias_backward_, {tensor_argument(before), tensor_argument(pre)}, {bias});
  in_place.written = {before};
  editor.replace(i, {std::move(in_place)});
  editor.rename(after, before);
}

// Whether the memory of an image's pixel, or of a row, holds its channels next to each other.
bool is_rows_of_channels(const Graph::TensorInfo& info) {
  return info.sizes.size() >= 2 && info.strides[1] == 1 && is_non_overlapping_and_dense(info.sizes, info.strides);
}
bool is_same_layout(const Graph::TensorInfo& a, const Graph::TensorInfo& b) {
  return has_sizes_of(a, b) && a.strides == b.strides && a.dtype == b.dtype;
}

void replace_batch_norm_relu(Editor& editor, size_t i) {
  const Graph::Call* const relu = editor.call_of(ops::relu, i);
  if (!relu) return;
  // A norm that nobody but the ReLU reads, or the sum that nobody but the ReLU reads; and then what it is added to.
  const auto norm_before = [&](Graph::Id id, size_t reader) {
    const std::optional<size_t> at = editor.uses.maker(id);
    return editor.call_of(ops::native_batch_norm, at) && editor.uses.only_reader(id) == reader ? at : std::nullopt;
  };
  std::optional<size_t> at = norm_before(relu->argument(0), i);
  const std::optional<size_t> sum = editor.uses.maker(relu->argument(0));
  const Graph::Call* const add = editor.call_of(ops::add, sum);
  Graph::Id residual = Graph::kNone;
  if (add && is_one(add->arguments[2].value) && editor.uses.only_reader(add->result()) == i) {
    for (const size_t k : {0, 1}) {
      if (!at && (at = norm_before(add->argument(k), *sum))) residual = add->argument(1 - k);
    }
  }
  if (!at) return;
  const Graph::Call& norm = editor[*at];
  const Graph::Id input = norm.argument(0), output = relu->result();
  const Graph::TensorInfo& x = editor.info(input);
  if (!norm.arguments[5].value.as<bool>() || !is_rows_of_channels(x) || !is_same_layout(editor.info(output), x) ||
      (residual != Graph::kNone && !is_same_layout(editor.info(residual), x)))
    return;
  if (editor.is_written({input, norm.argument(1), norm.argument(2), norm.argument(3), norm.argument(4), residual}, *at,
                        i) ||
      are_read_before(editor, {norm.result(1), norm.result(2)}, i))
    return;
  Graph::Call both = call(ops::native_batch_norm_relu,
                          {norm.arguments[0], tensor_argument(residual), norm.arguments[1], norm.arguments[2],
                           norm.arguments[3], norm.arguments[4], norm.arguments[6], norm.arguments[7]},
                          {relu->results[0], norm.results[1], norm.results[2]});
  both.written = norm.written;
  editor.replace(i, {std::move(both)});
  editor.remove(at);
  if (residual != Graph::kNone) editor.remove(sum);
}

// The gradient through the ReLU, which the residual's is, too, and that of the norm.
void replace_batch_norm_relu_backward(Editor& editor, size_t i) {
  const Graph::Call* const norm = editor.call_of(ops::native_batch_norm_backward, i);
  if (!norm || !norm->arguments[7].value.as<bool>()) return;
  const Graph::Id gated = norm->argument(0), input = norm->argument(1), mean = norm->argument(5);
  const std::optional<size_t> at = editor.uses.maker(gated);
  const Graph::Call* const gate = editor.call_of(ops::threshold_backward, at);
  const Graph::Call* const forward = editor.call_of(ops::native_batch_norm_relu, editor.uses.maker(mean));
  if (!gate || !is_number(gate->arguments[2].value, 0) || !forward || gate->argument(1) != forward->result() ||
      input != forward->argument(0) || mean != forward->result(1))
    return;
  const bool has_residual = forward->argument(1) != Graph::kNone;
  if (!has_residual && editor.uses.only_reader(gated) != i) return;
  const Graph::Id gradient = gate->argument(0), output = gate->argument(1), bias = forward->argument(3);
  if (editor.is_written({gradient, gated, output, input, norm->argument(2), bias, mean, norm->argument(6)}, *at, i))
    return;
  const auto mask = norm->arguments[9].value.as<std::vector<bool>>();
  editor.replace(*at, {call(ops::native_batch_norm_relu_backward,
                            {gate->arguments[0],
                             gate->arguments[1],
                             norm->arguments[1],
                             {has_residual, {}},
                             norm->arguments[2],
                             forward->arguments[3],
                             norm->arguments[5],
                             norm->arguments[6],
                             {std::vector<bool>{mask[0], has_residual, mask[1], mask[2]}, {}},
                             tensor_argument(Graph::kNone)},
                            {norm->results[0], tensor_argument(has_residual ? gated : Graph::kNone), norm->results[1],
                             norm->results[2]})});
  editor.remove(i);
}

// A loss of rows that are long, whose gradient is that of the loss itself: 1 at first.
void replace_cross_entropy(Editor& editor, size_t i) {
  constexpr int64_t kFewestClasses = 64;  // the scores of fewer are small
  const Graph::Call* const loss = editor.call_of(ops::cross_entropy_forward, i);
  if (!loss) return;
  const Graph::Id scores = loss->argument(0), output = loss->result();
  const std::optional<size_t> at = editor.uses.only_reader(loss->result(1));
  const Graph::Call* const backward = editor.call_of(ops::cross_entropy_backward, at);
  if (!backward || backward->argument(1) != scores || backward->argument(7) != loss->result(1)) return;
  const std::optional<size_t> ones = editor.uses.maker(backward->argument(0));
  const Graph::Call* const first = editor.call_of(ops::ones_like, ones);
  const Graph::TensorInfo& x = editor.info(scores);
  const auto reduction = loss->arguments[3].value.as<int64_t>();
  if (!first || first->argument(0) != output || reduction == Reduction::None || loss->argument(2) != Graph::kNone ||
      !is_number(loss->arguments[5].value, 0) || x.sizes.size() != 2 || x.sizes[1] < kFewestClasses ||
      !x.is_contiguous() || editor.info(output).dtype != editor.info(loss->result(1)).dtype)
    return;
  const Graph::Id target = loss->argument(1), gradient = backward->result();
  if (editor.uses.is_seen_outside(gradient) || !editor.uses.is_free_after(scores, *at) ||
      editor.uses.is_read_between(scores, i, *at) || editor.is_written({scores, target}, i, *at))
    return;
  Graph::TensorInfo number = editor.info(output);
  std::vector<Graph::Call> calls;
  Graph::Id scale = Graph::kNone, sum = output;
  if (reduction == Reduction::Mean) {
    Graph::TensorInfo counts = editor.info(target);
    counts.dtype = kBool;
    counts.strides = contiguous_strides(counts.sizes);
    const Graph::Id is_counted = editor.add(counts), count = editor.add(number);
    scale = editor.add(number);
    sum = editor.add(number);
    calls = {call(ops::ne_Scalar, {tensor_argument(target), loss->arguments[4]}, {tensor_argument(is_counted)}),
             call(ops::sum, {tensor_argument(is_counted), {number.dtype, {}}}, {tensor_argument(count)}),
             call(ops::reciprocal, {tensor_argument(count)}, {tensor_argument(scale)}),
             call(ops::div, {tensor_argument(sum), tensor_argument(count)}, {tensor_argument(output)})};
  }
  Graph::Call both =
      call(ops::cross_entropy_gradient_,
           {tensor_argument(scores), tensor_argument(target), loss->arguments[4], tensor_argument(scale)},
           {tensor_argument(sum)});
  both.written = {scores};
  calls.insert(calls.empty() ? calls.end() : calls.end() - 1, std::move(both));
  editor.replace(i, std::move(calls));
  editor.remove(at);
  if (editor.uses.only_reader(first->result()) == at) editor.remove(ones);
  editor.rename(gradient, scores);
}

// ReLU of what a convolution makes, and the largest of its windows: of these ReLU, which are fewer.
void replace_relu_max_pool(Editor& editor, size_t i) {
  const Graph::Call* const relu = editor.call_of(ops::relu, i);
  if (!relu || !editor.call_of(ops::convolution, editor.uses.maker(relu->argument(0)))) return;
  const Graph::Id x = relu->argument(0), y = relu->result();
  const std::vector<size_t> readers = editor.uses.readers(y);
  const bool is_training = readers.size() == 3;  // the gradients of both
  if (editor.uses.is_seen_outside(y) || (readers.size() != 1 && !is_training)) return;
  const Graph::Call* const pool = editor.call_of(ops::max_pool2d_with_indices, readers[0]);
  if (!pool || editor.is_written({x, y}, i, readers.back())) return;
  const Graph::Id pooled = pool->result(), indices = pool->result(1), largest = editor.add(editor.info(pooled));
  // Where nothing is above 0 the indices differ.
  if (editor.uses.is_seen_outside(indices) || editor.uses.readers(indices).size() != (is_training ? 1 : 0)) return;
  if (is_training) {
    const Graph::Call* const spread = editor.call_of(ops::max_pool2d_with_indices_backward, readers[1]);
    const Graph::Call* const mask = editor.call_of(ops::threshold_backward, readers[2]);
    if (!spread || !mask || spread->argument(7) != indices || editor.uses.only_reader(spread->result()) != readers[2] ||
        mask->argument(0) != spread->result() || !is_number(mask->arguments[2].value, 0) ||
        editor.is_written({pooled, indices}, readers[0], readers[1]))
      return;
    const Graph::Id gradient = editor.add(editor.info(pooled));
    Graph::Call masked = *mask, spread_after = *spread;
    masked.arguments[0] = spread->arguments[0];
    masked.arguments[1] = tensor_argument(pooled);
    masked.results = {tensor_argument(gradient)};
    spread_after.arguments[0] = tensor_argument(gradient);
    spread_after.arguments[1] = tensor_argument(x);
    spread_after.results = mask->results;
    editor.replace(readers[1], {std::move(masked), std::move(spread_after)});
    editor.remove(readers[2]);
  }
  Graph::Call pool_before = *pool;
  pool_before.arguments[0] = tensor_argument(x);
  pool_before.results[0] = tensor_argument(largest);
  editor.replace(readers[0], {std::move(pool_before), call(ops::relu, {tensor_argument(largest)}, {pool->results[0]})});
  editor.remove(i);
}

}  // namespace

void replace_calls(Graph& graph) {
  for (const auto rule :
       {replace_add_layer_norm, replace_add_layer_norm_backward, replace_linear_gelu, replace_gelu_bias_backward,
        replace_batch_norm_relu, replace_batch_norm_relu_backward, replace_cross_entropy, replace_relu_max_pool}) {
    Editor editor(graph);
    for (size_t i = 0; i < editor.size(); ++i) rule(editor, i);
    editor.finish();
  }
}

}  // namespace rush::compiler
