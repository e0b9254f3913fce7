#include "nn/parallel/comm_hooks.h"

#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;

static distributed::WorkPtr compressed_all_reduce(const Tensor& buffer, ScalarType dtype,
                                                  const distributed::Group& group) {
  const Tensor compressed = buffer.to(dtype);
  distributed::WorkPtr work = distributed::all_reduce(compressed, ReduceOp::AVG, group, /*async_op=*/true);
  work->copy_when_done(buffer, compressed);
  return work;
}

distributed::WorkPtr allreduce_hook(const GradBucket& bucket, const distributed::Group& group) {
  return distributed::all_reduce(bucket.buffer, ReduceOp::AVG, group, /*async_op=*/true);
}

distributed::WorkPtr bf16_compress_hook(const GradBucket& bucket, const distributed::Group& group) {
  return compressed_all_reduce(bucket.buffer, kBFloat16, group);
}

distributed::WorkPtr fp16_compress_hook(const GradBucket& bucket, const distributed::Group& group) {
  return compressed_all_reduce(bucket.buffer, kFloat16, group);
}

}  // namespace rush::nn::parallel
