// The state of an optimiser as parts of tensors, for sharded checkpoints.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/checkpoint_folder.h"
#include "optim/optimizer.h"

namespace rush::optim {

// Note [States of split parameters]
// A checkpoint names the states after their parameters, not by numbers: "optimizer.state.head.weight.exp_avg". Numbers
// count the parameters of a process, and other processes have others, where layers or, as in ZeRO-1, states are shared
// out. A state of the shape of its parameter is split as that is; numbers (the step) are the same on all processes that
// have the parameter. So a state comes back on any mesh, and a ZeroRedundancyOptimizer's in a plain optimiser.
//
// The options of a group are those of the group's number, "optimizer.param_groups.0.lr", so programs have the same
// groups when they save and when they load, with the same or other parameters in them.

/// What save_parts is given for this process's states, from what it is given for its parameters: parts whose `local` is
/// the parameter, or shares its memory (as in a state dict). Parts of other tensors are ignored. The parts' values are
/// the optimiser's own. Throws ValueError for a parameter that no part has, and for a state of a split parameter that
/// has not the parameter's shape (Adafactor's rows and columns): how it is split is not known.
std::vector<distributed::TensorPart> state_parts(const Optimizer& optimizer,
                                                 const std::vector<distributed::TensorPart>& params,
                                                 const std::string& prefix = "optimizer.");

/// Has the optimiser, of the same kind and with as many groups, take its states and options from a checkpoint that has
/// the parts of state_parts. Only this process's are read. Throws as Optimizer::load_state_dict and load_parts; the
/// optimiser then is as it was.
void load_state_parts(const std::string& folder, Optimizer& optimizer,
                      const std::vector<distributed::TensorPart>& params, const std::string& prefix = "optimizer.");

}  // namespace rush::optim
