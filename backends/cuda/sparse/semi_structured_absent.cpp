// Replaces semi_structured.cpp in a build without cuSPARSELt.
#include "backends/cuda/sparse/cusparselt.h"
#include "backends/cuda/sparse/semi_structured.h"

namespace rush::cuda {

namespace {

[[noreturn]] void throw_without_cusparselt(const char* op) {
  RUSH_THROW(NotImplementedError, op,
             ": this library was built without cuSPARSELt (RUSH_CUSPARSELT_DIR tells CMake where it is)");
}

}  // namespace

void cslt_compress(Tensor&, const Tensor&) { throw_without_cusparselt("_cslt_compress"); }
void cslt_decompress(const Tensor&, const Tensor&) { throw_without_cusparselt("_cslt_decompress"); }
void cslt_sparse_mm(const Tensor&, const SemiStructuredProduct&) { throw_without_cusparselt("_cslt_sparse_mm"); }

namespace cusparselt {

bool is_available() { return false; }
int64_t version() { return 0; }
int64_t plan_cache_size() { return 0; }
void clear_plan_cache() {}

}  // namespace cusparselt

}  // namespace rush::cuda
