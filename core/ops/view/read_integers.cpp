#include "core/ops/view/read_integers.h"

#include "core/ops/basic.h"

namespace rush::native {

std::vector<int64_t> read_integers(const Tensor& self) {
  if (self.numel() == 0) return {};
  const Tensor whole = self.detach().to(TensorOptions(kCPU).dtype(kInt64)).contiguous().view({self.numel()});
  whole.select(0, 0).item();  // which a trace sees
  return {whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + whole.numel()};
}

}  // namespace rush::native
