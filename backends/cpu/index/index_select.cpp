#include "core/ops/index/index_select.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

void repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size, Tensor& out) {
  const int64_t* each = repeats.data_ptr<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    RUSH_CHECK_VALUE(each[i] >= 0, "repeat_interleave: cannot repeat ", each[i], " times");
    RUSH_CHECK_VALUE(!__builtin_add_overflow(total, each[i], &total), "repeat_interleave: the repeats are too many");
  }
  RUSH_CHECK_VALUE(!output_size || *output_size == total, "repeat_interleave: output_size is ", *output_size,
                   ", the repeats sum to ", total);
  out = detail::empty_contiguous(total, kInt64, repeats.device());
  int64_t* to = out.data_ptr<int64_t>();
  for (int64_t i = 0; i < repeats.numel(); ++i) to = std::fill_n(to, each[i], i);
}

}  // namespace

void register_index_select() { kernels::repeat_interleave.set(kCPU, repeat_interleave); }

}  // namespace rush::cpu
