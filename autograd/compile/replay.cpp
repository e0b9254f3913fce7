#include "autograd/compile/replay.h"

#include <algorithm>

#include "autograd/compile/trace_changes.h"
#include "core/dispatch/key.h"
#include "core/dispatch/value_tensors.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

constinit thread_local Replay* current = nullptr;

// A tensor of this kind for which there is no memory.
Tensor stand_in(const Graph::TensorInfo& info) {
  const int64_t elements = storage_extent(info.sizes, info.strides, info.storage_offset);
  const auto bytes = static_cast<size_t>(elements * element_size(info.dtype));
  const Storage none = make_intrusive<StorageImpl>(nullptr, bytes, info.device, nullptr, nullptr);
  auto impl = make_intrusive<TensorImpl>(none, info.dtype, info.device);
  impl->set_geometry(info.sizes, info.strides, info.storage_offset);
  return Tensor(std::move(impl));
}

// The one of a call's arguments that has this number; undefined where none has.
Tensor argument_of(Graph::Id id, const Graph::Call& call, const Stack& arguments) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const std::vector<Graph::Id>& ids = call.arguments[i].tensors;
    const auto at = std::ranges::find(ids, id);
    if (at != ids.end()) return tensors_of(arguments[i])[static_cast<size_t>(at - ids.begin())];
  }
  return {};
}

}  // namespace

CutTrace::CutTrace(const Graph& graph, std::vector<Graph::Call> called)
    : tensors(graph.tensors), calls(std::move(called)), outputs(graph.outputs) {
  for (const auto& [id, tensor] : graph.constants) {
    const bool is_gradient = std::ranges::count(graph.earlier_gradients, id, &Graph::Gradient::gradient) > 0;
    if (graph.info(id).is_wrapped_number) {
      numbers.emplace(id, tensor);
    } else if (!is_gradient) {
      taken.emplace(id, tensor);
    }
  }
}

bool CutTrace::is_same(const CutTrace& other) const {
  const auto same = [](const std::vector<Graph::Argument>& a, const std::vector<Graph::Argument>& b) {
    return std::ranges::equal(
        a, b, [](const auto& x, const auto& y) { return x.tensors == y.tensors && is_given_again(x.value, y.value); });
  };
  const auto same_call = [&](const Graph::Call& a, const Graph::Call& b) {
    return a.name == b.name && same(a.arguments, b.arguments) && same(a.results, b.results);
  };
  const auto same_number = [](const auto& a, const auto& b) {
    return a.first == b.first && is_given_again(a.second, b.second);
  };
  const auto same_taken = [](const auto& a, const auto& b) {
    return a.first == b.first && is_taken_again(a.second, b.second);
  };
  return outputs == other.outputs && std::ranges::equal(calls, other.calls, same_call) &&
         std::ranges::equal(numbers, other.numbers, same_number) && std::ranges::equal(taken, other.taken, same_taken);
}

Replay::Replay(const CutTrace& trace, const std::vector<Tensor>& outputs) : trace_(trace) {
  for (size_t i = 0; i < outputs.size(); ++i) made_.emplace(trace.outputs[i], outputs[i]);
}

bool Replay::is_running() { return current; }

std::vector<Tensor> Replay::run(const std::function<std::vector<Tensor>()>& function) {
  struct Current {
    explicit Current(Replay* replay) { current = replay; }
    ~Current() { current = nullptr; }
  } running(trace_.calls.empty() ? nullptr : this);
  const IncludeDispatchKeyGuard tracing(DispatchKey::Tracer);
  return function();
}

const Graph::Call& Replay::next(std::string_view name) {
  const Graph::Call& call = trace_.calls[next_++];
  RUSH_CHECK(call.name == name, "compile: the function called ", call.name, " as its call ", next_,
             " when it was traced, and calls ", name,
             " now: what it does before it reads a number must be the same at each call");
  if (next_ == trace_.calls.size()) current = nullptr;
  return call;
}

void Replay::check_numbers(const Graph::Call& call, const Stack& arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Graph::Argument& then = call.arguments[i];
    const auto number = trace_.numbers.find(then.id());
    const bool is_again = number == trace_.numbers.end()
                              ? !then.tensors.empty() || is_given_again(then.value, arguments[i])
                              : is_given_again(number->second, tensors_of(arguments[i]).front());
    RUSH_CHECK(is_again, "compile: the function gives ", call.name,
               " another number than when it was traced, as its argument ", i + 1,
               ": what it does before it reads a number must be the same at each call; a tensor may change");
  }
}

bool Replay::answer(const char* host_call) {
  if (!current) return false;
  current->next(host_call);
  return true;
}

bool Replay::answer(const OpBase& op, Stack& stack) {
  Replay* const replay = current;
  if (!replay) return false;
  const Graph::Call& call = replay->next(op.name());
  const Stack arguments = stack;
  replay->check_numbers(call, arguments);
  if (op.is_view()) {
    const DispatchStateGuard not_replayed{KeySet(DispatchKey::Tracer)};
    op.call_boxed(stack, DispatchKey::Tracer);
  } else {
    stack.assign(call.results.size(), Value());
  }
  for (size_t i = 0; i < stack.size(); ++i) stack[i] = replay->result(call.results[i], call, arguments, stack[i]);
  // Autograd tells from the version whether a tensor was written.
  for (const Graph::Id id : call.written) replay->tensor(id, call, arguments, {}).bump_version();
  return true;
}

Value Replay::result(const Graph::Argument& result, const Graph::Call& call, const Stack& arguments,
                     const Value& view) {
  std::vector<Tensor> tensors = tensors_of(view);
  tensors.resize(result.tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = tensor(result.tensors[i], call, arguments, tensors[i]);
  return with_tensors(result.value, std::move(tensors));
}

Tensor Replay::tensor(Graph::Id id, const Graph::Call& call, const Stack& arguments, const Tensor& view) {
  if (id == Graph::kNone) return {};
  const Tensor argument = argument_of(id, call, arguments);
  if (argument.defined() && std::ranges::find(call.written, id) != call.written.end()) return argument;
  // What is to autograd a view of what the program has, and not one of what the graph has.
  const auto made = made_.find(id);
  const Tensor& real = argument.defined() || made == made_.end() ? argument : made->second;
  if (view.defined() && (!real.defined() || view.is_alias_of(real))) {
    held_.push_back(view);
  } else {
    held_.push_back(real.defined() ? detail::make_alias(real) : stand_in(trace_.tensors[static_cast<size_t>(id)]));
  }
  return held_.back();
}

}  // namespace rush::compiler
