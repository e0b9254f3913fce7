// Process-wide switches of how libraries compute, under libtorch's names. Except for attention's, they do nothing
// without the CUDA backend.
#pragma once
#include <string>

namespace rush {

class Generator;
struct Device;

/// How float32 products of matrices may be computed: Highest in float32; High and Medium in TensorFloat-32 too, which
/// keeps 10 bits of the mantissa. torch.set_float32_matmul_precision.
enum class Float32MatmulPrecision { Highest, High, Medium };

/// Reading a switch while another thread sets it is not synchronised, as in PyTorch: set them before starting threads.
class Context {
 public:
  // ---- cuBLAS ----
  /// Highest at first.
  Float32MatmulPrecision float32MatmulPrecision() const { return float32_matmul_precision_; }
  void setFloat32MatmulPrecision(Float32MatmulPrecision precision) { float32_matmul_precision_ = precision; }
  /// "highest", "high" or "medium". Throws ValueError on anything else.
  void setFloat32MatmulPrecision(const std::string& precision);
  /// TensorFloat-32 in float32 products; off by default. torch.backends.cuda.matmul.allow_tf32.
  bool allowTF32CuBLAS() const { return float32_matmul_precision_ != Float32MatmulPrecision::Highest; }
  void setAllowTF32CuBLAS(bool allow) {
    float32_matmul_precision_ = allow ? Float32MatmulPrecision::High : Float32MatmulPrecision::Highest;
  }
  /// Whether partial sums of float16 (bfloat16) products may be rounded to 16 bits before they are added; on by
  /// default. torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction.
  bool allowFP16ReductionCuBLAS() const { return allow_fp16_reduction_; }
  void setAllowFP16ReductionCuBLAS(bool allow) { allow_fp16_reduction_ = allow; }
  bool allowBF16ReductionCuBLAS() const { return allow_bf16_reduction_; }
  void setAllowBF16ReductionCuBLAS(bool allow) { allow_bf16_reduction_ = allow; }

  // ---- cuDNN ----
  // Off: convolutions, batch norm, recurrent layers and attention go through this library's own kernels.
  // torch.backends.cudnn.enabled.
  bool userEnabledCuDNN() const { return cudnn_enabled_; }
  void setUserEnabledCuDNN(bool enabled) { cudnn_enabled_ = enabled; }
  /// Whether the first convolution of each shape tries cuDNN's algorithms and keeps the fastest, at most
  /// benchmarkLimitCuDNN of them (0: all). torch.backends.cudnn.benchmark, benchmark_limit.
  bool benchmarkCuDNN() const { return cudnn_benchmark_; }
  void setBenchmarkCuDNN(bool benchmark) { cudnn_benchmark_ = benchmark; }
  int benchmarkLimitCuDNN() const { return cudnn_benchmark_limit_; }
  void setBenchmarkLimitCuDNN(int limit) { cudnn_benchmark_limit_ = limit; }
  /// Only algorithms that give the same bits every time. torch.backends.cudnn.deterministic.
  bool deterministicCuDNN() const { return cudnn_deterministic_; }
  void setDeterministicCuDNN(bool deterministic) { cudnn_deterministic_ = deterministic; }
  /// TensorFloat-32 in float32 convolutions; on by default. torch.backends.cudnn.allow_tf32.
  bool allowTF32CuDNN() const { return cudnn_allow_tf32_; }
  void setAllowTF32CuDNN(bool allow) { cudnn_allow_tf32_ = allow; }

  // ---- attention ----
  // The back ends that scaled_dot_product_attention may choose from, see Note [Back ends of attention] in
  // core/ops/nn/attention.h; all on by default. torch.backends.cuda.enable_flash_sdp, enable_mem_efficient_sdp,
  // enable_math_sdp, enable_cudnn_sdp.
  bool userEnabledFlashSDP() const { return sdp_flash_; }
  void setSDPUseFlash(bool enabled) { sdp_flash_ = enabled; }
  bool userEnabledMemEfficientSDP() const { return sdp_efficient_; }
  void setSDPUseMemEfficient(bool enabled) { sdp_efficient_ = enabled; }
  bool userEnabledMathSDP() const { return sdp_math_; }
  void setSDPUseMath(bool enabled) { sdp_math_ = enabled; }
  bool userEnabledCuDNNSDP() const { return sdp_cudnn_; }
  void setSDPUseCuDNN(bool enabled) { sdp_cudnn_ = enabled; }

  // ---- all ----
  // torch.use_deterministic_algorithms: also makes cuDNN deterministic.
  bool deterministicAlgorithms() const { return deterministic_algorithms_; }
  // No operator of the library is refused for want of such an algorithm; those of programs are, or warn: `warn_only`.
  void setDeterministicAlgorithms(bool deterministic, bool warn_only = false) {
    deterministic_algorithms_ = deterministic;
    deterministic_warn_only_ = warn_only;
  }
  bool deterministicAlgorithmsWarnOnly() const { return deterministic_warn_only_; }
  /// Whether empty() and its kin then give NaN, true and the greatest integer in place of whatever the memory holds; on
  /// by default. torch.utils.deterministic.fill_uninitialized_memory.
  bool deterministicFillUninitializedMemory() const { return deterministic_fill_; }
  void setDeterministicFillUninitializedMemory(bool fill) { deterministic_fill_ = fill; }
  /// What a program's operator calls that has no deterministic algorithm. Throws Error, or warns, where only those may
  /// run.
  static void alertNotDeterministic(std::string_view caller);
  /// default_generator(device).
  const Generator& defaultGenerator(Device device) const;

 private:
  Float32MatmulPrecision float32_matmul_precision_ = Float32MatmulPrecision::Highest;
  bool allow_fp16_reduction_ = true, allow_bf16_reduction_ = true;
  bool cudnn_enabled_ = true, cudnn_benchmark_ = false, cudnn_deterministic_ = false, cudnn_allow_tf32_ = true;
  bool sdp_flash_ = true, sdp_efficient_ = true, sdp_math_ = true, sdp_cudnn_ = true;
  bool deterministic_algorithms_ = false, deterministic_warn_only_ = false, deterministic_fill_ = true;
  int cudnn_benchmark_limit_ = 10;
};

/// at::globalContext.
Context& globalContext();

}  // namespace rush
