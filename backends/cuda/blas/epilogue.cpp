#include "backends/cuda/blas/epilogue.h"

#include <cublasLt.h>

#include <array>
#include <memory>

#include "backends/cuda/blas/handle.h"
#include "backends/cuda/blas/operand.h"
#include "backends/cuda/library_plans.h"
#include "backends/cuda/memory/mark_written.h"

namespace rush::cuda {

namespace {

// Everything that cuBLASLt's choice of a kernel depends on.
struct AlgorithmKey {
  int64_t m, n, k, lda, ldb, ldc;
  std::array<int32_t, 6> choices;     // device, dtype, compute type, epilogue, op of a and b
  std::array<int32_t, 5> alignments;  // of a, b, c, vector and aux, in bytes; and whether sums are in full
  int32_t full_sums;

  friend bool operator==(const AlgorithmKey&, const AlgorithmKey&) = default;
};

struct AlgorithmKeyHash {
  size_t operator()(const AlgorithmKey& key) const {
    WordHash hash;
    for (const int64_t size : {key.m, key.n, key.k, key.lda, key.ldb, key.ldc}) hash.mix(size);
    for (const int32_t choice : key.choices) hash.mix(choice);
    for (const int32_t alignment : key.alignments) hash.mix(alignment);
    hash.mix(key.full_sums);
    return hash.value();
  }
};

struct Algorithm {
  bool exists = false;
  cublasLtMatmulAlgo_t algo;
};

// The largest power of two, up to 256, that divides an address. Null counts as aligned.
int32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return bits == 0 ? 256 : static_cast<int32_t>(std::min<uintptr_t>(bits & (~bits + 1), 256));
}

const void* data_of(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

cublasLtEpilogue_t library_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::Bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::GeluAuxBias: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

cudaDataType scale_type(ScalarType dtype) { return dtype == kFloat64 ? CUDA_R_64F : CUDA_R_32F; }

// One call's descriptors, on the stack.
class LtCall {
 public:
  LtCall(const EpilogueProduct& p, const Blas& blas)
      : p_(p),
        blas_(blas),
        dtype_(p.c.scalar_type()),
        c_(Matrices(p.c).transposed()),
        a_(Matrices(p.b).transposed()),
        b_(Matrices(p.a).transposed()),
        depth_(p.b.sizes()[1]) {
    describe_product();
    describe_matrices();
  }

  bool run() {
    const std::shared_ptr<const Algorithm> algorithm = find_algorithm();
    if (!algorithm->exists) return false;
    const BlasScalar one(1, dtype_), zero(0, dtype_);
    RUSH_CUDA_CHECK(cublasLtMatmul(blas_.lt(), &matmul_, one.data(), a_.data, &a_layout_, b_.data, &b_layout_,
                                   zero.data(), c_.data, &c_layout_, c_.data, &c_layout_, &algorithm->algo,
                                   blas_.workspace(), blas_.workspace_size(), blas_.stream()));
    mark_written(p_.c);
    mark_written(p_.aux);
    return true;
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    RUSH_CUDA_CHECK(cublasLtMatmulDescSetAttribute(&matmul_, attribute, &value, sizeof(value)));
  }

  void describe_product() {
    RUSH_CUDA_CHECK(cublasLtMatmulDescInit(&matmul_, compute_type(dtype_), scale_type(dtype_)));
    set(CUBLASLT_MATMUL_DESC_TRANSA, a_.op);
    set(CUBLASLT_MATMUL_DESC_TRANSB, b_.op);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(p_.epilogue));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p_.vector.data_ptr());
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(library_type(dtype_, "linear")));
    if (p_.aux.defined()) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p_.aux.data_ptr());
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p_.aux.sizes()[1]);
    }
  }

  void describe_matrices() {
    const cudaDataType type = library_type(dtype_, "linear");
    const auto layout = [&](cublasLtMatrixLayoutOpaque_t& out, cublasOperation_t op, int64_t rows, int64_t columns,
                            int64_t ld) {
      if (op == CUBLAS_OP_T) std::swap(rows, columns);
      RUSH_CUDA_CHECK(
          cublasLtMatrixLayoutInit(&out, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
    };
    layout(a_layout_, a_.op, c_.rows, depth_, a_.ld);
    layout(b_layout_, b_.op, depth_, c_.columns, b_.ld);
    layout(c_layout_, CUBLAS_OP_N, c_.rows, c_.columns, *c_.leading());
  }

  AlgorithmKey key() const {
    return {c_.rows,
            c_.columns,
            depth_,
            a_.ld,
            b_.ld,
            *c_.leading(),
            {blas_.device(), static_cast<int32_t>(dtype_), compute_type(dtype_), static_cast<int32_t>(p_.epilogue),
             a_.op, b_.op},
            {alignment_of(a_.data), alignment_of(b_.data), alignment_of(c_.data), alignment_of(p_.vector.data_ptr()),
             alignment_of(data_of(p_.aux))},
            sums_in_full(dtype_)};
  }

  std::shared_ptr<const Algorithm> find_algorithm() const {
    static auto& known = *new LibraryPlans<AlgorithmKey, Algorithm, AlgorithmKeyHash>(kMostPlans);
    const AlgorithmKey key = this->key();
    return known.of(key, /*is_captured=*/false, [&] { return ask_for_algorithm(key); });
  }

  Algorithm ask_for_algorithm(const AlgorithmKey& key) const {
    cublasLtMatmulPreferenceOpaque_t preference;
    RUSH_CUDA_CHECK(cublasLtMatmulPreferenceInit(&preference));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      RUSH_CUDA_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(blas_.workspace_size()));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key.alignments[0]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key.alignments[1]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key.alignments[2]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key.alignments[2]));
    if (key.full_sums) {
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    }
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        blas_.lt(), &matmul_, &a_layout_, &b_layout_, &c_layout_, &c_layout_, &preference, 1, &result, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
    if (status != CUBLAS_STATUS_SUCCESS) throw_error(status, "cublasLtMatmulAlgoGetHeuristic");
    return {found == 1 && result.state == CUBLAS_STATUS_SUCCESS, result.algo};
  }

  const EpilogueProduct& p_;
  const Blas& blas_;
  ScalarType dtype_;
  Matrices c_;
  Operand a_, b_;
  int64_t depth_;
  // The functions take pointers to constant descriptors that are not declared so.
  mutable cublasLtMatmulDescOpaque_t matmul_;
  mutable cublasLtMatrixLayoutOpaque_t a_layout_, b_layout_, c_layout_;
};

}  // namespace

bool multiply_with_epilogue(const EpilogueProduct& p) {
  const ScalarType dtype = p.c.scalar_type();
  if (!is_floating_point(dtype) || p.b.sizes()[1] == 0) return false;
  if (!Matrices(p.c).transposed().leading() || !Matrices(p.a).readable() || !Matrices(p.b).readable()) return false;
  if (p.vector.dim() != 1 || (p.vector.numel() > 1 && p.vector.strides()[0] != 1)) return false;
  if (p.aux.defined() && !p.aux.is_contiguous()) return false;
  if (p.c.device().is_meta()) {
    estimate_blas_workspace();
    return true;
  }
  const Blas blas;
  return LtCall(p, blas).run();
}

}  // namespace rush::cuda
