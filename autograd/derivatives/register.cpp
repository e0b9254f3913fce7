#include "autograd/derivatives/register.h"

#include "autograd/compile/tracer.h"
#include "autograd/node.h"
#include "core/profiler/record.h"

namespace rush {

void register_autograd(Registry& r) {
  r.fallback(DispatchKey::Tracer, compiler::Tracer::trace_call);
  profiler::sequence_nr_of = [](const Tensor& tensor) {
    const intrusive_ptr<Node> node = tensor.grad_fn();
    return node ? static_cast<int64_t>(node->sequence_nr()) : int64_t{-1};
  };
#define RUSH_CALL(function) function(r);
  RUSH_FORALL_DERIVATIVE_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush
