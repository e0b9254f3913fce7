// RUSH_NVTX=1: every operator that runs on a GPU is a range in Nsight's timelines.
#include <nvtx3/nvToolsExt.h>

#include <string>

#include "backends/cuda/register.h"
#include "core/environment_flag.h"
#include "core/profiler/record.h"

namespace rush::cuda {

void register_nvtx() {
  if (!environment_flag("RUSH_NVTX")) return;
  // They return how deep the ranges nest, or a negative number where no tool listens.
  profiler::call_ranges = {[](std::string_view op) { static_cast<void>(nvtxRangePushA(std::string(op).c_str())); },
                           []() noexcept { static_cast<void>(nvtxRangePop()); }};
  watching |= DispatchKey::Profiler;
}

}  // namespace rush::cuda
