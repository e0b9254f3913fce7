#include "backends/cuda/memory/mark_written.h"

#include <nvtx3/nvToolsExtMemCudaRt.h>

#include "backends/cuda/memory/allocator_config.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

namespace {

void mark(const void* data, size_t nbytes) {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("rushlight");
  nvtxMemVirtualRangeDesc_t range = {};
  range.ptr = data;
  range.size = nbytes;
  nvtxMemMarkInitializedBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.regionDescCount = 1;
  batch.regionDescElementSize = sizeof(range);
  batch.regionDescElements = &range;
  nvtxMemCudaMarkInitialized(domain, current_stream(), 0, &batch);
}

}  // namespace

void mark_written(const Tensor& result) {
  if (!AllocatorConfig::of_process().passthrough || !result.defined() || result.device().is_meta()) return;
  const int64_t extent = storage_extent(result.sizes(), result.strides(), 0);
  mark(result.data_ptr(), static_cast<size_t>(extent) * result.element_size());
}

void mark_written(const Scratch& workspace) {
  if (AllocatorConfig::of_process().passthrough) mark(workspace.data(), workspace.size());
}

}  // namespace rush::cuda
