#include "autograd/compile/program.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/compile/fused_loop.h"
#include "autograd/compile/recorded_calls.h"
#include "autograd/compile/result_check.h"
#include "core/dispatch/value_tensors.h"
#include "core/error/error.h"
#include "core/ops/nn/norm.h"
#include "core/profiler/record.h"
#include "core/threads/parallel.h"

namespace rush::compiler {

Program::Program(Graph graph, std::optional<Graph> unfused)
    : graph_(std::move(graph)), last_used_(graph_.calls.size()), tensors_(graph_.tensors.size()) {
  for (const auto& [id, tensor] : graph_.constants) set(id, tensor);
  for (const auto& [leaf, gradient] : graph_.gradients) {
    if (!at(gradient).defined() && !may_be_read_by_host(leaf)) gets_gradient_.push_back(leaf);
  }
  find_last_uses();
  for (size_t i = 0; i < graph_.calls.size(); ++i) {
    const auto& loop = graph_.calls[i].fused;
    reuses_.push_back(loop ? loop->reuses(last_used_[i]) : FusedLoop::Reuses());
  }
  prepare_loops();
  if (unfused) check_ = std::make_unique<ResultCheck>(std::move(*unfused));
}
Program::~Program() = default;

// Whether the gradient that a leaf had before is there at the first host call, as at an optimiser's step that is
// compiled without its backward pass.
bool Program::may_be_read_by_host(Graph::Id leaf) const {
  const auto host = std::ranges::find_if(graph_.calls, [](const Graph::Call& call) { return bool{call.host}; });
  if (host == graph_.calls.end()) return false;
  return std::ranges::none_of(host->arguments,
                              [&](const Graph::Argument& each) { return each.tensors.front() == leaf; });
}

void Program::find_last_uses() {
  const std::vector<Graph::Id> ends = graph_.read_at_end();
  std::unordered_set<Graph::Id> needed(ends.begin(), ends.end());
  for (const Graph::Constant& constant : graph_.constants) needed.insert(constant.id);
  for (const Graph::Gradient& each : graph_.gradients) needed.insert(each.leaf);
  for (size_t i = graph_.calls.size(); i-- > 0;) {
    for (const auto* used : {&graph_.calls[i].arguments, &graph_.calls[i].results}) {
      std::ranges::copy_if(Graph::tensors_of(*used), std::back_inserter(last_used_[i]),
                           [&](Graph::Id id) { return needed.insert(id).second; });
    }
  }
}

// Whether the gradient behind a residual block's ReLU may be written over that ReLU's output, as this call is the last
// that reads it. Like a loop's results, on accelerators: the most memory of a ResNet is in use there.
bool Program::gates_in_place(size_t i) const {
  const Graph::Call& call = graph_.calls[i];
  if (call.op != &ops::native_batch_norm_relu_backward || !call.arguments[3].value.as<bool>()) return false;
  const Graph::Id output = call.argument(1);
  return output != call.argument(0) && !graph_.info(output).device.is_cpu() &&
         std::ranges::find(last_used_[i], output) != last_used_[i].end();
}

void Program::prepare_loops() {
  std::vector<FusedLoop*> loops;
  for (const Graph::Call& call : graph_.calls) {
    if (call.fused) loops.push_back(call.fused.get());
  }
  parallel_for(0, static_cast<int64_t>(loops.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) loops[static_cast<size_t>(i)]->prepare();
  });
}

Program::Scope::Scope(Program& program, const std::vector<Tensor>& inputs)
    : program_(program), below_(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast) {
  for (size_t i = 0; i < inputs.size(); ++i) program.set(program.graph_.inputs[i], inputs[i]);
  for (const auto& [leaf, gradient] : program.graph_.earlier_gradients) program.set(gradient, program.at(leaf).grad());
}
Program::Scope::~Scope() {
  for (Tensor& tensor : program_.tensors_) tensor.reset();
  for (const auto& [id, tensor] : program_.graph_.constants) program_.set(id, tensor);
  program_.stack_.clear();
}

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs) {
  const Scope scope(*this, inputs);
  for (const Graph::Id leaf : gets_gradient_) at(leaf).mutable_grad().reset();
  if (check_) {
    check_->run_calls(*this, inputs);
  } else if (recorded_) {
    recorded_->run();
  } else {
    run_calls(0, graph_.calls.size());
  }
  for (const auto& [leaf, gradient] : graph_.gradients) set_gradient(leaf, gradient);
  std::vector<Tensor> outputs;
  for (const Graph::Id output : graph_.outputs) outputs.push_back(at(output));
  return recorded_ ? recorded_->as_returned(std::move(outputs)) : outputs;
}

void Program::run_calls(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const Graph::Call& call = graph_.calls[i];
    if (call.fused) {
      const record_function range(call.name);
      call.fused->run(tensors_, reuses_[i]);
    } else {
      run_call(call, gates_in_place(i));
    }
    for (const Graph::Id id : last_used_[i]) tensors_[static_cast<size_t>(id)].reset();
  }
}

void Program::go_back_to(const std::vector<Tensor>& tensors) {
  tensors_ = tensors;
  stack_.clear();
}

void Program::record_calls(const ProgramEnds& ends, size_t fewest_kernels, std::shared_ptr<size_t> places) {
  recorded_ = std::make_unique<RecordedCalls>(*this, ends, fewest_kernels, std::move(places));
}

bool Program::is_recorded() const { return recorded_ && recorded_->is_recorded(); }

void Program::set_gradient(Graph::Id leaf, Graph::Id gradient) { at(leaf).mutable_grad() = at(gradient); }

void Program::run_call(const Graph::Call& call, bool gates_in_place) {
  if (call.fused) return call.fused->run(tensors_);
  if (call.host) {
    for (const Graph::Argument& each : call.arguments) set_gradient(each.tensors[0], each.tensors[1]);
    return call.host();
  }
  const bool reuses = gates_in_place && owns_all_of_its_memory(tensors_[static_cast<size_t>(call.argument(1))]);
  for (const Graph::Argument& argument : call.arguments) push(argument);
  if (reuses) stack_.back() = at(call.argument(1));
  call.op->call_boxed(stack_);
  for (size_t i = 0; i < call.results.size(); ++i) take(call.results[i], stack_[i]);
  stack_.clear();
}

void Program::push(const Graph::Argument& argument) {
  if (argument.value.is<Tensor>()) {
    stack_.emplace_back(at(argument.tensors[0]));
  } else {
    std::vector<Tensor> list;
    for (const Graph::Id id : argument.tensors) list.push_back(at(id));
    stack_.push_back(with_tensors(argument.value, std::move(list)));
  }
}

void Program::take(const Graph::Argument& result, Value& value) {
  const auto keep = [&](Graph::Id id, const Tensor& tensor) {
    if (id != Graph::kNone) set(id, tensor);
  };
  if (result.value.is<Tensor>()) return keep(result.tensors[0], value.is_none() ? Tensor() : value.as<Tensor>());
  if (!result.value.is<std::vector<Tensor>>()) return;  // a number, which is the same each time
  const auto& list = value.as<std::vector<Tensor>>();
  RUSH_CHECK(list.size() == result.tensors.size(), "a call of a graph gave ", list.size(), " tensors instead of ",
             result.tensors.size());
  for (size_t i = 0; i < list.size(); ++i) keep(result.tensors[i], list[i]);
}

}  // namespace rush::compiler
