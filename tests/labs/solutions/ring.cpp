// All-reduce in a ring, and data parallelism on top of it.
#include "tests/labs/solutions/ring.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/join.h"
#include "core/ops/view/view.h"
#include "optim/optimizer.h"

namespace rush::labs {

Chunk chunk_of(int64_t count, int size, int index) {
  const int64_t least = count / size, longer = count % size;
  return {index * least + std::min<int64_t>(index, longer), least + (index < longer ? 1 : 0)};
}

static int next_rank(const Wire& wire) { return (wire.rank() + 1) % wire.size(); }
static int previous_rank(const Wire& wire) { return (wire.rank() + wire.size() - 1) % wire.size(); }

// The chunk of an index that may be negative, down to -2 * size.
static Chunk chunk_in_ring(const Wire& wire, int64_t count, int index) {
  return chunk_of(count, wire.size(), (index + 2 * wire.size()) % wire.size());
}

// One chunk goes to the next rank while another comes from the one before. If all sent first, nobody would receive; so
// even ranks send first and odd ones receive first.
static void shift(Wire& wire, const float* out, int64_t out_count, float* in, int64_t in_count) {
  const bool sends_first = wire.rank() % 2 == 0;
  if (sends_first) wire.send(out, out_count, next_rank(wire));
  wire.recv(in, in_count, previous_rank(wire));
  if (!sends_first) wire.send(out, out_count, next_rank(wire));
}

void ring_reduce_scatter(Wire& wire, float* data, int64_t count) {
  std::vector<float> received(static_cast<size_t>(chunk_of(count, wire.size(), 0).count));
  for (int step = 0; step < wire.size() - 1; ++step) {
    const Chunk out = chunk_in_ring(wire, count, wire.rank() - 1 - step);
    const Chunk in = chunk_in_ring(wire, count, wire.rank() - 2 - step);
    shift(wire, data + out.begin, out.count, received.data(), in.count);
    for (int64_t i = 0; i < in.count; ++i) data[in.begin + i] += received[static_cast<size_t>(i)];
  }
}

void ring_all_gather(Wire& wire, float* data, int64_t count) {
  for (int step = 0; step < wire.size() - 1; ++step) {
    const Chunk out = chunk_in_ring(wire, count, wire.rank() - step);
    const Chunk in = chunk_in_ring(wire, count, wire.rank() - 1 - step);
    shift(wire, data + out.begin, out.count, data + in.begin, in.count);
  }
}

void ring_all_reduce(Wire& wire, float* data, int64_t count) {
  ring_reduce_scatter(wire, data, count);
  ring_all_gather(wire, data, count);
}

void ring_broadcast(Wire& wire, float* data, int64_t count) {
  if (wire.rank() > 0) wire.recv(data, count, wire.rank() - 1);
  if (wire.rank() < wire.size() - 1) wire.send(data, count, wire.rank() + 1);
}

void broadcast_parameters(Wire& wire, const std::vector<Tensor>& parameters) {
  const NoGradGuard no_grad;
  for (const Tensor& parameter : parameters) {
    const Tensor values = parameter.contiguous();
    ring_broadcast(wire, values.data_ptr<float>(), values.numel());
    if (!parameter.is_contiguous()) parameter.copy_(values);
  }
}

// The gradients become views of one array, the bucket, which travels whole.
static void average_bucket(Wire& wire, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& parameter : parameters) {
    const Tensor& gradient = parameter.grad();
    flat.push_back(gradient.defined() ? gradient.flatten() : zeros({parameter.numel()}));
  }
  Tensor bucket = cat(flat);
  ring_all_reduce(wire, bucket.data_ptr<float>(), bucket.numel());
  bucket.div_(wire.size());
  int64_t begin = 0;
  for (const Tensor& parameter : parameters) {
    parameter.mutable_grad() = bucket.narrow(0, begin, parameter.numel()).view(parameter.sizes());
    begin += parameter.numel();
  }
}

void average_gradients(Wire& wire, const std::vector<Tensor>& parameters, int64_t bucket_size) {
  const NoGradGuard no_grad;
  std::vector<Tensor> bucket;
  int64_t elements = 0;
  for (const Tensor& parameter : parameters) {
    if (!bucket.empty() && elements + parameter.numel() > bucket_size) {
      average_bucket(wire, bucket);
      bucket.clear();
      elements = 0;
    }
    bucket.push_back(parameter);
    elements += parameter.numel();
  }
  if (!bucket.empty()) average_bucket(wire, bucket);
}

float train_step(Wire& wire, optim::Optimizer& optimizer, const std::function<Tensor()>& loss, int64_t bucket_size) {
  optimizer.zero_grad();
  const Tensor own = loss();
  own.backward();
  average_gradients(wire, optimizer.parameters(), bucket_size);
  optimizer.step();
  float mean = own.item<float>();
  ring_all_reduce(wire, &mean, 1);
  return mean / static_cast<float>(wire.size());
}

}  // namespace rush::labs
