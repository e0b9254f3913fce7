#include "examples/processes/processes.h"

#include <cstdio>
#include <exception>

#include "backends/cuda/devices.h"
#include "core/distributed/collectives.h"
#include "core/distributed/environment.h"
#include "core/ops/basic.h"

namespace examples {

namespace distributed = rush::distributed;

Processes::Processes(rush::Device device) : device_(device) {
  const distributed::Environment environment = distributed::read_environment();
  if (!environment.started_by_mpi && environment.world_size.value_or(1) == 1) return;
  const bool has_own_gpu = device.is_cuda() && distributed::is_backend_available("nccl") &&
                           environment.local_world_size.value_or(1) <= rush::cuda::device_count();
  distributed::init_process_group(has_own_gpu ? "nccl" : "mpi");
  rank_ = distributed::get_rank();
  count_ = distributed::get_world_size();
  if (!is_first() && !std::freopen("/dev/null", "w", stdout)) {
    RUSH_THROW(rush::IOError, "cannot open /dev/null");
  }
}

Processes::~Processes() {
  if (distributed::is_initialized() && std::uncaught_exceptions() == 0) distributed::destroy_process_group();
}

void Processes::check_batch(int64_t batch_size) const {
  RUSH_CHECK_VALUE(batch_size % count_ == 0, "--batch_size ", batch_size, " cannot be split evenly among ", count_,
                   " processes");
}

void Processes::wait() const {
  if (count_ > 1) distributed::barrier();
}

rush::Tensor Processes::rows(const rush::Tensor& batch) const {
  const int64_t rows = batch.size(0) / count_;
  return batch.narrow(0, rank_ * rows, rows);
}

rush::Tensor Processes::mean(const rush::Tensor& numbers) const {
  if (count_ == 1) return numbers;
  rush::Tensor means = numbers.clone();
  distributed::all_reduce(means, distributed::ReduceOp::AVG);
  return means;
}

bool Processes::any(bool here) const {
  if (count_ == 1) return here;
  return mean(rush::full({}, here ? 1 : 0, rush::TensorOptions(rush::kFloat32).device(device_))).item<float>() > 0;
}

}  // namespace examples
