// The rules by which operators compute on DTensors.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"
#include "nn/parallel/dtensor.h"

namespace rush::nn::parallel::detail {

// Note [Rules of operators]
// A rule names the dimensions of an operator's tensors by numbers, as einsum does by letters: in a product of matrices
// (m, k) and (k, n) -> (m, n), the same number stands for the same index. From the names follows how the call can be
// split in one dimension of the mesh. All tensors that have an index are sharded in it and the others are replicated;
// so are the results, and where none has it, they are Partial, as a sum over k is. 0 names a dimension that cannot be
// split: that of a softmax, one that is broadcast or sliced.
//
// A linear function also computes with summands: with `linear` arguments that are Partial, and replicated others, its
// results are Partial.
//
// Of all ways in which a call can be split, the one is taken for which the arguments cost the least bytes to
// redistribute, one dimension of the mesh after the other. On replicated arguments every operator computes, without a
// rule; on others it throws NotImplementedError, as in PyTorch: to gather them unasked would be right, and would hide
// that a program does not scale.

/// A call as a rule sees it: its tensors have no values, and the sizes of the whole.
struct RuleCall {
  const Stack& stack;
  const std::vector<Tensor>& args;
  const std::vector<Tensor>& results;
};

using Indices = std::vector<int64_t>;  // the name of each dimension, or 0
struct IndexNames {
  std::vector<Indices> args, results;
  size_t addend = SIZE_MAX;  // an argument that is added once to a sum over an index: Partial beside sharded others
};

struct Rule {
  IndexNames (*names)(const RuleCall&) = nullptr;  // null: the operator needs whole tensors, and gets them
  std::vector<std::vector<size_t>> linear = {};    // sets of arguments in which it is linear together
  size_t size_list = 0;                            // where the stack has the sizes of the result, for some views
};

/// The rule of an operator; null where it has none.
const Rule* rule_of(const OpBase& op, const Stack& stack);

/// Computes the operator by others, which have rules, and puts the result on the stack. False where it has rules.
bool compute_by_others(const OpBase& op, Stack& stack);

/// How the arguments and the results of a call are placed.
struct CallPlacements {
  std::vector<Placements> args, results;
};

/// The cheapest placements by the rule, the same on all processes; none where there are no possible ones. `given` are
/// those of the arguments, of which some have to stay: `fixed`.
std::optional<CallPlacements> choose_placements(const Rule& rule, const RuleCall& call,
                                                const std::vector<Placements>& given, const std::vector<bool>& fixed,
                                                const distributed::DeviceMesh& mesh);

}  // namespace rush::nn::parallel::detail
