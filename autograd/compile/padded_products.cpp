// Makes up products to sizes that tensor cores take, and leaves their results in padded rows: Note [Padded rows].
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/compile/passes.h"
#include "autograd/compile/traced_part.h"
#include "autograd/compile/uses.h"
#include "core/ops/basic.h"
#include "core/ops/nn/fused.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/loss.h"
#include "core/ops/view/join.h"

namespace rush::compiler {

namespace {

// A call of linear, and those that read its result.
class PaddedLinear {
 public:
  PaddedLinear(Graph& graph, size_t at) : graph_(graph), uses_(graph), at_(at) {}

  // Whether calls on padded rows are in the place of these, the graph's outputs among their readers only if they may.
  bool pad(bool pads_outputs) {
    if (!is_worth_it() || !find_readers(pads_outputs)) return false;
    const Graph::TensorInfo result = info(result_), weight = info(weight_);
    padded_result_ = graph_.add(widened(result, result.sizes.size() - 1));
    padded_weight_ = graph_.add(widened(weight, 0));
    for (const Graph::Id id : rows_) {
      for (int64_t& stride : info(id).strides) stride = stride == 1 ? 1 : stride / columns_ * whole_;
      share_memory(graph_, id, padded_result_);
    }
    pad_forward();
    for (const size_t reader : products_) pad_product(reader);
    for (const size_t reader : parameter_gradients_) pad_parameter_gradients(reader);
    for (const size_t reader : weight_gradients_) pad_weight_gradient(reader);
    exchange_calls(graph_, std::move(instead_));
    return true;
  }

 private:
  static constexpr int64_t kFewest = 256, kFewestColumns = 64, kFewestProducts = int64_t{1} << 27;

  Graph::TensorInfo& info(Graph::Id id) { return graph_.info(id); }
  const Graph::Call& linear() const { return graph_.calls[at_]; }

  bool is_worth_it() {
    result_ = linear().result();
    weight_ = linear().argument(1);
    const Graph::TensorInfo &result = info(result_), &weight = info(weight_);
    const Graph::Id bias = linear().argument(2);
    if (bias != Graph::kNone && IntArrayRef(info(bias).sizes) != IntArrayRef(weight.sizes[0])) return false;
    if (element_size(result.dtype) != 2 || weight.sizes.size() != 2 || result.sizes.size() < 2) return false;
    if (!result.is_contiguous() || !weight.is_contiguous()) return false;
    columns_ = result.sizes.back();
    whole_ = (columns_ + 7) / 8 * 8;
    lines_ = checked_numel(IntArrayRef(result.sizes).slice(0, result.sizes.size() - 1));
    const int64_t depth = weight.sizes[1];
    return whole_ != columns_ && columns_ >= kFewestColumns && std::min(lines_, depth) >= kFewest &&
           lines_ * columns_ * depth >= kFewestProducts;
  }

  // What has the result's rows, and who reads them. False where a reader asks for rows next to each other.
  bool find_readers(bool pads_outputs) {
    rows_ = {result_};
    size_t last = at_;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Graph::Id id = rows_[i];
      if (uses_.is_seen_outside(id) && !(pads_outputs && id == result_)) return false;
      for (const size_t reader : uses_.readers(id)) {
        const Graph::Call& call = graph_.calls[reader];
        last = std::max(last, reader);
        if (call.op == &ops::view && info(call.result()).sizes.back() == columns_) {
          rows_.push_back(call.result());
        } else if (call.op == &ops::mm && call.argument(0) == id && call.argument(1) == weight_) {
          products_.push_back(reader);
        } else if (call.op == &ops::linear_parameter_gradients && call.argument(0) == id) {
          parameter_gradients_.push_back(reader);
        } else if (!takes_turned(reader) && (call.op != &ops::cross_entropy_gradient_ || call.argument(0) != id)) {
          return false;
        }
      }
    }
    return !uses_.is_written(weight_, at_, last) &&
           std::ranges::none_of(rows_, [&](Graph::Id id) { return info(id).sizes.size() < 2; });
  }

