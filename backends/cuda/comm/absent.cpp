// Where there are no headers of NCCL, init_process_group does not know "nccl".
#include "backends/cuda/register.h"

namespace rush::cuda {

void register_nccl() {}

}  // namespace rush::cuda
