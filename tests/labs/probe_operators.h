// What the exercises of lab 4 call: operators whose kernels write down that they ran.
#pragma once
#include <string>

#include "core/dispatch/op.h"
#include "core/ops/factory/factories.h"

namespace rush::labs {

// The kernels and fallbacks that ran: "Autograd", "the fallback of Free1, given [Free1, Dense, cpu]".
extern std::string stopped_at;

// With kernels for Dense, Autograd and Free2.
inline constinit Op<Tensor(const Tensor&, const Tensor&)> two{"lab::two(Tensor a, Tensor b) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&)> maybe{
    "lab::maybe(Tensor a, Tensor b, Tensor? c) -> Tensor"};
inline constinit Op<Tensor(TensorList, int64_t)> list{"lab::list(Tensor[] tensors, int dim) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&)> write_{"lab::write_(Tensor(a!) self, Tensor b) -> Tensor(a!)"};
// With one for Dense, which passes by the fallback of Free1.
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> passing{
    "lab::passing(Tensor a, Tensor b, Scalar c) -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS)> make{"lab::make(SymInt[] size, " RUSH_FACTORY_SCHEMA
                                                                 ") -> Tensor"};

// Also gives Free1 and Free2 fallbacks.
void register_probe_operators();

// The functions of op_call.h, as they are compiled with the operators.
template <class T>
KeySet keys_of_argument(const T& argument);
template <class T>
KeySet key_of_device(const T& argument);

}  // namespace rush::labs
