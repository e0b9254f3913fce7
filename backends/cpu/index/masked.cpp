#include "core/ops/index/masked.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

struct MaskedFillLoop {
  template <class T>
  static void run(TensorIterator& it) {
    it.for_each([](char** data, const int64_t* strides, int64_t n) {
      const bool dense = strides[0] == sizeof(T) && strides[1] == sizeof(T) && strides[2] == 1 && strides[3] == 0;
      if (dense) {
        T* out = reinterpret_cast<T*>(data[0]);
        const T* self = reinterpret_cast<const T*>(data[1]);
        const uint8_t* mask = reinterpret_cast<const uint8_t*>(data[2]);  // of bytes, a condition is vectorised
        const T value = *reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          const T kept = self[i];
          out[i] = mask[i] != 0 ? value : kept;
        }
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        const T kept = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
        const T value = *reinterpret_cast<const T*>(data[3] + i * strides[3]);
        const uint8_t masked = *reinterpret_cast<const uint8_t*>(data[2] + i * strides[2]);
        *reinterpret_cast<T*>(data[0] + i * strides[0]) = masked != 0 ? value : kept;
      }
    });
  }
};

void masked_fill(TensorIterator& it) { pick_bytes<MaskedFillLoop>(element_size(it.dtype()))(it); }

// The elements are counted in chunks, so that every chunk knows where its elements begin in the result.
constexpr int64_t kPart = kGrain;

// Calls visit(chunk, begin, end) for all chunks of `numel` elements, in parallel.
template <class Visit>
void for_each_part(int64_t numel, const Visit& visit) {
  const int64_t parts = (numel + kPart - 1) / kPart;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) visit(part, part * kPart, std::min(numel, (part + 1) * kPart));
  });
}

// The number of true flags before each chunk, and in all at the end.
template <class T>
std::vector<int64_t> count_before(const T* flags, int64_t numel) {
  std::vector<int64_t> counts(static_cast<size_t>((numel + kPart - 1) / kPart) + 1, 0);
  for_each_part(numel, [&](int64_t part, int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += flags[i] != T(0);
    counts[static_cast<size_t>(part) + 1] = count;
  });
  for (size_t part = 1; part < counts.size(); ++part) counts[part] += counts[part - 1];
  return counts;
}

struct NonzeroLoop {
  template <class T>
  static void run(const Tensor& self, Tensor& out) {
    const T* from = self.data_ptr<T>();
    const int64_t dims = self.dim();
    const std::vector<int64_t> counts = count_before(from, self.numel());
    out = detail::empty_contiguous({counts.back(), dims}, kInt64, self.device());
    int64_t* rows = out.data_ptr<int64_t>();
    for_each_part(self.numel(), [&](int64_t part, int64_t begin, int64_t end) {
      int64_t* row = rows + counts[static_cast<size_t>(part)] * dims;
      if (dims == 1) {
        for (int64_t i = begin; i < end; ++i) {
          if (from[i] != T(0)) *row++ = i;
        }
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        if (!(from[i] != T(0))) continue;
        int64_t rest = i;
        for (int64_t d = dims; d-- > 0;) {
          row[d] = rest % self.sizes()[static_cast<size_t>(d)];
          rest /= self.sizes()[static_cast<size_t>(d)];
        }
        row += dims;
      }
    });
  }
};

struct SelectLoop {
  template <class T>
  static void run(const Tensor& self, const bool* mask, const std::vector<int64_t>& counts, const Tensor& out) {
    const T* from = static_cast<const T*>(self.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    for_each_part(self.numel(), [&](int64_t part, int64_t begin, int64_t end) {
      T* next = to + counts[static_cast<size_t>(part)];
      for (int64_t i = begin; i < end; ++i) {
        if (mask[i]) *next++ = from[i];
      }
    });
  }
};

void masked_select(const Tensor& self, const Tensor& mask, Tensor& out) {
  const bool* flags = mask.data_ptr<bool>();
  const std::vector<int64_t> counts = count_before(flags, mask.numel());
  out = detail::empty_contiguous(counts.back(), self.scalar_type(), self.device());
  pick_bytes<SelectLoop>(self.element_size())(self, flags, counts, out);
}

struct MaskedScatterLoop {
  template <class T>
  static void run(const Tensor& self, const bool* mask, const std::vector<int64_t>& counts, const Tensor& source) {
    const T* from = static_cast<const T*>(source.data_ptr());
    T* to = static_cast<T*>(self.data_ptr());
    for_each_part(self.numel(), [&](int64_t part, int64_t begin, int64_t end) {
      const T* next = from + counts[static_cast<size_t>(part)];
      for (int64_t i = begin; i < end; ++i) {
        if (mask[i]) to[i] = *next++;
      }
    });
  }
};

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const bool* flags = mask.data_ptr<bool>();
  const std::vector<int64_t> counts = count_before(flags, mask.numel());
  RUSH_CHECK_VALUE(source.numel() >= counts.back(), "masked_scatter: the mask selects ", counts.back(),
                   " elements, the source has ", source.numel());
  pick_bytes<MaskedScatterLoop>(self.element_size())(self, flags, counts, source);
}

}  // namespace

void register_masked() {
  kernels::masked_fill.set(kCPU, masked_fill);
  set_by_dtype<kernels::nonzero, NonzeroLoop, AllTypes>(kCPU);
  kernels::masked_select.set(kCPU, masked_select);
  kernels::masked_scatter.set(kCPU, masked_scatter);
}

}  // namespace rush::cpu
