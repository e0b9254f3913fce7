#include "nn/parallel/power_sgd.h"

#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/random/random_factories.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;
using distributed::WorkPtr;

namespace {

// The Q of a QR decomposition: orthonormal columns.
Tensor orthogonal(const Tensor& columns) { return std::get<0>(linalg_qr(columns)); }

// What is kept of one gradient, and used during a step: Note [PowerSGD].
struct Factors {
  Tensor q, error;          // from the last step
  Tensor gradient, matrix;  // (n, m): of the bucket; with the error added to it
  Tensor p;                 // (n, r)
};

class PowerSGD {
 public:
  explicit PowerSGD(const PowerSGDOptions& options)
      : options_(options), generator_(make_generator<CPUGeneratorImpl>(options.random_seed())) {}

  WorkPtr begin(const GradBucket& bucket, const distributed::Group& group) {
    const NoGradGuard no_grad;
    const bool compresses = passes_ >= options_.start_powerSGD_iter();
    passes_ += bucket.is_last;
    if (!compresses) return allreduce_hook(bucket, group);
    std::vector<Factors>& all = buckets_[bucket.index];
    const WorkPtr whole = distributed::all_reduce_coalesced(split(bucket, all), ReduceOp::AVG, group, true);
    std::vector<Tensor> ps;
    for (Factors& f : all) ps.push_back(f.p = f.matrix.matmul(orthogonal(f.q)));
    WorkPtr work = distributed::all_reduce_coalesced(ps, ReduceOp::AVG, group, /*async_op=*/true);
    work->when_done([this, &all, whole, group] {
      whole->wait();
      finish(all, group);
    });
    return work;
  }

 private:
  // The r of a gradient that is compressed; 0 for one that travels whole.
  int64_t rank_of(const Tensor& gradient) const {
    if (gradient.dim() < 2 || gradient.numel() == 0) return 0;
    const int64_t rows = gradient.size(0), columns = gradient.numel() / rows;
    const int64_t rank = std::min({rows, columns, options_.matrix_approximation_rank()});
    const auto numbers = static_cast<double>((rows + columns) * rank);
    return numbers * options_.min_compression_rate() < static_cast<double>(gradient.numel()) ? rank : 0;
  }

  // Brings each gradient that is compressed to its factors, and returns the others.
  std::vector<Tensor> split(const GradBucket& bucket, std::vector<Factors>& all) {
    std::vector<Tensor> whole;
    size_t count = 0;
    for (const Tensor& gradient : bucket.gradients) {
      if (rank_of(gradient) == 0) {
        whole.push_back(gradient);
        continue;
      }
      if (count == all.size()) all.emplace_back();
      take(all[count++], gradient);
    }
    return whole;
  }
  void take(Factors& f, const Tensor& gradient) {
    const bool is_half = element_size(gradient.scalar_type()) == 2;
    f.gradient = gradient.view({gradient.size(0), -1});
    f.matrix = is_half ? f.gradient.to(kFloat32) : f.gradient;
    if (f.error.defined()) f.matrix = f.matrix + f.error;
    if (f.q.defined() && options_.warm_start()) return;
    f.q = randn({f.matrix.size(1), rank_of(gradient)}, generator_, TensorOptions(kCPU)).to(f.matrix.options());
  }
  void finish(std::vector<Factors>& all, const distributed::Group& group) const {
    const NoGradGuard no_grad;
    std::vector<Tensor> qs;
    for (Factors& f : all) {
      f.p = orthogonal(f.p);
      qs.push_back(f.q = f.matrix.t().matmul(f.p));
    }
    distributed::all_reduce_coalesced(qs, ReduceOp::AVG, group);
    for (Factors& f : all) {
      const Tensor product = f.p.matmul(f.q.t());
      if (options_.use_error_feedback()) f.error = f.matrix - product;
      f.gradient.copy_(product);
      f.gradient = f.matrix = f.p = Tensor();
    }
  }

  const PowerSGDOptions options_;
  Generator generator_;
  int64_t passes_ = 0;  // that have begun to send their last bucket
  std::map<size_t, std::vector<Factors>> buckets_;
};

}  // namespace

CommHook powerSGD_hook(const PowerSGDOptions& options) {
  RUSH_CHECK_VALUE(options.matrix_approximation_rank() >= 1, "powerSGD_hook: matrix_approximation_rank is ",
                   options.matrix_approximation_rank(), ", expected at least 1");
  RUSH_CHECK_VALUE(options.start_powerSGD_iter() >= 2, "powerSGD_hook: start_powerSGD_iter is ",
                   options.start_powerSGD_iter(), ", expected at least 2: buckets are made again after the first pass");
  RUSH_CHECK_VALUE(options.min_compression_rate() > 0, "powerSGD_hook: min_compression_rate is ",
                   options.min_compression_rate(), ", expected more than 0");
  const auto state = std::make_shared<PowerSGD>(options);
  return [state](const GradBucket& bucket, const distributed::Group& group) { return state->begin(bucket, group); };
}

}  // namespace rush::nn::parallel
