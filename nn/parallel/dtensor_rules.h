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
// A rule names the dimensions of an operator's tensors, as einsum does: mk,kn->mn. The same name stands for the same
// index, and the names say how a call can be split in a dimension of the mesh: tensors that have a certain index are
// sharded in it, and the others replicated. So are the results; where none has the index, as k, they are Partial. A
// dimension without a name must be whole, as that of a softmax.
//
// A function that is linear in some arguments also computes with summands: where these are Partial and the others
// replicated, its results are Partial.
//
// Of all ways to split a call, the one is taken for which the least has to be redistributed, for one dimension of the
// mesh after the other. On replicated tensors every operator computes, without a rule. On others it
// throws NotImplementedError, as in PyTorch: gathering them would be right, and hide that a program does not scale.

/// The tensors of a call with the sizes of the whole, and without values.
struct RuleCall {
  const Stack& stack;
  std::vector<Tensor> args, results;
};

using Names = std::vector<int64_t>;  // of each dimension
struct IndexNames {
  std::vector<Names> args, results;
};

// Where the call of a view takes the local sizes of its result: nowhere, as its second argument, or as that of a
// reshape, which is called in its place.
enum class SizeList : uint8_t { None, Second, Reshape };

struct Rule {
  const char* pattern = nullptr;                   // null where the operator is given replicated tensors
  IndexNames (*names)(const RuleCall&) = nullptr;  // in place of a pattern, where other arguments say which dimensions
  std::vector<std::vector<size_t>> linear = {};    // sets of arguments, in which it is linear together
  size_t addend = SIZE_MAX;                        // an argument that is added to a sum over an index, as a bias is
  SizeList sizes = SizeList::None;
};

/// Null where the operator has none.
const Rule* rule_of(const OpBase& op, const Stack& stack);

/// Computes an operator by others that have rules, and leaves the result on the stack. False for most.
bool compute_by_others(const OpBase& op, Stack& stack);

struct CallPlacements {
  std::vector<Placements> args, results;
};
/// The cheapest ones by the rule, the same on all processes, for arguments that are placed as `given`. None where a
/// first argument that `is_written` would have to be redistributed.
std::optional<CallPlacements> choose_placements(const Rule& rule, const RuleCall& call,
                                                const std::vector<Placements>& given,
                                                const distributed::DeviceMesh& mesh, bool is_written);

}  // namespace rush::nn::parallel::detail
