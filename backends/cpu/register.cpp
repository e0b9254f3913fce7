#include "backends/cpu/register.h"

#include <algorithm>

#include "backends/cpu/fused_loop.h"
#include "backends/cpu/memory/caching_allocator.h"
#include "backends/cpu/memory/memory.h"
#include "core/device/backend.h"

namespace rush {

namespace {
class CpuBackend final : public Backend {
 public:
  MemoryInfo memory_info(int /*device*/) override {
    const auto limit = static_cast<size_t>(cpu::memory_limit());
    const auto reserved = static_cast<size_t>(cpu::memory_reserved());
    return {limit - std::min(limit, reserved), limit};
  }
  Allocator& allocator() override { return cpu::CachingAllocator::instance(); }
  Generator make_generator(Device /*device*/, uint64_t seed) override {
    return rush::make_generator<CPUGeneratorImpl>(seed);
  }
  bool can_fuse(const IteratorCall& /*call*/, ArrayRef<ScalarType> /*dtypes*/) override { return true; }
  std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) override {
    return cpu::fuse(std::move(description));
  }
};
}  // namespace

void register_cpu(Registry&) {
  // Never destroyed: tensors in static variables are freed after everything else.
  static auto& backend = *new CpuBackend;
  register_backend(kCPU, backend);
  cpu::register_amp();
  cpu::register_batch_norm();
  cpu::register_activation();
  cpu::register_binary();
  cpu::register_conv();
  cpu::register_conv_transpose();
  cpu::register_conv_weight();
  cpu::register_compare();
  cpu::register_distance();
  cpu::register_embedding_bag();
  cpu::register_sparse();
  cpu::register_im2col();
  cpu::register_linalg_cholesky();
  cpu::register_linalg_eig();
  cpu::register_linalg_eigh();
  cpu::register_linalg_lu();
  cpu::register_linalg_qr();
  cpu::register_linalg_svd();
  cpu::register_attention();
  cpu::register_fused();
  cpu::register_copy();
  cpu::register_ctc_loss();
  cpu::register_loss();
  cpu::register_gather();
  cpu::register_extrema();
  cpu::register_fft();
  cpu::register_histogram();
  cpu::register_index();
  cpu::register_index_select();
  cpu::register_masked();
  cpu::register_matmul();
  cpu::register_norm();
  cpu::register_pool();
  cpu::register_order_statistics();
  cpu::register_optim();
  cpu::register_pad();
  cpu::register_mt19937();
  cpu::register_random();
  cpu::register_range();
  cpu::register_rearrange();
  cpu::register_reduce();
  cpu::register_triangular();
  cpu::register_scan();
  cpu::register_search();
  cpu::register_softmax();
  cpu::register_sort();
  cpu::register_statistics();
  cpu::register_unary();
  cpu::register_upsample();
  cpu::register_unique();
  cpu::register_vector_norm();
  cpu::register_view();
  cpu::register_power();
  cpu::register_ternary();
  cpu::register_unary_math();
#define RUSH_CALL(function) cpu::function();
  RUSH_FORALL_CPU_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush
