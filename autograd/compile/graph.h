// Graph: what a function did, as a list of operator calls on numbered tensors. The compiler's passes change it, and
// Program runs it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"
#include "core/tensor.h"

namespace rush {

class FusedLoop;

// Note [Graphs of calls]
// A graph has tensors, which are numbered, and calls, which are run one after another. A call is an operator and its
// arguments, as a stack of Values in which tensors have their numbers instead; operators that write in place and views
// are calls like any other, and `memory` tells which tensors share what they hold. So the order of calls is what
// counts, and a pass that changes it asks what each reads and writes.
//
// Tensors that no call makes are the graph's inputs, or constants: parameters, states, tables, numbers that the
// function took from elsewhere. They are held, and read and written where they lie.

/// The calls of a function, in their order: see Note [Graphs of calls].
class Graph {
 public:
  using Id = int32_t;  ///< of a tensor: its place in `tensors`
  static constexpr Id kNone = -1;

  /// A tensor, as it was when the graph was traced.
  struct TensorInfo {
    DimVector sizes, strides;
    int64_t storage_offset = 0;
    ScalarType dtype = kFloat32;
    Device device;
    bool is_wrapped_number = false;
    int32_t memory = 0;  ///< of the same number: they share a storage
    /// Where the program's own code goes on after the call that made it. Null if it is not known, as without
    /// RUSH_COMPILE_DEBUG.
    const void* made_before = nullptr;

    int64_t nbytes() const { return element_size(dtype) * checked_numel(sizes); }
    /// Row-major, without gaps.
    bool is_contiguous() const { return strides == contiguous_strides(sizes); }
    /// Whether the tensor has these sizes and strides.
    bool has_geometry_of(const Tensor& t) const {
      return t.sizes() == IntArrayRef(sizes) && t.strides() == IntArrayRef(strides);
    }
  };
  /// An argument or a result. Where it is a tensor, or a list of them, `tensors` has their numbers, kNone for an
  /// undefined one, and `value` one of its kind.
  struct Argument {
    Value value;
    std::vector<Id> tensors;

    Id id() const { return tensors.empty() ? kNone : tensors[0]; }  ///< of the tensor, or the list's first
  };
  /// One step of the graph.
  struct Call {
    const OpBase* op = nullptr;       ///< or
    std::function<void()> host = {};  ///< what the program does without operators, such as an optimiser's step; or
    std::shared_ptr<FusedLoop> fused = {};  ///< a loop that several operators were made into
    std::string name = {};                  ///< for print()
    std::vector<Argument> arguments = {}, results = {};
    std::vector<Id> written = {};  ///< arguments that the operator writes

    bool is_random = false;  ///< it advances the default generator

    Id argument(size_t i) const { return arguments[i].id(); }  ///< the tensor, as Argument::id
    Id result(size_t i = 0) const { return results[i].id(); }  ///< the same
    /// Reads and writes stands_for[id] in the place of each `id` that this has.
    void rename(const std::map<Id, Id>& stands_for);
    /// Whether leaving it out would be noticed if nobody read its results.
    bool has_effect() const { return !op || !written.empty() || is_random; }
  };
  struct Constant {
    Id id;
    Tensor tensor;
  };
  /// A leaf, and what its gradient is from then on: a tensor of the graph, or none.
  struct Gradient {
    Id leaf;
    Id gradient;
    bool operator==(const Gradient&) const = default;
  };

  /// The backward pass, where the function leaves it to its caller: the calls from `first_call` on.
  struct Backward {
    size_t first_call = 0;
    std::vector<Id> given;        ///< the gradients of the outputs; kNone where there is none
    std::vector<Gradient> found;  ///< those of inputs and constants
    std::vector<Id> saved = {};   ///< constants that autograd saved: nobody may write them before the backward pass
    bool operator==(const Backward&) const = default;
  };

  std::vector<TensorInfo> tensors;
  std::vector<Id> inputs;
  std::vector<Constant> constants;
  std::vector<Call> calls;
  std::vector<Gradient> gradients;  ///< set when all calls are done
  /// Gradients that leaves had before: constants that each run takes from the leaf.
  std::vector<Gradient> earlier_gradients;
  std::vector<Id> outputs;
  std::optional<Backward> backward;

  /// The tensor of a number.
  const TensorInfo& info(Id id) const { return tensors[static_cast<size_t>(id)]; }
  TensorInfo& info(Id id) { return tensors[static_cast<size_t>(id)]; }  ///< the same
  /// Adds a tensor that shares memory with no other. Returns its number.
  Id add(TensorInfo info);
  /// The tensors of these arguments, without kNone.
  static std::vector<Id> tensors_of(const std::vector<Argument>& arguments);
  /// Calls visit(id) for each of them.
  template <class Visit>
  static void for_each_tensor(const std::vector<Argument>& arguments, Visit&& visit) {
    for (const Id id : tensors_of(arguments)) visit(id);
  }
  /// The outputs and what becomes a gradient, without kNone: what is read when all calls are done.
  std::vector<Id> read_at_end() const;
  /// The same in all calls, in outputs and in gradients.
  void rename(const std::map<Id, Id>& stands_for);
  /// One line for each call, such as `%4: float32[8, 2] = aten::relu(%3)`; where the program's line is known, it ends
  /// with "  // train.cpp:41".
  std::string print() const;
  std::string line(const Call& call) const;  ///< of print()
  std::string describe(Id id) const;         ///< "%4: float32[8, 2]"
  /// The calls that compute one tensor from others in a directed graph, for GraphViz's dot.
  std::string dot() const;
};

/// Notes that what shares the memory of `id` shares that of `other`.
void share_memory(Graph& graph, Graph::Id id, Graph::Id other);
/// Leaves out the calls whose results nobody reads, and which write nothing.
void remove_dead_calls(Graph& graph);
/// Leaves out clones of tensors that nobody uses any more. Such as those of gradients: the backward pass gives a
/// gradient to a leaf as it is, unless it is seen elsewhere, and a trace sees all.
void remove_clones(Graph& graph);
/// Leaves out calls that an earlier one has made already: of the same operator, with the same arguments, which nobody
/// has written in between. Such as the casts of one tensor for each of several products.
void remove_common_calls(Graph& graph);

}  // namespace rush
