// Products with 2:4 matrices through cuSPARSELt. https://docs.nvidia.com/cuda/cusparselt
//
// Note [cuSPARSELt's plans]
// A plan describes a product once and is cached. The bias's address belongs to it, because the documentation does not
// say whether an address that is set later takes effect; a layer's bias keeps its address. The descriptors that a plan
// was made of live as long as it does, at one address, because it may point at them. Each call takes its workspace from
// the caching allocator. Releases from 0.7 on are supported. A factor for each row is multiplied by our own kernel, at
// the cost of one rounding: cuSPARSELt has it for integers only, or not on all GPUs.
//
// cusparseLtMatmulSearch, which would find the fastest algorithm, ends in an illegal instruction on an H100 (0.8.0).
#include "backends/cuda/sparse/semi_structured.h"

#include <cusparseLt.h>

#include <map>

#include "backends/cuda/blas/operand.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/library_plans.h"
#include "backends/cuda/memory/mark_written.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/sparse/cusparselt.h"
#include "backends/cuda/sparse/handle.h"
#include "backends/cuda/stream/current_stream.h"
#include "backends/functors/semi_structured.h"
#include "core/ops/factory/range.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

constexpr int64_t kMostPlans = 1024;
constexpr uint32_t kAlignment = 16;  // of all operands and of cuSPARSELt's structs, in bytes

// ---- descriptors ----

// An opaque struct of cuSPARSELt's that `init(&object)` fills, checking the status, and `destroy` frees, if there is
// anything to free. It stays at its address.
template <class T, auto destroy = nullptr>
class LtObject {
 public:
  template <class Init>
  explicit LtObject(const Init& init) {
    init(&object_);
    ++live_cusparselt_objects;
  }
  ~LtObject() {
    if constexpr (!std::is_null_pointer_v<decltype(destroy)>) {
      const RelaxedCapture relaxed;
      static_cast<void>(destroy(&object_));  // cannot fail for an object that was made
    }
    --live_cusparselt_objects;
  }
  LtObject(const LtObject&) = delete;
  LtObject& operator=(const LtObject&) = delete;

  const T* get() const { return &object_; }

 private:
  alignas(kAlignment) T object_ = {};  // 0.7 does not ask for it
};

#if CUSPARSELT_VERSION >= 800
using LtSelection = LtObject<cusparseLtMatmulAlgSelection_t, cusparseLtMatmulAlgSelectionDestroy>;
#else
using LtSelection = LtObject<cusparseLtMatmulAlgSelection_t>;
#endif
using LtMatrix = LtObject<cusparseLtMatDescriptor_t, cusparseLtMatDescriptorDestroy>;
using LtProduct = LtObject<cusparseLtMatmulDescriptor_t>;
using LtPlan = LtObject<cusparseLtMatmulPlan_t, cusparseLtMatmulPlanDestroy>;

LtMatrix describe_sparse(const cusparseLtHandle_t& handle, int64_t rows, int64_t columns, cudaDataType type) {
  return LtMatrix([&](cusparseLtMatDescriptor_t* made) {
    RUSH_CUDA_CHECK(cusparseLtStructuredDescriptorInit(&handle, made, rows, columns, columns, kAlignment, type,
                                                       CUSPARSE_ORDER_ROW, CUSPARSELT_SPARSITY_50_PERCENT));
  });
}
// A dense matrix without gaps between rows, or between columns, as `order` says.
LtMatrix describe_dense(const cusparseLtHandle_t& handle, int64_t rows, int64_t columns, cudaDataType type,
                        cusparseOrder_t order = CUSPARSE_ORDER_ROW) {
  return LtMatrix([&](cusparseLtMatDescriptor_t* made) {
    RUSH_CUDA_CHECK(cusparseLtDenseDescriptorInit(
        &handle, made, rows, columns, order == CUSPARSE_ORDER_ROW ? columns : rows, kAlignment, type, order));
  });
}

