// Results whose size depends on the data: nonzero and masked_select; and masked_scatter. A running count of the true
// elements says where each goes.
#include "core/ops/masked.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/read_back.h"
#include "backends/cuda/register.h"
#include "core/ops/scan.h"

namespace rush::cuda {

namespace {

// How many of the first i + 1 flags are true, for every i.
Tensor running_count(const Tensor& flags) {
  const Tensor counts = detail::empty_contiguous(flags.numel(), kInt64, flags.device());
  kernels::cumsum(kCUDA, counts, flags, AlongDim(1, flags.numel(), 1));
  return counts;
}
int64_t total(const Tensor& counts) {
  return counts.numel() == 0 ? 0 : read_back(counts.data_ptr<int64_t>() + counts.numel() - 1);
}

template <class T>
struct FlagNonzero {
  bool* flags;
  const T* x;
  __device__ void operator()(int64_t i) const { flags[i] = x[i] != T(0); }
};

struct FlagLoop {
  template <class T>
  static void run(const Tensor& flags, const Tensor& self) {
    for_each_index("nonzero", self.numel(), FlagNonzero<T>{flags.data_ptr<bool>(), self.data_ptr<T>()});
  }
};

struct WriteRows {
  static constexpr int kMax = 16;
  int64_t* rows;
  const bool* flags;
  const int64_t* counts;
  int dims;
  int64_t sizes[kMax];
  __device__ void operator()(int64_t i) const {
    if (!flags[i]) return;
    int64_t* row = rows + (counts[i] - 1) * dims;
    for (int d = dims; d-- > 0; i /= sizes[d]) row[d] = i % sizes[d];
  }
};

void nonzero(const Tensor& self, Tensor& out) {
  RUSH_CHECK_NOT_IMPLEMENTED(self.dim() <= WriteRows::kMax, "nonzero: more than ", WriteRows::kMax, " dimensions");
  const Tensor flags = detail::empty_contiguous(self.numel(), kBool, self.device());
  pick<FlagLoop>(AllTypes(), self.scalar_type(), "nonzero")(flags, self);
  const Tensor counts = running_count(flags);
  out = detail::empty_contiguous({total(counts), self.dim()}, kInt64, self.device());
  WriteRows write{out.data_ptr<int64_t>(), flags.data_ptr<bool>(), counts.data_ptr<int64_t>(),
                  static_cast<int>(self.dim()), {}};
  for (int d = 0; d < write.dims; ++d) write.sizes[d] = self.size(d);
  for_each_index("nonzero", self.numel(), write);
}

template <class T>
struct SelectElement {
  T* to;
  const T* from;
  const bool* flags;
  const int64_t* counts;
  __device__ void operator()(int64_t i) const {
    if (flags[i]) to[counts[i] - 1] = from[i];
  }
};
struct SelectLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& counts) {
    for_each_index("masked_select", self.numel(),
                   SelectElement<T>{static_cast<T*>(out.data_ptr()), static_cast<const T*>(self.data_ptr()),
                                    mask.data_ptr<bool>(), counts.data_ptr<int64_t>()});
  }
};

void masked_select(const Tensor& self, const Tensor& mask, Tensor& out) {
  const Tensor counts = running_count(mask);
  out = detail::empty_contiguous(total(counts), self.scalar_type(), self.device());
  pick_bytes<SelectLoop>(self.element_size())(out, self, mask, counts);
}

template <class T>
struct ScatterElement {
  T* to;
  const T* from;
  const bool* flags;
  const int64_t* counts;
  __device__ void operator()(int64_t i) const {
    if (flags[i]) to[i] = from[counts[i] - 1];
  }
};
struct ScatterLoop {
  template <class T>
  static void run(const Tensor& self, const Tensor& mask, const Tensor& source, const Tensor& counts) {
    for_each_index("masked_scatter", self.numel(),
                   ScatterElement<T>{static_cast<T*>(self.data_ptr()), static_cast<const T*>(source.data_ptr()),
                                     mask.data_ptr<bool>(), counts.data_ptr<int64_t>()});
  }
};

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const Tensor counts = running_count(mask);
  // More elements than the mask has cannot be too few: the host need not wait for the count.
  if (source.numel() < mask.numel()) {
    const int64_t wanted = total(counts);
    RUSH_CHECK_VALUE(source.numel() >= wanted, "masked_scatter: the mask selects ", wanted, " elements, the source has ",
                     source.numel());
  }
  pick_bytes<ScatterLoop>(self.element_size())(self, mask, source, counts);
}

}  // namespace

void register_masked() {
  kernels::nonzero.set(kCUDA, nonzero);
  kernels::masked_select.set(kCUDA, masked_select);
  kernels::masked_scatter.set(kCUDA, masked_scatter);
}

}  // namespace rush::cuda
