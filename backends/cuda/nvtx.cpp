// RUSH_NVTX=1: every operator that runs on a GPU is a range in Nsight's timelines.
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>

#include "backends/cuda/register.h"
#include "core/dispatch/call_ranges.h"
#include "core/dispatch/op.h"

namespace rush::cuda {

namespace {

// They return how deep the ranges nest, or a negative number where no tool listens.
void begin_range(std::string_view op) { static_cast<void>(nvtxRangePushA(std::string(op).c_str())); }
void end_range() noexcept { static_cast<void>(nvtxRangePop()); }

}  // namespace

void register_nvtx() {
  const char* wanted = std::getenv("RUSH_NVTX");
  if (!wanted || std::string_view(wanted) != "1") return;
  detail::call_ranges = {begin_range, end_range};
  devices_to_check |= kCUDA;
}

}  // namespace rush::cuda
