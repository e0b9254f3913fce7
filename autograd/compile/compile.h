// compile: a function that is traced once and then runs without the host's part of it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "autograd/compile/graph.h"

namespace rush {

/// How rush::compile makes what it runs.
struct CompileOptions {
  /// The function does the same whatever the sizes of its inputs are: Note [Graphs for many sizes].
  bool dynamic = false;
  bool fuse = true;           ///< neighbouring element-wise calls and reductions of rows become one loop,
  size_t fewest_kernels = 2;  ///< of so many kernels at least
  /// The share of memory that a run's own tensors may take, of what they take when nothing is computed twice. Below 1
  /// some are let go in the forward pass and computed again in the backward pass: Note [Rematerialisation]. The
  /// numbers stay the same; 0 is the least memory. torch._functorch.config.activation_memory_budget.
  double memory_budget = 1;
  /// The rows of a result may begin at multiples of 16 bytes, with a gap between them, on accelerators: such as the
  /// scores of a vocabulary of 30,522, which are copied together otherwise. torch.compile's results may, too.
  bool pads_outputs = false;
  bool record = true;          ///< after a few runs an accelerator is given the calls as one, Note [Recorded calls],
  size_t fewest_recorded = 4;  ///< of so many kernels at least
  /// Each run is compared with the calls before they were fused; so it is in a program under RUSH_COMPILE_CHECK=1.
  bool check = false;
};

/// A compiled function gave something else than its operators do one by one: see CompileOptions::check.
class DifferenceError : public Error {
 public:
  using Error::Error;
};

namespace compiler {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A hash of what the program has set that a graph cannot see, such as which modules Module::eval was called for. A
/// graph is used where it is what it was at the trace; after a call of train and one of eval it is that again.
inline std::atomic<uint64_t> unseen_state = 0;
/// How often that was changed.
inline std::atomic<uint64_t> unseen_changes = 0;
/// Changes it to what it never was.
inline void change_unseen_state() { unseen_state += 0x9E3779B97F4A7C15 * ++unseen_changes; }

/// The graphs of one function: one for each kind of inputs and each state of the thread that it was called with.
class CompiledFunction {
 public:
  explicit CompiledFunction(const CompileOptions& options);
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&&) noexcept;
  CompiledFunction& operator=(CompiledFunction&&) noexcept;

  /// As Compiled's call; the function of one object is always the same.
  std::vector<Tensor> call(const Function& function, const std::vector<Tensor>& inputs);
  size_t compilations() const;                  ///< as Compiled's
  const Graph& graph(size_t i) const;           ///< as Compiled's
  const Graph* backward_graph(size_t i) const;  ///< as Compiled's
  const std::string& obstacle() const;          ///< as Compiled's
  size_t recorded() const;                      ///< as Compiled's

 private:
  struct State;

  std::unique_ptr<State> state_;
};

// Results of a function as a list, and back.
inline std::vector<Tensor> to_list(Tensor result) { return {std::move(result)}; }
inline std::vector<Tensor> to_list(std::vector<Tensor> results) { return results; }
template <class... Ts>
std::vector<Tensor> to_list(const std::tuple<Ts...>& results) {
  return std::apply([](const Ts&... each) { return std::vector<Tensor>{each...}; }, results);
}
/// A function's result, a tensor, a tuple or a vector of them, from a list.
template <class R>
R from_list(std::vector<Tensor> list) {
  if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
    return list;
  } else if constexpr (std::is_same_v<R, Tensor>) {
    return std::move(list[0]);
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) { return R{std::move(list[I])...}; }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  }
}

}  // namespace compiler

// Note [Compiled functions]
// A function of tensors, such as a training step, does the same operators at each call; what differs is the numbers in
// the tensors. `compile` notes them once (Note [Tracing]), makes fewer and larger ones of them, and from then on runs
// those: without the function's own C++, without autograd, and with neighbouring element-wise operators in one loop.
//
//   auto step = rush::compile([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     Tensor loss = cross_entropy(net(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//   for (const auto& batch : *loader) step(batch.data, batch.target);
//
// The first calls run the function as it stands, and are steps of the training like any other: the first is traced to
// learn which leaves get gradients, the second to be kept. The results are those of the function, bit for bit, apart
// from Note [Replacements].
//   - A graph belongs to the dtypes, devices, sizes and strides of the inputs, and of what else it uses, to which
//     leaves have a gradient or require one, and to grad mode and autocast; with others the function is traced again,
//     and so it is after Module::train and eval.
//   - Tensors that the function does not get as inputs are constants: it reads and writes those of the trace. Other
//     things that it takes from the program, numbers among them, are what they were when it was traced.
//   - What the function does besides operators on tensors happens in the first calls only; an optimiser's step() is
//     noted as what it is, and done at each call, with the rates that its options have then.
//   - Where it reads a number from a tensor (item()), or keeps a tensor that it makes and does not return, it is cut:
//     Note [Functions that are cut]. A warning tells where, and so does obstacle().
//   - A function that runs a backward pass returns tensors without a history. What another one returns can be
//     differentiated: Note [The backward pass of a compiled function].

/// A function, and the graphs that stand in its place: see Note [Compiled functions].
template <class F>
class Compiled {
 public:
  explicit Compiled(F function, const CompileOptions& options = {})
      : function_(std::move(function)), compiled_(options) {}

  /// Calls the function, or runs a graph in its place. Throws what the function throws. Not by several threads at once.
  template <class... Inputs>
  requires(std::is_convertible_v<const Inputs&, const Tensor&>&&...) auto operator()(const Inputs&... inputs) {
    using Result = std::decay_t<std::invoke_result_t<F&, const Inputs&...>>;
    return call<Result>({static_cast<const Tensor&>(inputs)...}, std::index_sequence_for<Inputs...>());
  }
  /// How often a graph was made of a trace. Of inputs that differ in sizes alone twice, see Note [Graphs for many
  /// sizes].
  size_t compilations() const { return compiled_.compilations(); }
  /// The graph that was compiled i-th. Throws IndexError.
  const Graph& graph(size_t i = 0) const { return compiled_.graph(i); }
  /// The graph of its backward pass; null where the function runs that itself, or there is none.
  const Graph* backward_graph(size_t i = 0) const { return compiled_.backward_graph(i); }
  /// Why the function, or what comes after a cut in it, runs as it stands, in English; empty when it does not.
  const std::string& obstacle() const { return compiled_.obstacle(); }
  /// How many graphs, with their backward passes, an accelerator takes as one call now: Note [Recorded calls].
  size_t recorded() const { return compiled_.recorded(); }

 private:
  template <class Result, size_t... I>
  Result call(const std::vector<Tensor>& inputs, std::index_sequence<I...>) {
    const auto run = [this](const std::vector<Tensor>& own) -> std::vector<Tensor> {
      if constexpr (std::is_void_v<Result>) {
        function_(own[I]...);
        return {};
      } else {
        return compiler::to_list(function_(own[I]...));
      }
    };
    if constexpr (std::is_void_v<Result>) {
      compiled_.call(run, inputs);
    } else {
      return compiler::from_list<Result>(compiled_.call(run, inputs));
    }
  }

  F function_;
  compiler::CompiledFunction compiled_;
};

/// Has `function` traced and compiled when it is called: see Note [Compiled functions]. It takes tensors, and returns a
/// tensor, a tuple or a vector of tensors, or nothing. torch.compile.
template <class F>
Compiled<F> compile(F function, const CompileOptions& options = {}) {
  return Compiled<F>(std::move(function), options);
}

}  // namespace rush
