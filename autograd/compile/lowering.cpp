#include "autograd/compile/lowering.h"

#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "core/dispatch/value_tensors.h"
#include "core/error/error.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/reduce/extrema.h"

namespace rush::compiler {

namespace {

// A reduction of the rows of the iterator's input.
class ReductionCall final : public IteratorCall {
 public:
  explicit ReductionCall(const KernelListener::Reduction& kernel) : kernel_(kernel) {}
  void run(DeviceType device, TensorIterator& iterator) const override {
    const Tensor& input = iterator.operand(1).tensor;
    kernel_(device, iterator.operand(0).tensor, input, IntArrayRef(input.dim() - 1));
  }
  const char* kernel() const override { return kernel_.name(); }
  const void* kernel_address() const override { return &kernel_; }
  std::vector<std::optional<Scalar>> numbers() const override { return {}; }

 private:
  const KernelListener::Reduction& kernel_;
};

bool is_reduction(const KernelListener::Reduction& kernel) {
  constexpr const KernelListener::Reduction* kKnown[] = {&kernels::sum, &kernels::mean, &kernels::prod, &kernels::amax,
                                                         &kernels::amin};
  return std::ranges::find(kKnown, &kernel) != std::end(kKnown);
}

class Lowering final : public KernelListener {
 public:
  Lowering(const Graph& graph, const Graph::Call& call) : graph_(graph), call_(call) {}

  // Nothing when the call is something else than element-wise kernels and reductions.
  std::optional<std::vector<LoweredKernel>> run() {
    Stack stack;
    for (const Graph::Argument& argument : call_.arguments) {
      stack.push_back(on_meta(argument, graph_));
      const std::vector<Tensor> tensors = tensors_of(stack.back());
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].defined()) add(tensors[i], {argument.tensors[i], -1, tensors[i].scalar_type()});
      }
      is_known_ &= !argument.value.is<std::vector<std::optional<Tensor>>>();
    }
    const NoGradGuard no_grad;
    const DispatchStateGuard below(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast);
    dispatch_state.default_device = kMeta;  // of factories, which would run and draw random numbers elsewhere
    const IncludeDispatchKeyGuard hear_of_operators(DispatchKey::Tracer);
    struct Listening {
      explicit Listening(KernelListener* listener) { kernel_listener = listener; }
      ~Listening() { kernel_listener = nullptr; }
    };
    try {
      const Listening listening(this);
      call_.op->call_boxed(stack, DispatchKey::Tracer);
    } catch (const Error&) {
      return std::nullopt;  // it cannot do without values
    }
    if (!is_known_ || kernels_.empty() || !names_results(stack)) return std::nullopt;
    if (kernels_.back().operands[0].id == Graph::kNone) return std::nullopt;
    return std::move(kernels_);
  }

  void element_wise(const TensorIterator& iterator, std::unique_ptr<IteratorCall> call) override {
    LoweredKernel kernel{std::move(call), {}, iterator.output().sizes()};
    for (int i = 0; i < iterator.ntensors(); ++i) {
      const Tensor& tensor = iterator.operand(i).tensor;
      if (i == 0 && !places_.contains(tensor.impl()) && !is_view_of_known(tensor)) add_temporary(tensor);
      const auto place = places_.find(tensor.impl());
      if (place == places_.end()) {  // a view, or new memory that nothing was written to
        is_known_ = false;
        return;
      }
      kernel.operands.push_back(place->second);
    }
    kernels_.push_back(std::move(kernel));
  }
  void reduction(const Reduction& kernel, const Tensor& output, const Tensor& input, IntArrayRef dims) override {
    const auto place = places_.find(input.impl());
    const bool takes_all = dims.size() == static_cast<size_t>(input.dim());
    const bool is_over_rows = takes_all || (dims.size() == 1 && dims[0] == input.dim() - 1);
    if (!is_reduction(kernel) || !is_over_rows || !input.is_contiguous() || place == places_.end() ||
        places_.contains(output.impl())) {
      is_known_ = false;
      return;
    }
    const LoweredKernel::Operand from = place->second;
    const bool is_sum = !is_integral(from.dtype, true) && &kernel != &kernels::amax && &kernel != &kernels::amin;
    add_temporary(output);
    kernels_.push_back({std::make_shared<ReductionCall>(kernel),
                        {places_.at(output.impl()), from},
                        input.sizes(),
                        is_sum ? Reduces::InOrder : Reduces::InAnyOrder,
                        takes_all});
  }
  void other(const char* /*kernel*/) override { is_known_ = false; }

 private:
  bool is_view_of_known(const Tensor& tensor) const {
    return std::ranges::any_of(held_, [&](const Tensor& known) { return known.is_alias_of(tensor); });
  }
  void add(const Tensor& tensor, const LoweredKernel::Operand& operand) {
    places_.emplace(tensor.impl(), operand);
    held_.push_back(tensor);
  }
  void add_temporary(const Tensor& tensor) { add(tensor, {Graph::kNone, temporaries_++, tensor.scalar_type()}); }
  // The temporaries that are the call's results get their numbers.
  bool names_results(const Stack& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].is<Tensor>() || call_.results[i].tensors.size() != 1) return false;
      const auto place = places_.find(results[i].as<Tensor>().impl());
      if (place == places_.end()) return false;
      const Graph::Id id = call_.results[i].tensors[0];
      if (place->second.id == id) continue;  // written in place
      if (place->second.temporary < 0) return false;
      for (LoweredKernel& kernel : kernels_) {
        for (LoweredKernel::Operand& operand : kernel.operands) {
          if (operand.temporary == place->second.temporary) operand = {id, -1, operand.dtype};
        }
      }
    }
    return true;
  }

  const Graph& graph_;
  const Graph::Call& call_;
  std::map<const TensorImpl*, LoweredKernel::Operand> places_;
  std::vector<Tensor> held_;  // so that addresses stay their own
  std::vector<LoweredKernel> kernels_;
  int temporaries_ = 0;
  bool is_known_ = true;
};

}  // namespace

Value on_meta(const Graph::Argument& argument, const Graph& graph) {
  if (argument.value.is<Device>()) return Device(kMeta);
  std::vector<Tensor> tensors(argument.tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (argument.tensors[i] == Graph::kNone) continue;
    const Graph::TensorInfo& info = graph.info(argument.tensors[i]);
    tensors[i] = detail::empty_strided(info.sizes, info.strides, info.dtype, kMeta);
    tensors[i].impl()->set_wrapped_number(info.is_wrapped_number);
  }
  return with_tensors(argument.value, std::move(tensors));
}

std::optional<std::vector<LoweredKernel>> lowered_kernels(const Graph& graph, const Graph::Call& call) {
  if (!call.op || call.op->is_view()) return std::nullopt;
  return Lowering(graph, call).run();
}

}  // namespace rush::compiler
