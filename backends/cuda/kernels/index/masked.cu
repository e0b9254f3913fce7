// Elements chosen by a mask.
#include "core/ops/index/masked.h"

#include <cub/device/device_scan.cuh>

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/read_back.h"
#include "backends/cuda/memory/scratch.h"

namespace rush::cuda {

namespace {

struct Masked {
  template <class T>
  __device__ T operator()(T self, bool mask, T value) const {
    return mask ? value : self;
  }
};

struct MaskedFillLoop {
  template <class T>
  static void run(TensorIterator& it) {
    elementwise<T, T, bool, T>(it, Masked{});
  }
};

void masked_fill(TensorIterator& it) { pick<MaskedFillLoop>(AllTypes(), it.dtype(), it.op())(it); }

// Each thread counts the elements of a chunk, so that every chunk knows where its elements begin in the result.
inline constexpr int64_t kPart = 16;

template <class T>
struct CountChosen {
  const T* flags;
  int64_t n;
  int64_t* counts;
  __device__ void operator()(int64_t part) const {
    const int64_t begin = part * kPart, end = min(begin + kPart, n);
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += flags[i] != T(0);
    counts[part] = count;
  }
};

// How many flags are set before each chunk of kPart elements, and in all.
class ChosenBefore {
 public:
  template <class T>
  ChosenBefore(const char* op, const T* flags, int64_t n)
      : parts_((n + kPart - 1) / kPart), counts_(static_cast<size_t>(parts_ + 1) * sizeof(int64_t)) {
    const cudaStream_t stream = current_stream();
    auto* counts = counts_.as<int64_t>();
    RUSH_CUDA_CHECK(cudaMemsetAsync(counts + parts_, 0, sizeof(int64_t), stream));
    for_each_index(op, parts_, CountChosen<T>{flags, n, counts});
    size_t nbytes = 0;
    RUSH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, nbytes, counts, counts, parts_ + 1, stream));
    const Scratch temporary(nbytes);
    RUSH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(temporary.data(), nbytes, counts, counts, parts_ + 1, stream));
  }
  // Waits for the device.
  int64_t read_total() const { return read_back(counts() + parts_); }
  int64_t parts() const { return parts_; }
  const int64_t* counts() const { return counts_.as<int64_t>(); }

 private:
  int64_t parts_;
  Scratch counts_;
};

inline constexpr int kMaxTensorDims = 64;

// Index is an unsigned integer that holds the number of elements: division takes a GPU long.
template <class T, class Index>
struct WriteIndices {
  const T* flags;
  int64_t n;
  const int64_t* before;
  int64_t* rows;
  int dims;
  Index sizes[kMaxTensorDims];
  __device__ void operator()(int64_t part) const {
    const int64_t begin = part * kPart, end = min(begin + kPart, n);
    int64_t* row = rows + before[part] * dims;
    for (int64_t i = begin; i < end; ++i) {
      if (!(flags[i] != T(0))) continue;
      auto rest = static_cast<Index>(i);
      for (int d = dims - 1; d > 0; --d) {
        const Index quotient = rest / sizes[d];
        row[d] = rest - quotient * sizes[d];
        rest = quotient;
      }
      if (dims > 0) row[0] = rest;
      row += dims;
    }
  }
};

struct NonzeroLoop {
  template <class T>
  static void run(const Tensor& self, Tensor& out) {
    RUSH_CHECK_NOT_IMPLEMENTED(self.dim() <= kMaxTensorDims, "nonzero: more than ", kMaxTensorDims, " dimensions");
    const T* flags = self.data_ptr<T>();
    const ChosenBefore before("nonzero", flags, self.numel());
    out = rush::detail::empty_contiguous({before.read_total(), self.dim()}, kInt64, self.device());
    if (out.size(0) == 0) return;
    self.numel() < int64_t{1} << 32 ? write<T, uint32_t>(self, out, before) : write<T, uint64_t>(self, out, before);
  }

 private:
  template <class T, class Index>
  static void write(const Tensor& self, const Tensor& out, const ChosenBefore& before) {
    WriteIndices<T, Index> body;
    body.flags = self.data_ptr<T>();
    body.n = self.numel();
    body.before = before.counts();
    body.rows = out.data_ptr<int64_t>();
    body.dims = static_cast<int>(self.dim());
    for (int d = 0; d < body.dims; ++d) body.sizes[d] = static_cast<Index>(self.sizes()[static_cast<size_t>(d)]);
    for_each_index("nonzero", before.parts(), body);
  }
};

// Copies the selected elements of `spread` to `packed`, of `size` elements, or back, which needs as many as are
// selected.
template <class T, bool pack>
struct MoveChosen {
  const bool* mask;
  int64_t n;
  const int64_t* before;
  T *spread, *packed;
  int64_t parts, size;
  DeviceCheck check;
  __device__ void operator()(int64_t part) const {
    if (!RUSH_DEVICE_CHECK(before[parts] <= size, check, before[parts], size)) return;
    const int64_t begin = part * kPart, end = min(begin + kPart, n);
    T* next = packed + before[part];
    for (int64_t i = begin; i < end; ++i) {
      if (!mask[i]) continue;
      if constexpr (pack) {
        *next++ = spread[i];
      } else {
        spread[i] = *next++;
      }
    }
  }
};

template <bool pack>
struct MoveChosenLoop {
  template <class T>
  static void run(const char* op, const Tensor& mask, const ChosenBefore& before, const Tensor& spread,
                  const Tensor& packed) {
    for_each_index(
        op, before.parts(),
        MoveChosen<T, pack>{mask.data_ptr<bool>(), mask.numel(), before.counts(), static_cast<T*>(spread.data_ptr()),
                            static_cast<T*>(packed.data_ptr()), before.parts(), packed.numel(),
                            device_check(op, "the mask selects more elements than the source has")});
  }
};

void masked_select(const Tensor& self, const Tensor& mask, Tensor& out) {
  const ChosenBefore before("masked_select", mask.data_ptr<bool>(), mask.numel());
  out = rush::detail::empty_contiguous(before.read_total(), self.scalar_type(), self.device());
  pick_bytes<MoveChosenLoop<true>>(self.element_size())("masked_select", mask, before, self, out);
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const ChosenBefore before("masked_scatter", mask.data_ptr<bool>(), mask.numel());
  pick_bytes<MoveChosenLoop<false>>(self.element_size())("masked_scatter", mask, before, self, source);
}

}  // namespace

void register_masked() {
  kernels::masked_fill.set(kCUDA, masked_fill);
  set_by_dtype<kernels::nonzero, NonzeroLoop, AllTypes>(kCUDA);
  kernels::masked_select.set(kCUDA, masked_select);
  kernels::masked_scatter.set(kCUDA, masked_scatter);
}

}  // namespace rush::cuda
