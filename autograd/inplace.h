// In-place operators and views: keeping the graph right when memory that others look at is written.
#pragma once
#include "autograd/node.h"

namespace rush {

/// Throws Error when `tensor` may not be written in place while gradients are recorded: a leaf that requires a gradient
/// or a view of one, one of several views, a view made without recording. `op` names the operator.
void check_inplace(const Tensor& tensor, std::string_view op);
/// After an in-place operator wrote `tensor`: makes `node` its history, and its base's if it is a view.
void rebase_history(Tensor& tensor, const intrusive_ptr<Node>& node);
/// Brings the grad_fn of a view up to date when its base was written since.
void refresh_view(const Tensor& tensor);

// Note [In-place operators save a copy]
// The derivative of an in-place operator may need what it overwrites. Its node is given this alias of the target to
// save; if it did, `preserve_if_saved` gives the alias memory of its own, with a copy of the value, before the kernel
// runs.
Tensor alias_for_saving(const Tensor& target);
void preserve_if_saved(Tensor& alias);

}  // namespace rush
