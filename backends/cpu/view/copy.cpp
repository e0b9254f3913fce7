#include "core/ops/view/copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/view/convert.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/rearrange.h"

namespace rush::cpu {

namespace {

// ---- the same dtype: elements are moved as they are, by size ----

template <class T>
struct Move {
  void operator()(char** data, const int64_t* strides, int64_t n) const {
    auto* out = reinterpret_cast<T*>(data[0]);
    const auto* in = reinterpret_cast<const T*>(data[1]);
    if (strides[0] == sizeof(T) && strides[1] == sizeof(T)) {
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
    } else if (strides[0] == sizeof(T) && strides[1] == 0) {
      std::fill_n(out, n, *in);
    } else if (strides[0] == sizeof(T) && strides[1] == -static_cast<int64_t>(sizeof(T))) {
      std::reverse_copy(in - (n - 1), in + 1, out);
    } else {
      move_strided(data, strides, n);
    }
  }

 private:
  // Not inlined: beside the loops above, GCC makes a slower one of it, by two thirds for 16-bit numbers.
  RUSH_NOINLINE static void move_strided(char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(data[0] + i * strides[0]) = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
    }
  }
};

// Note [Transposed copies]
// If the output has stride 1 in one dimension and the input in another, a loop over either one touches a new cache line
// of the other at every step. These two dimensions are therefore copied tile by tile: a tile is read in rows of the
// input into a buffer that stays in the L1 cache, and written from there in rows of the output.
template <class T>
class Transpose {
 public:
  // Whether the iterator's operands have such strides; `across` becomes the input's innermost dimension.
  static bool fits(const TensorIterator& it, int& across) {
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    if (it.dim() < 2 || it.operand(0).strides[0] != size || it.operand(1).strides[0] == size) return false;
    if (it.operand(1).strides[0] == 0) return false;  // rows that repeat one element each
    for (across = 1; across < it.dim(); ++across) {
      if (it.operand(1).strides[static_cast<size_t>(across)] == size) return it.shape()[0] * it.shape()[across] >= 64;
    }
    return false;
  }

  Transpose(const TensorIterator& it, int across)
      : width_(it.shape()[0]),
        height_(it.shape()[across]),
        out_stride_(it.operand(0).strides[across]),
        in_stride_(it.operand(1).strides[0]),
        out_(it.operand(0).data),
        in_(it.operand(1).data) {
    for (int d = 1; d < it.dim(); ++d) {
      if (d == across) continue;
      planes_ *= it.shape()[d];
      sizes_.push_back(it.shape()[d]);
      out_strides_.push_back(it.operand(0).strides[d]);
      in_strides_.push_back(it.operand(1).strides[d]);
    }
  }

  // One step a band of kTile output rows.
  void run() const {
    const int64_t bands = (height_ + kTile - 1) / kTile;
    const int64_t grain = std::max<int64_t>(1, kGrain / (width_ * std::min(height_, kTile)));
    parallel_for(0, planes_ * bands, grain, [&](int64_t begin, int64_t end) {
      for (int64_t step = begin; step < end; ++step) copy_band(step / bands, step % bands * kTile);
    });
  }

 private:
  static constexpr int64_t kTile = sizeof(T) <= 4 ? 32 : 16;

  void copy_band(int64_t plane, int64_t row) const {
    char* out = out_ + row * out_stride_;
    const char* in = in_ + row * static_cast<int64_t>(sizeof(T));
    for (size_t d = 0; d < sizes_.size(); ++d) {
      out += plane % sizes_[d] * out_strides_[d];
      in += plane % sizes_[d] * in_strides_[d];
      plane /= sizes_[d];
    }
    const int64_t rows = std::min(kTile, height_ - row);
    for (int64_t column = 0; column < width_; column += kTile) {
      copy_tile(out + column * static_cast<int64_t>(sizeof(T)), in + column * in_stride_, rows,
                std::min(kTile, width_ - column));
    }
  }

  void copy_tile(char* out, const char* in, int64_t rows, int64_t columns) const {
    if (std::min(rows, columns) < 8) return copy_narrow_tile(out, in, rows, columns);
    T tile[kTile][kTile];  // [column][row]
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(tile[c], in + c * in_stride_, static_cast<size_t>(rows) * sizeof(T));
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* line = reinterpret_cast<T*>(out + r * out_stride_);
      for (int64_t c = 0; c < columns; ++c) line[c] = tile[c][r];
    }
  }

  // Without a buffer, whose rows would be too short to be worth a call.
  void copy_narrow_tile(char* out, const char* in, int64_t rows, int64_t columns) const {
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    const auto copy_element = [=, this](int64_t r, int64_t c) {
      *reinterpret_cast<T*>(out + r * out_stride_ + c * size) =
          *reinterpret_cast<const T*>(in + c * in_stride_ + r * size);
    };
    if (rows < columns) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) copy_element(r, c);
      }
    } else {
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) copy_element(r, c);
      }
    }
  }

  int64_t width_, height_, out_stride_, in_stride_;  // strides in bytes
  int64_t planes_ = 1;
  char* out_;
  const char* in_;
  DimVector sizes_, out_strides_, in_strides_;
};

template <class T>
void move_as(const TensorIterator& it) {
  int across = 0;
  if (Transpose<T>::fits(it, across)) return Transpose<T>(it, across).run();
  it.for_each(Move<T>());
}

void move(const TensorIterator& it) {
  switch (element_size(it.dtype())) {
    case 1: return move_as<uint8_t>(it);
    case 2: return move_as<uint16_t>(it);
    case 4: return move_as<uint32_t>(it);
    case 8: return move_as<uint64_t>(it);
    default: return move_as<Bytes16>(it);
  }
}

void copy(TensorIterator& it) {
  if (it.dtype(0) == it.dtype(1)) return move(it);
  convert(it);
}

// A copy of a view that begins at the end of each flipped dimension, and has a negative stride there.
void flip(const Tensor& out, const Tensor& in, IntArrayRef dims) {
  if (in.numel() == 0) return;
  DimVector strides(in.strides());
  int64_t first = in.storage_offset();
  for (int64_t d : dims) {
    first += (in.size(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  const Tensor flipped = detail::make_view(in, in.sizes(), strides, first);
  const auto it = TensorIterator::pointwise("flip", out, flipped, Promotion::None, in.scalar_type());
  move(it);
}

// 16-bit numbers are written as integers, of which the compiler makes vectors.
template <class Bytes>
void fill_with(const TensorIterator& it, Bytes bytes) {
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == sizeof(Bytes)) {
      std::fill_n(reinterpret_cast<Bytes*>(data[0]), n, bytes);
    } else {
      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<Bytes*>(data[0] + i * strides[0]) = bytes;
    }
  });
}

struct FillLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& value) {
    const T number = value.to<T>();
    if constexpr (sizeof(T) == 2) return fill_with(it, std::bit_cast<uint16_t>(number));
    fill_with(it, number);
  }
};

void fill(TensorIterator& it, const Scalar& value) { pick<FillLoop>(EveryType(), it.dtype(0), it.op())(it, value); }

}  // namespace

void register_copy() {
  kernels::copy.set(kCPU, copy);
  kernels::fill.set(kCPU, fill);
  kernels::flip.set(kCPU, flip);
}

}  // namespace rush::cpu
