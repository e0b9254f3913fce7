#include "core/ops/random/random.h"

#include <cmath>
#include <limits>

#include "core/device/mt19937.h"
#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/index/index.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

PhiloxState reserve_words(const OptionalGenerator& generator, Device device, const char* op) {
  constexpr uint64_t kOneBlock = 4;
  if (device.is_meta()) return {0, 0};
  if (!generator || !generator->defined()) return default_generator(device).reserve(kOneBlock);
  RUSH_CHECK_VALUE(generator->device().type == device.type, op, ": the generator is on ", generator->device(),
                   ", the tensor on ", device);
  return generator->reserve(kOneBlock);
}

Mt19937GeneratorImpl* mt19937_of(const OptionalGenerator& generator, Device device) {
  if (!device.is_cpu()) return nullptr;
  const Generator& chosen = generator && generator->defined() ? *generator : default_generator(device);
  return chosen.mt19937();
}

// Calls kernel(row-major tensor, args..., words) for `self`, or for a tensor that is then copied to it; `libtorch` in
// its place where the generator is libtorch's, for any dense tensor. Everything is checked.
template <auto& kernel, auto& libtorch, class... Args>
static Tensor& fill(Tensor& self, const OptionalGenerator& generator, Args... args) {
  check_writable(self, kernel.name());
  if (self.numel() == 0) return self;
  const DeviceType type = self.device().type;
  Mt19937GeneratorImpl* twister = mt19937_of(generator, self.device());
  const bool direct = twister ? self.is_non_overlapping_and_dense() : self.is_contiguous();
  const Tensor out = direct ? self : detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  if (twister) {
    libtorch(type, out, args..., twister);
  } else {
    kernel(type, out, args..., reserve_words(generator, self.device(), kernel.name()));
  }
  return direct ? self : copy_(self, out, false);
}

static void check_floating(const Tensor& self, const char* op) {
  RUSH_CHECK_TYPE(self.is_floating_point(), op, ": expected a floating point tensor, got ", self.scalar_type());
}

