// Factories of random tensors.
#pragma once
#include "core/ops/factory/factories.h"
#include "core/ops/random/random.h"

namespace rush {

#define RUSH_LIKE_FACTORY_SCHEMA RUSH_FACTORY_SCHEMA ", MemoryFormat? memory_format=None"
#define RUSH_INTEGER_FACTORY_SCHEMA \
  "ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define RUSH_LIKE_FACTORY_ARGS RUSH_FACTORY_ARGS, std::optional<MemoryFormat>

namespace ops {
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS)> rand{"aten::rand(SymInt[] size, *, " RUSH_FACTORY_SCHEMA
                                                                 ") -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, const OptionalGenerator&, RUSH_FACTORY_ARGS)> rand_generator{
    "aten::rand.generator(SymInt[] size, *, Generator? generator, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS)> randn{"aten::randn(SymInt[] size, *, " RUSH_FACTORY_SCHEMA
                                                                  ") -> Tensor"};
inline constinit Op<Tensor(IntArrayRef, const OptionalGenerator&, RUSH_FACTORY_ARGS)> randn_generator{
    "aten::randn.generator(SymInt[] size, *, Generator? generator, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, IntArrayRef, RUSH_FACTORY_ARGS)> randint{
    "aten::randint(SymInt high, SymInt[] size, *, " RUSH_INTEGER_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, IntArrayRef, const OptionalGenerator&, RUSH_FACTORY_ARGS)> randint_generator{
    "aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, " RUSH_INTEGER_FACTORY_SCHEMA
    ") -> Tensor"};
inline constinit Op<Tensor(int64_t, int64_t, IntArrayRef, RUSH_FACTORY_ARGS)> randint_low{
    "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, " RUSH_INTEGER_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, int64_t, IntArrayRef, const OptionalGenerator&, RUSH_FACTORY_ARGS)>
    randint_low_generator{
        "aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? "
        "generator, " RUSH_INTEGER_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, RUSH_FACTORY_ARGS)> randperm{
    "aten::randperm(SymInt n, *, " RUSH_INTEGER_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(int64_t, const OptionalGenerator&, RUSH_FACTORY_ARGS)> randperm_generator{
    "aten::randperm.generator(SymInt n, *, Generator? generator, " RUSH_INTEGER_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, RUSH_LIKE_FACTORY_ARGS)> rand_like{
    "aten::rand_like(Tensor self, *, " RUSH_LIKE_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, RUSH_LIKE_FACTORY_ARGS)> randn_like{
    "aten::randn_like(Tensor self, *, " RUSH_LIKE_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, RUSH_LIKE_FACTORY_ARGS)> randint_like{
    "aten::randint_like(Tensor self, SymInt high, *, " RUSH_LIKE_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, RUSH_LIKE_FACTORY_ARGS)> randint_like_low_dtype{
    "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " RUSH_LIKE_FACTORY_SCHEMA ") -> Tensor"};
inline constinit Op<Tensor(double, double, IntArrayRef, const OptionalGenerator&, RUSH_FACTORY_ARGS)>
    normal_float_float{
        "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
        "generator=None, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
}  // namespace ops

/// Uniform in [0, 1).
Tensor rand(IntArrayRef size, const TensorOptions& options = {});
Tensor rand(IntArrayRef size, const OptionalGenerator& generator, const TensorOptions& options = {});
/// Normal with mean 0 and standard deviation 1; complex numbers have variance 1 altogether.
Tensor randn(IntArrayRef size, const TensorOptions& options = {});
Tensor randn(IntArrayRef size, const OptionalGenerator& generator, const TensorOptions& options = {});
/// Integers in [0, high), or [low, high); int64 unless the options say otherwise.
Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& options = {});
Tensor randint(int64_t high, IntArrayRef size, const OptionalGenerator& generator, const TensorOptions& options = {});
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const TensorOptions& options = {});
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const OptionalGenerator& generator,
               const TensorOptions& options = {});
/// The integers 0, ..., n - 1 in random order; int64 unless the options say otherwise.
Tensor randperm(int64_t n, const TensorOptions& options = {});
Tensor randperm(int64_t n, const OptionalGenerator& generator, const TensorOptions& options = {});
/// These have self's sizes, dtype and device unless the options say otherwise.
Tensor rand_like(const Tensor& self, const TensorOptions& options = {});
Tensor randn_like(const Tensor& self, const TensorOptions& options = {});
Tensor randint_like(const Tensor& self, int64_t high, const TensorOptions& options = {});
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const TensorOptions& options = {});
/// Normal numbers of one mean and standard deviation.
Tensor normal(double mean, double std, IntArrayRef size, const OptionalGenerator& generator = std::nullopt,
              const TensorOptions& options = {});

namespace kernels {
// out (int64, row-major) = the numbers 0, ..., n - 1 in the order of the 64-bit words that the Note gives to them.
inline constinit Kernel<void(const Tensor& out, const PhiloxState& reserved)> randperm{"randperm"};
}  // namespace kernels

}  // namespace rush
