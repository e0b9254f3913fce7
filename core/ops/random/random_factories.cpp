#include "core/ops/random/random_factories.h"

#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

namespace {

using G = OptionalGenerator;

Tensor new_tensor(IntArrayRef size, MaybeDtype dtype, MaybeDevice device, ScalarType otherwise) {
  return detail::empty_contiguous(size, dtype.value_or(otherwise), device.value_or(get_default_device()));
}

Tensor rand_generator(IntArrayRef size, const G& g, MaybeDtype dtype, MaybeLayout, MaybeDevice device, MaybePin) {
  Tensor out = new_tensor(size, dtype, device, get_default_dtype());
  return native::uniform_(out, 0, 1, g);
}

Tensor normal_float_float(double mean, double std, IntArrayRef size, const G& g, MaybeDtype dtype, MaybeLayout,
                          MaybeDevice device, MaybePin) {
  Tensor out = new_tensor(size, dtype, device, get_default_dtype());
  return native::normal_(out, mean, std, g);
}
Tensor randn_generator(IntArrayRef size, const G& g, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                       MaybePin pin) {
  return normal_float_float(0, 1, size, g, dtype, layout, device, pin);
}

Tensor randint_low_generator(int64_t low, int64_t high, IntArrayRef size, const G& g, MaybeDtype dtype, MaybeLayout,
                             MaybeDevice device, MaybePin) {
  Tensor out = new_tensor(size, dtype, device, kInt64);
  return native::random__from(out, low, high, g);
}
Tensor randint_low(int64_t low, int64_t high, IntArrayRef size, MaybeDtype dtype, MaybeLayout layout,
                   MaybeDevice device, MaybePin pin) {
  return randint_low_generator(low, high, size, {}, dtype, layout, device, pin);
}
Tensor randint_generator(int64_t high, IntArrayRef size, const G& g, MaybeDtype dtype, MaybeLayout layout,
                         MaybeDevice device, MaybePin pin) {
  return randint_low_generator(0, high, size, g, dtype, layout, device, pin);
}
Tensor randint(int64_t high, IntArrayRef size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin) {
  return randint_low_generator(0, high, size, {}, dtype, layout, device, pin);
}

// The largest n for which every number below it has its own value in `dtype`.
int64_t most_numbers(ScalarType dtype) {
  switch (dtype) {
    case kUInt8: return 256;
    case kInt8: return 128;
    case kInt16: return 32768;
    case kInt32: return int64_t{1} << 31;
    case kFloat16: return (1 << 11) + 1;
    case kBFloat16: return (1 << 8) + 1;
    case kFloat32: return (1 << 24) + 1;
    case kFloat64: return (int64_t{1} << 53) + 1;
    default: return std::numeric_limits<int64_t>::max();
  }
}

Tensor randperm_generator(int64_t n, const G& g, MaybeDtype dtype, MaybeLayout, MaybeDevice device, MaybePin) {
  const ScalarType type = dtype.value_or(kInt64);
  RUSH_CHECK_TYPE(type != kBool && !is_complex(type), "randperm: expected a dtype of numbers, got ", type);
  RUSH_CHECK_VALUE(n >= 0, "randperm: expected a number that is not negative, got ", n);
  RUSH_CHECK_VALUE(n <= most_numbers(type), "randperm: ", type, " cannot hold the numbers below ", n);
  const Tensor out = new_tensor(n, kInt64, device, kInt64);
  if (Mt19937GeneratorImpl* twister = mt19937_of(g, out.device())) {
    kernels::mt19937::randperm(kCPU, out, twister);
  } else if (n > 0) {
    kernels::randperm(out.device().type, out, reserve_words(g, out.device(), "randperm"));
  }
  return type == kInt64 ? out : to_dtype(out, type);
}
// With the default generator.
template <auto& factory, class Size>
Tensor by_default(Size size, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin) {
  return factory(size, {}, dtype, layout, device, pin);
}

// Uniform between 0 and 1, or normal of mean 0 and deviation 1.
template <auto& fill>
Tensor standard_like(const Tensor& self, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin,
                     MaybeFormat format) {
  Tensor out = ops::empty_like(self, dtype, layout, device, pin, format);
  return fill(out, 0, 1, {});
}
Tensor randint_like_low_dtype(const Tensor& self, int64_t low, int64_t high, MaybeDtype dtype, MaybeLayout layout,
                              MaybeDevice device, MaybePin pin, MaybeFormat format) {
  Tensor out = ops::empty_like(self, dtype, layout, device, pin, format);
  return native::random__from(out, low, high, {});
}
Tensor randint_like(const Tensor& self, int64_t high, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                    MaybePin pin, MaybeFormat format) {
  return randint_like_low_dtype(self, 0, high, dtype, layout, device, pin, format);
}

}  // namespace

}  // namespace native

void register_random_factory_ops(Registry& r) {
  r.native(ops::rand, native::by_default<native::rand_generator>);
  r.native(ops::rand_generator, native::rand_generator);
  r.native(ops::randn, native::by_default<native::randn_generator>);
  r.native(ops::randn_generator, native::randn_generator);
  r.native(ops::randint, native::randint);
  r.native(ops::randint_generator, native::randint_generator);
  r.native(ops::randint_low, native::randint_low);
  r.native(ops::randint_low_generator, native::randint_low_generator);
  r.native(ops::randperm, native::by_default<native::randperm_generator>);
  r.native(ops::randperm_generator, native::randperm_generator);
  r.native(ops::rand_like, native::standard_like<native::uniform_>);
  r.native(ops::randn_like, native::standard_like<native::normal_>);
  r.native(ops::randint_like, native::randint_like);
  r.native(ops::randint_like_low_dtype, native::randint_like_low_dtype);
  r.native(ops::normal_float_float, native::normal_float_float);
}

using detail::call_factory, detail::call_format_factory;
using G = OptionalGenerator;
using Options = TensorOptions;

Tensor rand(IntArrayRef size, const Options& o) { return rand(size, std::nullopt, o); }
Tensor rand(IntArrayRef size, const G& g, const Options& o) { return call_factory(ops::rand_generator, o, size, g); }
Tensor randn(IntArrayRef size, const Options& o) { return randn(size, std::nullopt, o); }
Tensor randn(IntArrayRef size, const G& g, const Options& o) { return call_factory(ops::randn_generator, o, size, g); }
Tensor randint(int64_t high, IntArrayRef size, const Options& o) { return randint(0, high, size, std::nullopt, o); }
Tensor randint(int64_t high, IntArrayRef size, const G& g, const Options& o) { return randint(0, high, size, g, o); }
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const Options& o) {
  return randint(low, high, size, std::nullopt, o);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const G& g, const Options& o) {
  return call_factory(ops::randint_low_generator, o, low, high, size, g);
}
Tensor randperm(int64_t n, const Options& o) { return randperm(n, std::nullopt, o); }
Tensor randperm(int64_t n, const G& g, const Options& o) { return call_factory(ops::randperm_generator, o, n, g); }
Tensor rand_like(const Tensor& self, const Options& o) { return call_format_factory(ops::rand_like, o, self); }
Tensor randn_like(const Tensor& self, const Options& o) { return call_format_factory(ops::randn_like, o, self); }
Tensor randint_like(const Tensor& self, int64_t high, const Options& o) { return randint_like(self, 0, high, o); }
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const Options& o) {
  return call_format_factory(ops::randint_like_low_dtype, o, self, low, high);
}
Tensor normal(double mean, double std, IntArrayRef size, const G& g, const Options& o) {
  return call_factory(ops::normal_float_float, o, mean, std, size, g);
}

}  // namespace rush
