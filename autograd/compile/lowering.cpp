#include "autograd/compile/lowering.h"

#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "core/error/error.h"
#include "core/iterator/tensor_iterator.h"

namespace rush::compiler {

namespace {

class Lowering final : public KernelListener {
 public:
  Lowering(const Graph& graph, const Graph::Call& call) : graph_(graph), call_(call) {}

  // False when the call is something else than element-wise kernels.
  bool run() {
    Stack stack;
    for (const Graph::Argument& argument : call_.arguments) {
      stack.push_back(on_meta(argument, graph_, [&](Graph::Id id, const Tensor& tensor) {
        places_.emplace(tensor.impl(), ElementWise::Operand{id, -1, tensor.scalar_type()});
        held_.push_back(tensor);
      }));
      is_element_wise_ &= !argument.value.is<std::vector<std::optional<Tensor>>>();
    }
    const NoGradGuard no_grad;
    const DispatchStateGuard below(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast);
    const IncludeDispatchKeyGuard hear_of_operators(DispatchKey::Tracer);
    struct Listening {
      explicit Listening(KernelListener* listener) { kernel_listener = listener; }
      ~Listening() { kernel_listener = nullptr; }
    };
    try {
      const Listening listening(this);
      call_.op->call_boxed(stack, DispatchKey::Tracer);
    } catch (const Error&) {
      return false;  // it cannot do without values
    }
    return is_element_wise_ && !kernels_.empty() && names_results(stack) &&
           kernels_.back().operands[0].id != Graph::kNone;
  }
  std::vector<ElementWise> take() { return std::move(kernels_); }

  void element_wise(const TensorIterator& iterator, std::unique_ptr<IteratorCall> call) override {
    ElementWise kernel{std::move(call), {}};
    for (int i = 0; i < iterator.ntensors(); ++i) {
      const Tensor& tensor = iterator.operand(i).tensor;
      if (i == 0 && !places_.contains(tensor.impl()) && !is_view_of_known(tensor)) add_temporary(tensor);
      const auto place = places_.find(tensor.impl());
      if (place == places_.end()) {  // a view, or new memory that nothing was written to
        is_element_wise_ = false;
        return;
      }
      kernel.operands.push_back(place->second);
    }
    const Tensor& output = iterator.operand(0).tensor;
    is_element_wise_ &= sizes_.empty() || output.sizes() == IntArrayRef(sizes_.front());
    sizes_.push_back(output.sizes());
    kernels_.push_back(std::move(kernel));
  }
  void other(const char* /*kernel*/) override { is_element_wise_ = false; }

 private:
  bool is_view_of_known(const Tensor& tensor) const {
    return std::ranges::any_of(held_, [&](const Tensor& known) { return known.is_alias_of(tensor); });
  }
  void add_temporary(const Tensor& tensor) {
    places_.emplace(tensor.impl(), ElementWise::Operand{Graph::kNone, temporaries_++, tensor.scalar_type()});
    held_.push_back(tensor);
  }
  // The temporaries that are the call's results get their numbers.
  bool names_results(const Stack& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].is<Tensor>() || call_.results[i].tensors.size() != 1) return false;
      const auto place = places_.find(results[i].as<Tensor>().impl());
      if (place == places_.end()) return false;
      const Graph::Id id = call_.results[i].tensors[0];
      if (place->second.id == id) continue;  // written in place
      if (place->second.temporary < 0) return false;
      for (ElementWise& kernel : kernels_) {
        for (ElementWise::Operand& operand : kernel.operands) {
          if (operand.temporary == place->second.temporary) operand = {id, -1, operand.dtype};
        }
      }
    }
    return true;
  }

  const Graph& graph_;
  const Graph::Call& call_;
  std::map<const TensorImpl*, ElementWise::Operand> places_;
  std::vector<Tensor> held_;  // so that addresses stay their own
  std::vector<DimVector> sizes_;
  std::vector<ElementWise> kernels_;
  int temporaries_ = 0;
  bool is_element_wise_ = true;
};

}  // namespace

Value on_meta(const Graph::Argument& argument, const Graph& graph,
              const std::function<void(Graph::Id, const Tensor&)>& made) {
  const auto one = [&](Graph::Id id) {
    if (id == Graph::kNone) return Tensor();
    const Graph::TensorInfo& info = graph.tensors[static_cast<size_t>(id)];
    const Tensor tensor = detail::empty_strided(info.sizes, info.strides, info.dtype, kMeta);
    tensor.impl()->set_wrapped_number(info.is_wrapped_number);
    if (made) made(id, tensor);
    return tensor;
  };
  if (argument.value.is<Device>()) return Device(kMeta);
  if (argument.value.is<Tensor>()) return one(argument.tensors[0]);
  if (!argument.value.is<std::vector<Tensor>>()) return argument.value;
  std::vector<Tensor> list;
  for (const Graph::Id id : argument.tensors) list.push_back(one(id));
  return list;
}

std::optional<std::vector<ElementWise>> element_wise_kernels(const Graph& graph, const Graph::Call& call) {
  if (!call.op || call.op->is_view()) return std::nullopt;
  Lowering lowering(graph, call);
  if (!lowering.run()) return std::nullopt;
  return lowering.take();
}

}  // namespace rush::compiler