static double largest(ScalarType dtype) {
  switch (dtype) {
    case kFloat16: return 65504;
    case kBFloat16: return std::numeric_limits<BFloat16>::max();
    case kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

Tensor& uniform_(Tensor& self, double from, double to, const OptionalGenerator& generator) {
  if (self.is_complex()) {
    Tensor parts = ops::view_as_real(self);
    uniform_(parts, from, to, generator);
    return self;
  }
  check_floating(self, "uniform_");
  const double bound = largest(self.scalar_type());
  RUSH_CHECK_VALUE(from >= -bound && from <= to && to <= bound && to - from <= bound,
                   "uniform_ expects to return a [from, to) range, but found from=", from, " and to=", to, " for ",
                   self.scalar_type());
  return fill<kernels::uniform, kernels::mt19937::uniform>(self, generator, from, to);
}

static void check_deviation(double std, const char* op) {
  RUSH_CHECK_VALUE(std >= 0, op, " expects std >= 0.0, but found std ", std);
}

Tensor& normal_(Tensor& self, double mean, double std, const OptionalGenerator& generator) {
  check_deviation(std, "normal_");
  if (self.is_complex()) {
    // Half of the variance each; PyTorch gives the mean to both parts.
    Tensor parts = ops::view_as_real(self);
    normal_(parts, mean, std / std::sqrt(2.0), generator);
    return self;
  }
  check_floating(self, "normal_");
  return fill<kernels::normal, kernels::mt19937::normal>(self, generator, mean, std);
}

static Tensor& log_normal_(Tensor& self, double mean, double std, const OptionalGenerator& generator) {
  check_floating(self, "log_normal_");
  RUSH_CHECK_VALUE(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  return fill<kernels::log_normal, kernels::mt19937::log_normal>(self, generator, mean, std);
}

static Tensor& cauchy_(Tensor& self, double median, double sigma, const OptionalGenerator& generator) {
  check_floating(self, "cauchy_");
  RUSH_CHECK_VALUE(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return fill<kernels::cauchy, kernels::mt19937::cauchy>(self, generator, median, sigma);
}

static Tensor& exponential_(Tensor& self, double lambda, const OptionalGenerator& generator) {
  check_floating(self, "exponential_");
  RUSH_CHECK_VALUE(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  return fill<kernels::exponential, kernels::mt19937::exponential>(self, generator, lambda);
}

static Tensor& geometric_(Tensor& self, double p, const OptionalGenerator& generator) {
  RUSH_CHECK_TYPE(!self.is_complex() && self.scalar_type() != kBool, "geometric_: expected numbers, got ",
                  self.scalar_type());
  RUSH_CHECK_VALUE(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return fill<kernels::geometric, kernels::mt19937::geometric>(self, generator, p);
}

// ---- integers ----

// The smallest and the largest integer that random_ draws: those that the dtype holds, every one between included.
struct IntegerBounds {
  int64_t lowest, highest;
};

static IntegerBounds bounds_of(ScalarType dtype) {
  switch (dtype) {
    case kBool: return {0, 1};
    case kUInt8: return {0, 255};
    case kInt8: return {-128, 127};
    case kInt16: return {-32768, 32767};
    case kInt32: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case kFloat16: return {-(1 << 11), 1 << 11};
    case kBFloat16: return {-(1 << 8), 1 << 8};
    case kFloat32: return {-(1 << 24), 1 << 24};
    case kFloat64: return {-(int64_t{1} << 53), int64_t{1} << 53};
    default: return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

static void check_integers(const Tensor& self) {
  RUSH_CHECK_TYPE(!self.is_complex(), "random_: a tensor of ", self.scalar_type(), " cannot hold random integers");
}

static Tensor& random_(Tensor& self, const OptionalGenerator& generator) {
  check_integers(self);
  const auto range = static_cast<uint64_t>(bounds_of(self.scalar_type()).highest) + 1;
  return fill<kernels::random, kernels::mt19937::random>(self, generator, int64_t{0}, range);
}

Tensor& random__from(Tensor& self, int64_t from, std::optional<int64_t> to, const OptionalGenerator& generator) {
  check_integers(self);
  const IntegerBounds bounds = bounds_of(self.scalar_type());
  RUSH_CHECK_VALUE(to ? from < *to : from <= bounds.highest,
                   "random_ expects 'from' to be less than 'to', but got from=", from,
                   " >= to=", to.value_or(bounds.highest));
  const int64_t last = to ? *to - 1 : bounds.highest;
  RUSH_CHECK_VALUE(from >= bounds.lowest && last <= bounds.highest, "random_: [", from, ", ", last,
                   "] is outside what ", self.scalar_type(), " holds exactly, [", bounds.lowest, ", ", bounds.highest,
                   "]");
  const uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;  // 0 stands for 2^64
  return fill<kernels::random, kernels::mt19937::random>(self, generator, from, range);
}

static Tensor& random__to(Tensor& self, int64_t to, const OptionalGenerator& generator) {
  return random__from(self, 0, to, generator);
}

// ---- bernoulli ----

static void check_probability(double p, const char* op) {
  RUSH_CHECK_VALUE(p >= 0 && p <= 1, op, " expects p to be in [0, 1], but got p=", p);
}

static Tensor& bernoulli_(Tensor& self, const Tensor& p, const OptionalGenerator& generator) {
  constexpr const char* op = "bernoulli_";
  RUSH_CHECK_TYPE(!self.is_complex(), op, ": a tensor of ", self.scalar_type(), " cannot hold zeros and ones");
  check_floating(p, op);
  check_expands(op, p.sizes(), self.sizes());
  const Tensor wide = p.scalar_type() == kFloat64 ? p : to_dtype(p, kFloat32);
  const Tensor each = contiguous(expand_as_strided(wide, self.sizes()));
  // The probabilities are checked where they lie, before the target is written.
  Tensor drawn = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  check_writable(self, op);
  if (self.numel() == 0) return self;
  if (Mt19937GeneratorImpl* twister = mt19937_of(generator, self.device())) {
    kernels::mt19937::bernoulli_tensor(kCPU, drawn, each, twister);
  } else {
    kernels::bernoulli_tensor(self.device().type, drawn, each, reserve_words(generator, self.device(), op));
  }
  return copy_(self, drawn, false);
}

static Tensor bernoulli(const Tensor& self, const OptionalGenerator& generator) {
  check_floating(self, "bernoulli");
  Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  return native::bernoulli_(out, self, generator);
}

static Tensor bernoulli_p(const Tensor& self, double p, const OptionalGenerator& generator) {
  Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  return native::bernoulli__float(out, p, generator);
}

// ---- normal numbers around tensors ----

static Tensor normal_around(const auto& mean, const auto& std, IntArrayRef sizes, const Tensor& like,
                            const OptionalGenerator& generator) {
  Tensor out = detail::empty_contiguous(sizes, like.scalar_type(), like.device());
  normal_(out, 0, 1, generator);
  out.mul_(std).add_(mean);
  return out;
}

static void check_deviations(const Tensor& std) {
  check_floating(std, "normal");
  if (std.is_meta() || std.numel() == 0) return;
  check_deviation(ops::min(std).item<double>(), "normal");
}

static Tensor normal_Tensor_float(const Tensor& mean, double std, const OptionalGenerator& generator) {
  check_deviation(std, "normal");
  return normal_around(mean, std, mean.sizes(), mean, generator);
}

static Tensor normal_float_Tensor(double mean, const Tensor& std, const OptionalGenerator& generator) {
  check_deviations(std);
  return normal_around(mean, std, std.sizes(), std, generator);
}

static Tensor normal_Tensor_Tensor(const Tensor& mean, const Tensor& std, const OptionalGenerator& generator) {
  check_deviations(std);
  return normal_around(mean, std, broadcast_shapes(mean.sizes(), std.sizes(), "normal"), mean, generator);
}

// ---- multinomial ----

static Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement,
                          const OptionalGenerator& generator) {
  constexpr const char* op = "multinomial";
  constexpr int64_t kMostCategories = 1 << 24;
  check_floating(self, op);
  RUSH_CHECK_VALUE(self.dim() == 1 || self.dim() == 2, op, ": prob_dist must be 1 or 2 dim, got shape ", self.sizes());
  const int64_t categories = self.sizes().back();
  RUSH_CHECK_VALUE(categories > 0 && categories <= kMostCategories, op, ": expected 1 to ", kMostCategories,
                   " weights, got ", categories);
  RUSH_CHECK_VALUE(num_samples > 0, op, ": cannot sample n_sample <= 0 samples, got ", num_samples);
  RUSH_CHECK_VALUE(replacement || num_samples <= categories, op,
                   ": cannot sample n_sample > prob_dist.size(-1) samples without replacement, got ", num_samples,
                   " of ", categories);
  const int64_t rows = self.dim() == 1 ? 1 : self.size(0);
  const Tensor out = detail::empty_contiguous({rows, num_samples}, kInt64, self.device());
  const Tensor wide = contiguous(self.scalar_type() == kFloat64 ? self : to_dtype(self, kFloat32));
  if (rows > 0) {
    const Tensor weights = detail::make_view(wide, {rows, categories}, {categories, 1}, wide.storage_offset());
    if (Mt19937GeneratorImpl* twister = mt19937_of(generator, self.device())) {
      kernels::mt19937::multinomial(kCPU, out, weights, replacement, twister);
    } else {
      kernels::multinomial(self.device().type, out, weights, replacement, reserve_words(generator, self.device(), op));
    }
  }
  if (self.dim() == 1) out.impl()->set_contiguous(num_samples);
  return out;
}

Tensor& bernoulli__float(Tensor& self, double p, const OptionalGenerator& generator) {
  check_probability(p, "bernoulli_");
  RUSH_CHECK_TYPE(!self.is_complex(), "bernoulli_: a tensor of ", self.scalar_type(), " cannot hold zeros and ones");
  return fill<kernels::bernoulli, kernels::mt19937::bernoulli>(self, generator, p);
}

}  // namespace native

void register_random_ops(Registry& r) {
  r.native(ops::uniform_, native::uniform_);
  r.native(ops::normal_, native::normal_);
  r.native(ops::log_normal_, native::log_normal_);
  r.native(ops::cauchy_, native::cauchy_);
  r.native(ops::exponential_, native::exponential_);
  r.native(ops::geometric_, native::geometric_);
  r.native(ops::random_, native::random_);
  r.native(ops::random__to, native::random__to);
  r.native(ops::random__from, native::random__from);
  r.native(ops::bernoulli__float, native::bernoulli__float);
  r.native(ops::bernoulli_, native::bernoulli_);
  r.native(ops::bernoulli, native::bernoulli);
  r.native(ops::bernoulli_p, native::bernoulli_p);
  r.native(ops::normal_Tensor_float, native::normal_Tensor_float);
  r.native(ops::normal_float_Tensor, native::normal_float_Tensor);
  r.native(ops::normal_Tensor_Tensor, native::normal_Tensor_Tensor);
  r.native(ops::multinomial, native::multinomial);
}

// Every method in two forms, with and without a generator.
#define RUSH_RANDOM_METHOD(ret, name, self_arg, op, params, args)                                \
  ret Tensor::name(RUSH_UNPACK params) const { return ops::op(self_arg, RUSH_UNPACK args, {}); } \
  ret Tensor::name(RUSH_UNPACK params, const OptionalGenerator& generator) const {               \
    return ops::op(self_arg, RUSH_UNPACK args, generator);                                       \
  }
#define RUSH_UNPACK(...) __VA_ARGS__
RUSH_RANDOM_METHOD(Tensor&, uniform_, self(), uniform_, (double from, double to), (from, to))
RUSH_RANDOM_METHOD(Tensor&, normal_, self(), normal_, (double mean, double std), (mean, std))
RUSH_RANDOM_METHOD(Tensor&, log_normal_, self(), log_normal_, (double mean, double std), (mean, std))
RUSH_RANDOM_METHOD(Tensor&, cauchy_, self(), cauchy_, (double median, double sigma), (median, sigma))
RUSH_RANDOM_METHOD(Tensor&, exponential_, self(), exponential_, (double lambda), (lambda))
RUSH_RANDOM_METHOD(Tensor&, geometric_, self(), geometric_, (double p), (p))
RUSH_RANDOM_METHOD(Tensor&, random_, self(), random__to, (int64_t to), (to))
RUSH_RANDOM_METHOD(Tensor&, random_, self(), random__from, (int64_t from, std::optional<int64_t> to), (from, to))
RUSH_RANDOM_METHOD(Tensor&, bernoulli_, self(), bernoulli__float, (double p), (p))
RUSH_RANDOM_METHOD(Tensor&, bernoulli_, self(), bernoulli_, (const Tensor& p), (p))
RUSH_RANDOM_METHOD(Tensor, bernoulli, *this, bernoulli_p, (double p), (p))
RUSH_RANDOM_METHOD(Tensor, multinomial, *this, multinomial, (int64_t num_samples, bool replacement),
                   (num_samples, replacement))
#undef RUSH_RANDOM_METHOD
#undef RUSH_UNPACK
Tensor& Tensor::random_() const { return ops::random_(self(), {}); }
Tensor& Tensor::random_(const OptionalGenerator& generator) const { return ops::random_(self(), generator); }
Tensor Tensor::bernoulli() const { return ops::bernoulli(*this, {}); }
Tensor Tensor::bernoulli(const OptionalGenerator& generator) const { return ops::bernoulli(*this, generator); }

}  // namespace rush
