// Factories of numbers in order: arange, linspace, logspace, and the identity matrix.
#pragma once
#include "core/ops/factory/factories.h"

namespace rush {

using ArangeOp = Op<Tensor(const Scalar&, const Scalar&, RUSH_FACTORY_ARGS)>;

namespace ops {
inline constinit Op<Tensor(const Scalar&, RUSH_FACTORY_ARGS)> arange{"aten::arange(Scalar end, *, " RUSH_FACTORY_SCHEMA
                                                                     ") -> Tensor"};
inline constinit ArangeOp arange_start{"aten::arange.start(Scalar start, Scalar end, *, " RUSH_FACTORY_SCHEMA
                                       ") -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Scalar&, const Scalar&, RUSH_FACTORY_ARGS)> arange_start_step{
    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};

inline constinit Op<Tensor(const Scalar&, const Scalar&, int64_t, RUSH_FACTORY_ARGS)> linspace{
    "aten::linspace(Scalar start, Scalar end, int steps, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, RUSH_FACTORY_ARGS)> linspace_Tensor_Tensor{
    "aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, int64_t, RUSH_FACTORY_ARGS)> linspace_Tensor_Scalar{
    "aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&, int64_t, RUSH_FACTORY_ARGS)> linspace_Scalar_Tensor{
    "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};

inline constinit Op<Tensor(const Scalar&, const Scalar&, int64_t, double, RUSH_FACTORY_ARGS)> logspace{
    "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, double, RUSH_FACTORY_ARGS)> logspace_Tensor_Tensor{
    "aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, " RUSH_FACTORY_SCHEMA
    ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, int64_t, double, RUSH_FACTORY_ARGS)> logspace_Tensor_Scalar{
    "aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, " RUSH_FACTORY_SCHEMA
    ") -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&, int64_t, double, RUSH_FACTORY_ARGS)> logspace_Scalar_Tensor{
    "aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, " RUSH_FACTORY_SCHEMA
    ") -> Tensor"};

inline constinit Op<Tensor(int64_t, RUSH_FACTORY_ARGS)> eye{"aten::eye(SymInt n, *, " RUSH_FACTORY_SCHEMA
                                                            ") -> Tensor"};
inline constinit Op<Tensor(int64_t, int64_t, RUSH_FACTORY_ARGS)> eye_m{
    "aten::eye.m(SymInt n, SymInt m, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
}  // namespace ops

/// start, start + step, ... before `end`: int64 when all are integers, otherwise the default dtype, unless the options
/// say otherwise. Throws ValueError when the step is zero or leads away from `end`.
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
/// `steps` numbers from `start` to `end`, both included, at equal distances.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options = {});
/// base ^ x for the x of linspace.
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10.0,
                const TensorOptions& options = {});
/// The (n, m) matrix with ones on its diagonal; square when m is left out.
Tensor eye(int64_t n, const TensorOptions& options = {});
Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});

namespace kernels {
// out[i] = start + i * step, over a one-dimensional contiguous tensor.
inline constinit Kernel<void(const Tensor& out, const Scalar& start, const Scalar& step)> arange{"arange"};
inline constinit Kernel<void(const Tensor& out, const Scalar& start, const Scalar& end)> linspace{"linspace"};
inline constinit Kernel<void(const Tensor& out, const Scalar& start, const Scalar& end, double base)> logspace{
    "logspace"};
}  // namespace kernels

}  // namespace rush