// Kernels read the indices of the values, 2 bits each, in chunks of up to 1 KiB, even if fewer bytes remain in the size
// that cuSPARSELt reports (0.8.0; memcheck showed it for 16 x 16 and for 96 x 160).
constexpr size_t kRoomAtTheEnd = 1024;

struct CompressedSize {
  int64_t words;  // of a row of the compressed matrix, in elements
  size_t buffer;  // bytes while it is made
};

CompressedSize compressed_size(const cusparseLtHandle_t& handle, const LtMatrix& matrix, int64_t rows, int64_t columns,
                               int64_t element_size) {
  size_t bytes = 0, buffer = 0;
  RUSH_CUDA_CHECK(cusparseLtSpMMACompressedSize2(&handle, matrix.get(), &bytes, &buffer));
  const int64_t row = rows * element_size;
  const int64_t words = (static_cast<int64_t>(bytes + kRoomAtTheEnd) + row - 1) / row;
  const bool looks_like_the_cpus = words == functors::cpu_words_of_row(columns, element_size);
  return {words + looks_like_the_cpus, buffer};
}

// ---- plans ----

struct PlanKey {
  int64_t m, n, k;
  ScalarType dtype;
  bool dense_transposed, result_transposed;
  int32_t algorithm, split_k, split_k_mode;
  const void* bias;

  explicit PlanKey(const SemiStructuredProduct& p)
      : m(p.packed.size(0)),
        n(p.columns()),
        k(p.depth()),
        dtype(p.packed.scalar_type()),
        dense_transposed(p.dense_transposed),
        result_transposed(p.result_transposed),
        algorithm(p.algorithm),
        split_k(p.split_k),
        split_k_mode(p.split_k_mode),
        bias(p.bias.defined() ? p.bias.data_ptr() : nullptr) {}
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    WordHash hash;
    for (const int64_t size : {key.m, key.n, key.k}) hash.mix(size);
    hash.mix(static_cast<int64_t>(key.dtype) | key.dense_transposed << 8 | key.result_transposed << 9);
    for (const int32_t choice : {key.algorithm, key.split_k, key.split_k_mode}) hash.mix(choice);
    hash.mix(static_cast<int64_t>(reinterpret_cast<uintptr_t>(key.bias)));
    return hash.value();
  }
};

class SemiStructuredPlan {
 public:
  SemiStructuredPlan(const PlanKey& key, const cusparseLtHandle_t& handle)
      : SemiStructuredPlan(key, handle, OutsideCapture()) {}

  // Of a row of A.
  int64_t words() const { return words_; }

  void run(const SemiStructuredProduct& p, void* out, cudaStream_t stream) const {
    const Scratch workspace(workspace_);
    const float zero = 0;
    RUSH_CUDA_CHECK(cusparseLtMatmul(&handle_, plan_.get(), &p.scale, p.packed.data_ptr(), p.dense.data_ptr(), &zero,
                                     out, out, workspace.data(), &stream, 1));
  }

 private:
  SemiStructuredPlan(const PlanKey& key, const cusparseLtHandle_t& handle, const OutsideCapture&)
      : handle_(handle),
        type_(library_type(key.dtype, "_cslt_sparse_mm")),
        a_(describe_sparse(handle, key.m, key.k, type_)),
        b_(key.dense_transposed ? describe_dense(handle, key.n, key.k, type_)
                                : describe_dense(handle, key.k, key.n, type_)),
        c_(describe_dense(handle, key.m, key.n, type_,
                          key.result_transposed ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW)),
        product_([&](cusparseLtMatmulDescriptor_t* made) { describe(made, key); }),
        selection_([&](cusparseLtMatmulAlgSelection_t* made) { select(made, key); }),
        plan_([&](cusparseLtMatmulPlan_t* made) {
          RUSH_CUDA_CHECK(cusparseLtMatmulPlanInit(&handle, made, product_.get(), selection_.get()));
        }),
        // a_ does not tell: it describes the matrix as smaller than it was when it was compressed.
        words_(
            compressed_size(handle, describe_sparse(handle, key.m, key.k, type_), key.m, key.k, element_size(key.dtype))
                .words) {
    RUSH_CUDA_CHECK(cusparseLtMatmulGetWorkspace(&handle, plan_.get(), &workspace_));
  }

