#include "core/ops/write_back.h"

#include "core/device/guard.h"
#include "core/memory/has_data.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush::native {

WriteBack::WriteBack() = default;
WriteBack::~WriteBack() = default;

Tensor WriteBack::copy(const Tensor& target) {
  RUSH_CHECK_VALUE(!may_overlap(target.sizes(), target.strides()), "a tensor of sizes ", target.sizes(),
                   " and strides ", target.strides(),
                   " cannot be written: several of its elements share memory; clone it first");
  RUSH_CHECK_NOT_IMPLEMENTED(target.is_meta() || detail::has_data(target), "a tensor of sizes ", target.sizes(),
                             " is a DTensor, whose elements cannot be copied here");
  const Tensor made = clone_contiguous(target);
  auto loop = std::make_unique<TensorIterator>("copy_", target, made, Promotion::None, target.scalar_type());
  copies_.push_back({target, std::move(loop)});
  return made;
}

void WriteBack::run() {
  for (const Copy& copy : copies_) {
    const DeviceGuard guard(copy.target.device());
    kernels::copy(copy.loop->device_type(), *copy.loop);
    copy.target.bump_version();
  }
}

}  // namespace rush::native
