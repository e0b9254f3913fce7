#include "core/ops/copy.h"

#include <cstring>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "core/ops/factories.h"

namespace rush::cpu {

namespace {

// Same dtype: elements are moved as they are, by size.
struct Bytes16 {
  uint64_t parts[2];
};
template <class T>
struct Move {
  void operator()(char** data, const int64_t* strides, int64_t n) const {
    if (strides[0] == sizeof(T) && strides[1] == sizeof(T)) {
      std::memcpy(data[0], data[1], static_cast<size_t>(n) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(data[0] + i * strides[0]) = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
    }
  }
};

void move(TensorIterator& it) {
  switch (element_size(it.dtype())) {
    case 1: return it.for_each(Move<uint8_t>());
    case 2: return it.for_each(Move<uint16_t>());
    case 4: return it.for_each(Move<uint32_t>());
    case 8: return it.for_each(Move<uint64_t>());
    default: return it.for_each(Move<Bytes16>());
  }
}

// A complex number loses its imaginary part, a fraction is cut, anything but zero is true.
template <class To, class From>
To convert(From value) {
  if constexpr (is_complex_v<From> && !is_complex_v<To>) {
    if constexpr (std::is_same_v<To, bool>) return value.real() != 0 || value.imag() != 0;
    return static_cast<To>(value.real());
  } else if constexpr (is_complex_v<To> && !is_complex_v<From>) {
    return To(static_cast<decltype(To().real())>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else {
    return static_cast<To>(value);
  }
}

template <class To>
struct ConvertTo {
  template <class From>
  To operator()(From value) const {
    return convert<To>(value);
  }
};

template <class To>
struct ConvertFrom {
  template <class From>
  static void run(TensorIterator& it) {
    pointwise<To, From>(it, ConvertTo<To>());
  }
};

struct ConvertLoop {
  template <class To>
  static void run(TensorIterator& it) {
    pick<ConvertFrom<To>>(AllTypes(), it.dtype(1), it.op())(it);
  }
};

void copy(TensorIterator& it) {
  if (it.dtype(0) == it.dtype(1)) return move(it);
  pick<ConvertLoop>(AllTypes(), it.dtype(0), it.op())(it);
}

struct FillLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& value) {
    const T number = value.to<T>();
    it.for_each([&](char** data, const int64_t* strides, int64_t n) {
      if (strides[0] == sizeof(T)) {
        std::fill_n(reinterpret_cast<T*>(data[0]), n, number);
      } else {
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(data[0] + i * strides[0]) = number;
      }
    });
  }
};

void fill(TensorIterator& it, const Scalar& value) { pick<FillLoop>(AllTypes(), it.dtype(0), it.op())(it, value); }

}  // namespace

void register_copy() {
  kernels::copy.set(kCPU, copy);
  kernels::fill.set(kCPU, fill);
}

}  // namespace rush::cpu
