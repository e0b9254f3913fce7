#include "backends/cpu/blocks.h"

#include <algorithm>

namespace rush::cpu {

namespace {

constexpr int64_t kBufferBytes = 4096;
constexpr int kMaxOperands = TensorIterator::kMaxOperands;

using GatherFn = void (*)(void* to, const char* from, int64_t stride, int64_t n);
using ScatterFn = void (*)(char* to, int64_t stride, const void* from, int64_t n);

// Between elements of type T at any stride and contiguous numbers of the type that T is computed in.
template <class T>
void gather(void* to, const char* from, int64_t stride, int64_t n) {
  auto* out = static_cast<opmath_t<T>*>(to);
  if (stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<opmath_t<T>>(reinterpret_cast<const T*>(from)[i]);
  } else if (stride == 0) {
    std::fill_n(out, n, static_cast<opmath_t<T>>(*reinterpret_cast<const T*>(from)));
  } else if (stride == 2 * sizeof(T)) {  // vectorised, as the real parts of complex numbers
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<opmath_t<T>>(reinterpret_cast<const T*>(from)[2 * i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<opmath_t<T>>(*reinterpret_cast<const T*>(from + i * stride));
  }
}
template <class T>
void scatter(char* to, int64_t stride, const void* from, int64_t n) {
  const auto* in = static_cast<const opmath_t<T>*>(from);
  if (stride == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = static_cast<T>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * stride) = static_cast<T>(in[i]);
  }
}

// How an operand gets into and out of a block.
struct Access {
  GatherFn gather;
  ScatterFn scatter;
  int64_t size;       // of an element
  int64_t math_size;  // of a number in a block
  bool converts;
};
template <class T>
constexpr Access access_of() {
  return {gather<T>, scatter<T>, sizeof(T), sizeof(opmath_t<T>), !std::is_same_v<T, opmath_t<T>>};
}
const Access& access_to(ScalarType dtype) {
  static constexpr Access table[kNumScalarTypes] = {
#define RUSH_ACCESS(enumerator, type, ...) access_of<type>(),
      RUSH_FORALL_SCALAR_TYPES(RUSH_ACCESS)
#undef RUSH_ACCESS
  };
  return table[static_cast<int>(dtype)];
}

class BlockLoop {
 public:
  BlockLoop(const TensorIterator& it, BlockFn fn, const void* functor)
      : inputs_(it.ntensors() - 1), fn_(fn), functor_(functor) {
    for (int t = 0; t <= inputs_; ++t) {
      access_[t] = access_to(it.dtype(t));
      block_ = std::min(block_, kBufferBytes / access_[t].math_size);
    }
  }

  void operator()(char** data, const int64_t* strides, int64_t n) const {
    const void* in[kMaxOperands];
    bool direct = is_direct(0, strides);
    for (int t = 1; t <= inputs_; ++t) {
      in[t - 1] = data[t];
      direct = direct && is_direct(t, strides);
    }
    if (direct) return fn_(functor_, data[0], in, n);
    through_buffers(data, strides, n);
  }

 private:
  bool is_direct(int t, const int64_t* strides) const { return strides[t] == access_[t].size && !access_[t].converts; }

  RUSH_NOINLINE void through_buffers(char** data, const int64_t* strides, int64_t n) const {
    alignas(64) char buffers[kMaxOperands][kBufferBytes];
    const void* in[kMaxOperands];
    for (int t = 1; t <= inputs_; ++t) {
      // The same for the whole run: once is enough.
      if (strides[t] == 0) access_[t].gather(buffers[t], data[t], 0, std::min(n, block_));
    }
    for (int64_t begin = 0; begin < n; begin += block_) {
      const int64_t count = std::min(block_, n - begin);
      for (int t = 1; t <= inputs_; ++t) {
        const char* from = data[t] + begin * strides[t];
        in[t - 1] = is_direct(t, strides) ? from : buffers[t];
        if (!is_direct(t, strides) && strides[t] != 0) access_[t].gather(buffers[t], from, strides[t], count);
      }
      char* to = data[0] + begin * strides[0];
      if (is_direct(0, strides)) {
        fn_(functor_, to, in, count);
      } else {
        fn_(functor_, buffers[0], in, count);
        access_[0].scatter(to, strides[0], buffers[0], count);
      }
    }
  }

  int inputs_;
  int64_t block_ = kBufferBytes;  // elements
  BlockFn fn_;
  const void* functor_;
  Access access_[kMaxOperands];
};

}  // namespace

void run_blocks(const TensorIterator& it, BlockFn fn, const void* functor, int64_t grain) {
  it.for_each(BlockLoop(it, fn, functor), grain);
}

}  // namespace rush::cpu
