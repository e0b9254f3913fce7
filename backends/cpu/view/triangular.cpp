#include "core/ops/view/triangular.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// One row: the elements [first, last) are kept.
template <class T>
void keep_range(T* out, int64_t out_stride, const T* in, int64_t in_stride, int64_t columns, int64_t first,
                int64_t last) {
  const auto clear = [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) out[j * out_stride] = T{};
  };
  clear(0, first);
  if (out != in) {
    for (int64_t j = first; j < last; ++j) out[j * out_stride] = in[j * in_stride];
  }
  clear(last, columns);
}

struct TriangleLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
    const size_t dims = in.sizes().size();
    const int64_t columns = in.sizes()[dims - 1];
    if (in.numel() == 0) return;
    T* const target = static_cast<T*>(out.data_ptr());
    const T* const source = static_cast<const T*>(in.data_ptr());
    // One step for each row, whose offsets in both tensors come from the leading dimensions.
    parallel_for(0, in.numel() / columns, std::max<int64_t>(1, kGrain / columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t to = 0, from = 0, rest = row;
        for (size_t d = dims - 1; d-- > 0;) {
          const int64_t at = rest % in.sizes()[d];
          rest /= in.sizes()[d];
          to += at * out.strides()[d];
          from += at * in.strides()[d];
        }
        const int64_t i = row % in.sizes()[dims - 2];
        const int64_t first = upper ? std::clamp<int64_t>(i + diagonal, 0, columns) : 0;
        const int64_t last = upper ? columns : std::clamp<int64_t>(i + diagonal + 1, 0, columns);
        keep_range(target + to, out.strides()[dims - 1], source + from, in.strides()[dims - 1], columns, first, last);
      }
    });
  }
};

struct IndicesLoop {
  template <class T>
  static void run(const Tensor& out, int64_t columns, int64_t offset, bool upper) {
    const int64_t count = out.sizes()[1];
    T* rows = out.data_ptr<T>();
    T* cols = rows + count;
    for (int64_t i = upper ? 0 : std::max<int64_t>(0, -offset), n = 0; n < count; ++i) {
      const int64_t first = upper ? std::clamp<int64_t>(i + offset, 0, columns) : 0;
      const int64_t last = upper ? columns : std::clamp<int64_t>(i + offset + 1, 0, columns);
      for (int64_t j = first; j < last; ++j, ++n) {
        rows[n] = static_cast<T>(i);
        cols[n] = static_cast<T>(j);
      }
    }
  }
};

void triangle(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
  // Beyond the matrix every diagonal is the same; a huge one must not overflow.
  const int64_t reach = std::max(in.size(-1), in.size(-2)) + 1;
  pick_bytes<TriangleLoop>(in.element_size())(out, in, std::clamp(diagonal, -reach, reach), upper);
}

void triangle_indices(const Tensor& out, int64_t columns, int64_t offset, bool upper) {
  pick<IndicesLoop>(IntegerTypes(), out.scalar_type(), upper ? "triu_indices" : "tril_indices")(out, columns, offset,
                                                                                                upper);
}

}  // namespace

void register_triangular() {
  kernels::triangle.set(kCPU, triangle);
  kernels::triangle_indices.set(kCPU, triangle_indices);
}

}  // namespace rush::cpu