  // D = alpha A op(B) + bias; C has the factor 0 and D's layout.
  void describe(cusparseLtMatmulDescriptor_t* made, const PlanKey& key) const {
    RUSH_CUDA_CHECK(cusparseLtMatmulDescriptorInit(
        &handle_, made, CUSPARSE_OPERATION_NON_TRANSPOSE,
        key.dense_transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE, a_.get(), b_.get(),
        c_.get(), c_.get(), CUSPARSE_COMPUTE_32F));
    if (key.bias) {
      RUSH_CUDA_CHECK(cusparseLtMatmulDescSetAttribute(&handle_, made, CUSPARSELT_MATMUL_BIAS_POINTER, &key.bias,
                                                       sizeof(key.bias)));
    }
  }

  void select(cusparseLtMatmulAlgSelection_t* made, const PlanKey& key) const {
    RUSH_CUDA_CHECK(cusparseLtMatmulAlgSelectionInit(&handle_, made, product_.get(), CUSPARSELT_MATMUL_ALG_DEFAULT));
    const auto choose = [&](cusparseLtMatmulAlgAttribute_t attribute, const auto& value) {
      RUSH_CUDA_CHECK(cusparseLtMatmulAlgSetAttribute(&handle_, made, attribute, &value, sizeof(value)));
    };
    choose(CUSPARSELT_MATMUL_ALG_CONFIG_ID, key.algorithm);
    if (key.split_k == 1) return;
    choose(CUSPARSELT_MATMUL_SPLIT_K, key.split_k);
    if (key.split_k_mode > 0) {
      choose(CUSPARSELT_MATMUL_SPLIT_K_MODE, static_cast<cusparseLtSplitKMode_t>(key.split_k_mode));
    }
  }

  const cusparseLtHandle_t& handle_;
  cudaDataType type_;
  LtMatrix a_, b_, c_;
  LtProduct product_;
  LtSelection selection_;
  LtPlan plan_;
  int64_t words_;
  size_t workspace_ = 0;
};

// ---- devices ----

// A handle belongs to a device and, unlike those of other libraries, to no stream. It is never destroyed, see Note
// [Handles of libraries].
struct SparseLt {
  alignas(kAlignment) cusparseLtHandle_t handle = {};
  LibraryPlans<PlanKey, SemiStructuredPlan, PlanKeyHash> plans{kMostPlans};
};

bool has_sparse_tensor_cores(const cudaDeviceProp& device) { return device.major >= 8; }

SparseLt& of_current_device(const char* op) {
  static auto& states = *new std::map<int, std::unique_ptr<SparseLt>>;
  static auto& mutex = *new std::mutex;
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<SparseLt>& state = states[device];
  if (!state) {
    const cudaDeviceProp& properties = current_properties();
    RUSH_CHECK_NOT_IMPLEMENTED(has_sparse_tensor_cores(properties), op,
                               ": needs a GPU of compute capability 8.0 or newer, this is ", properties.major, ".",
                               properties.minor);
    const OutsideCapture relaxed;
    auto made = std::make_unique<SparseLt>();
    RUSH_CUDA_CHECK(cusparseLtInit(&made->handle));
    state = std::move(made);
  }
  enter_context();
  return *state;
}

cudaDataType checked_type(ScalarType dtype, const char* op) {
  RUSH_CHECK_NOT_IMPLEMENTED(dtype == kFloat16 || dtype == kBFloat16, op,
                             ": on CUDA for float16 and bfloat16, not for ", dtype);
  return library_type(dtype, op);
}

// A contiguous tensor itself if it is aligned, otherwise a copy.
Tensor aligned(const Tensor& t) {
  return t.defined() && reinterpret_cast<uintptr_t>(t.data_ptr()) % kAlignment != 0 ? t.clone() : t;
}

}  // namespace