  // Whether the call turns rows to columns for products alone, which give the gradient of a weight without a bias.
  bool takes_turned(size_t reader) {
    const Graph::Call& turn = graph_.calls[reader];
    if ((turn.op != &ops::transpose && turn.op != &ops::t) || info(turn.result()).sizes[0] != columns_ ||
        uses_.is_seen_outside(turn.result()))
      return false;
    const std::vector<size_t>& products = uses_.readers(turn.result());
    if (!std::ranges::all_of(products, [&](size_t i) {
          const Graph::Call& product = graph_.calls[i];
          return product.op == &ops::mm && product.argument(0) == turn.result() && product.argument(1) != turn.result();
        }))
      return false;
    instead_[reader] = {};
    weight_gradients_.insert(weight_gradients_.end(), products.begin(), products.end());
    return true;
  }

  Graph::TensorInfo widened(Graph::TensorInfo tensor, size_t dim) const {
    tensor.sizes[dim] = whole_;
    tensor.strides = contiguous_strides(tensor.sizes);
    return tensor;
  }

  // With zeros for what is beyond the weight's rows, which the loss's gradient does not write: so that they add nothing
  // to the products that follow.
  void pad_forward() {
    std::vector<Graph::Id> inputs = {linear().argument(0), weight_};
    if (linear().argument(2) != Graph::kNone) inputs.push_back(linear().argument(2));
    const auto widen = [&](const Tensor& t) {
      DimVector sizes = t.sizes();
      sizes[0] = whole_ - columns_;
      return cat({t, zeros(sizes, t.options())});
    };
    instead_[at_] = traced_calls(graph_, inputs, {result_, padded_result_, padded_weight_},
                                 [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                                   const Tensor weight = widen(in[1]);
                                   const Tensor wide = rush::linear(
                                       in[0], weight, in.size() > 2 ? OptionalTensor(widen(in[2])) : std::nullopt);
                                   return {wide.narrow(-1, 0, columns_), wide, weight};
                                 });
  }
  void pad_product(size_t reader) {
    instead_[reader] = traced_calls(graph_, {padded_result_, padded_weight_}, {graph_.calls[reader].result()},
                                    [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                                      return {in[0].view({lines_, whole_}).mm(in[1])};
                                    });
  }
  void pad_parameter_gradients(size_t reader) {
    const Graph::Call& call = graph_.calls[reader];
    instead_[reader] =
        traced_calls(graph_, {padded_result_, call.argument(1)}, {call.result(0), call.result(1)},
                     [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                       const auto [weight, bias] = ops::linear_parameter_gradients(in[0].view({lines_, whole_}), in[1]);
                       return {weight.narrow(0, 0, columns_), bias.narrow(0, 0, columns_)};
                     });
  }
  void pad_weight_gradient(size_t reader) {
    const Graph::Call& call = graph_.calls[reader];
    instead_[reader] = traced_calls(graph_, {padded_result_, call.argument(1)}, {call.result()},
                                    [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                                      return {in[0].view({lines_, whole_}).t().mm(in[1]).narrow(0, 0, columns_)};
                                    });
  }

  Graph& graph_;
  const Uses uses_;
  const size_t at_;
  Graph::Id result_ = Graph::kNone, weight_ = Graph::kNone, padded_result_ = Graph::kNone,
            padded_weight_ = Graph::kNone;
  int64_t lines_ = 0, columns_ = 0, whole_ = 0;  // of the result; the columns with what they are made up by
  std::vector<Graph::Id> rows_;
  std::vector<size_t> products_, parameter_gradients_, weight_gradients_;
  std::map<size_t, std::vector<Graph::Call>> instead_;
};

}  // namespace

void pad_products(Graph& graph, bool pads_outputs) {
  for (size_t i = graph.calls.size(); i-- > 0;) {
    if (graph.calls[i].op == &ops::linear) PaddedLinear(graph, i).pad(pads_outputs);
  }
}

}  // namespace rush::compiler
