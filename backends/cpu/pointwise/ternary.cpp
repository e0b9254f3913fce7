#include "core/ops/pointwise/ternary.h"

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"
#include "backends/functors/ternary.h"

namespace rush::cpu {

namespace {

// Where for numbers of 4 and 8 bytes, a register at a time: of the plain loop GCC makes a jump for every element.
template <class Bits>
void where_block(const void* /*functor*/, void* out, const void* const* in, int64_t n) {
  constexpr int64_t kLanes = kVectorBytes / sizeof(Bits);
  typedef Bits Lanes __attribute__((vector_size(kVectorBytes)));
  typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
  const auto* condition = static_cast<const uint8_t*>(in[0]);
  const auto* a = static_cast<const Bits*>(in[1]);
  const auto* b = static_cast<const Bits*>(in[2]);
  auto* to = static_cast<Bits*>(out);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Bytes bytes;
    Lanes x, y;
    std::memcpy(&bytes, condition + i, sizeof bytes);
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    const Lanes chosen = __builtin_convertvector(bytes, Lanes) != 0 ? x : y;
    std::memcpy(to + i, &chosen, sizeof chosen);
  }
  for (; i < n; ++i) to[i] = condition[i] ? a[i] : b[i];
}

struct WhereLoop {
  template <class T>
  static void run(TensorIterator& it) {
    using Math = opmath_t<T>;
    const functors::Where functor{};
    if constexpr (sizeof(Math) == 4 || sizeof(Math) == 8) {
      run_blocks(it, where_block<std::conditional_t<sizeof(Math) == 4, uint32_t, uint64_t>>, &functor);
    } else {
      run_blocks(it, block<functors::Where, Math, bool, Math, Math>, &functor);
    }
  }
};
void where(TensorIterator& it) { pick<WhereLoop>(AllTypes(), it.dtype(), it.op())(it); }

struct ClampScalarLoop {
  template <class T>
  static void run(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
    using Math = opmath_t<T>;
    const Math low = min ? min->to<Math>() : Math(), high = max ? max->to<Math>() : Math();
    if (!max) return apply(it, functors::ClampMin<Math>{low});
    if (!min) return apply(it, functors::ClampMax<Math>{high});
    apply(it, functors::ClampScalar<Math>{low, high});
  }

 private:
  template <template <class> class F, class Math>
  static void apply(TensorIterator& it, const F<Math>& functor) {
    run_blocks(it, block_of<Math, F<Math>>(), &functor);
  }
};
void clamp_scalar(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
  pick<ClampScalarLoop>(RealTypes(), it.common_dtype(), it.op())(it, min, max);
}

}  // namespace

void register_ternary() {
  set_kernels(functors::TernaryTable());
  kernels::where.set(kCPU, where);
  kernels::clamp_scalar.set(kCPU, clamp_scalar);
}

}  // namespace rush::cpu