void cslt_compress(Tensor& packed, const Tensor& dense) {
  constexpr const char* op = "_cslt_compress";
  const cudaDataType type = checked_type(dense.scalar_type(), op);
  const Tensor from = aligned(dense);
  const int64_t rows = dense.size(0);
  SparseLt& lt = of_current_device(op);
  const std::lock_guard<std::mutex> lock(lt.plans.mutex());
  const LtMatrix matrix = describe_sparse(lt.handle, rows, dense.size(1), type);
  const CompressedSize size = compressed_size(lt.handle, matrix, rows, dense.size(1), dense.element_size());
  const Tensor to = rush::detail::empty_contiguous({rows, size.words}, dense.scalar_type(), dense.device());
  const Scratch buffer(size.buffer);
  constexpr int is_left_factor = 1;
  RUSH_CUDA_CHECK(cusparseLtSpMMACompress2(&lt.handle, matrix.get(), is_left_factor, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                           from.data_ptr(), to.data_ptr(), buffer.data(), current_stream()));
  mark_written(to);
  packed = to;
}

namespace {

// out = alpha A B + bias with a factor for each row.
void scale_rows(const Tensor& out, const SemiStructuredProduct& product) {
  SemiStructuredProduct plain = product;
  plain.alpha = plain.bias = Tensor();
  cslt_sparse_mm(out, plain);
  const auto of_rows = [&](const Tensor& t) { return product.result_transposed ? t : t.unsqueeze(1); };
  Tensor scaled = out.to(kFloat32).mul_(of_rows(product.alpha));
  if (product.bias.defined()) scaled.add_(of_rows(product.bias));
  out.copy_(scaled);
}

}  // namespace

void cslt_sparse_mm(const Tensor& out, const SemiStructuredProduct& product) {
  constexpr const char* op = "_cslt_sparse_mm";
  static_cast<void>(checked_type(out.scalar_type(), op));
  if (product.alpha.defined()) return scale_rows(out, product);
  SemiStructuredProduct p = product;
  for (Tensor* operand : {&p.packed, &p.dense, &p.bias}) *operand = aligned(*operand);
  const cudaStream_t stream = current_stream();
  SparseLt& lt = of_current_device(op);
  const std::lock_guard<std::mutex> lock(lt.plans.mutex());
  const std::shared_ptr<const SemiStructuredPlan> plan = lt.plans.find_or_make(PlanKey(p), lt.handle);
  RUSH_CHECK_VALUE(p.packed.size(1) == plan->words(), op, ": a (", p.packed.size(0), ", ", p.depth(),
                   ") matrix compressed on CUDA has shape (", p.packed.size(0), ", ", plan->words(), "), got ",
                   p.packed.sizes());
  plan->run(p, out.data_ptr(), stream);
  mark_written(out);
  if (is_capturing(stream)) lt.plans.keep_for_graphs(plan);
}

// Multiplies by the identity, because only cuSPARSELt knows the compressed format.
void cslt_decompress(const Tensor& dense, const Tensor& packed) {
  SemiStructuredProduct product;
  product.packed = packed;
  product.dense = eye(dense.size(1), packed.options());
  cslt_sparse_mm(dense, product);
}

namespace cusparselt {

bool is_available() { return device_count() > 0 && has_sparse_tensor_cores(current_properties()); }

int64_t version() {
  int version = 0;
  SparseLt& lt = of_current_device("cusparselt::version");
  RUSH_CUDA_CHECK(cusparseLtGetVersion(&lt.handle, &version));
  return version;
}

int64_t plan_cache_size() {
  SparseLt& lt = of_current_device("cusparselt::plan_cache_size");
  const std::lock_guard<std::mutex> lock(lt.plans.mutex());
  return lt.plans.size();
}

void clear_plan_cache() {
  SparseLt& lt = of_current_device("cusparselt::clear_plan_cache");
  const std::lock_guard<std::mutex> lock(lt.plans.mutex());
  lt.plans.shrink_to(0);
}

}  // namespace cusparselt

}  // namespace rush::cuda
