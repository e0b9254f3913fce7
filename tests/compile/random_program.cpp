#include "tests/compile/random_program.h"

namespace rush::testing {

namespace F = nn::functional;

RandomProgram::RandomProgram(uint64_t seed, Variety variety) : seed_(seed), variety_(variety), random_(seed) {
  differentiates_ = seed % 2 == 0;
  if (variety == Variety::Plain) return;
  rows_ = random_.between(1, 9);
  columns_ = random_.pick(std::vector<int64_t>{2, 3, 16, 67, 300});
  trains_ = random_.percent(40);
  reads_ = random_.percent(20);
  lowers_ = random_.percent(20);
  options_.dynamic = !reads_ && random_.percent(20);
  options_.check = random_.percent(20);
  manual_seed(seed);
  weight_ = (randn({columns_, columns_}) * 0.3).requires_grad_(trains_);
  bias_ = randn({columns_}).requires_grad_(trains_);
  total_ = zeros({columns_});
  if (!trains_) return;
  const std::vector<Tensor> parameters{weight_, bias_};
  if (random_.percent(50)) {
    optimizer_ = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(1e-2));
  } else {
    optimizer_ = std::make_unique<optim::SGD>(parameters, optim::SGDOptions(1e-2).momentum(0.9));
  }
}

std::vector<Tensor> RandomProgram::make_inputs(int call) const {
  const int64_t rows = options_.dynamic ? rows_ + call + 1 : rows_;
  std::vector<Tensor> inputs{randn({rows, columns_}), randn({columns_, rows}).t(), randn({rows, columns_})};
  for (Tensor& input : inputs) input.requires_grad_(differentiates_);
  return inputs;
}

std::vector<Tensor> RandomProgram::state() const {
  std::vector<Tensor> all;
  for (const Tensor& tensor : {weight_, bias_, total_}) {
    if (tensor.defined()) all.push_back(tensor.detach());
    if (tensor.defined() && tensor.grad().defined()) all.push_back(tensor.grad());
  }
  return all;
}

std::vector<Tensor> RandomProgram::run(const std::vector<Tensor>& inputs) {
  random_ = fuzz::Random(seed_);
  tensors_ = inputs;
  const int64_t operators = random_.between(3, 60), reads_at = random_.between(1, operators);
  for (int64_t i = 0; i < operators; ++i) {
    if (reads_ && i == reads_at && any().sum().item<double>() > 0) keep(any().cos());
    add();
  }
  std::vector<Tensor> outputs;
  for (int i = 0; i < 3; ++i) outputs.push_back(any());
  if (trains_ && outputs[0].requires_grad()) {
    train(outputs[0].sum());
  } else if (differentiates_ && outputs[0].requires_grad()) {
    for (const Tensor& grad : autograd::grad({outputs[0].sum()}, inputs, {}, std::nullopt, false, true)) {
      if (grad.defined()) outputs.push_back(grad);
    }
  }
  for (Tensor& output : outputs) output = output.detach();
  tensors_.clear();
  return outputs;
}

void RandomProgram::train(const Tensor& loss) {
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
}

void RandomProgram::keep(const Tensor& t) {
  tensors_.push_back(t.to(kFloat32).expand(tensors_[0].sizes()).clamp(-3, 3));
}

void RandomProgram::add() {
  const Tensor a = any(), b = any();
  constexpr size_t kPlain = 24, kAll = 54;
  const size_t choice = random_.below(variety_ == Variety::Plain ? kPlain : kAll);
  const autocast::Autocast lower(a.device().type, kBFloat16, lowers_ && choice % 3 == 0);
  choice < kPlain ? add_of_plain(choice, a, b) : add_of_all(choice - kPlain, a, b);
}

void RandomProgram::add_of_plain(size_t choice, const Tensor& a, const Tensor& b) {
  const int64_t columns = a.size(1);
  switch (choice) {
    case 0: return keep(a + b);
    case 1: return keep(a - b * 0.5);
    case 2: return keep(a * b);
    case 3: return keep(a / (b.abs() + 1));
    case 4: return keep(a.sigmoid());
    case 5: return keep(a.tanh());
    case 6: return keep(F::gelu(a));
    case 7: return keep(where(a > b, a, b.exp()));
    case 8: return keep(a.relu());
    case 9: return keep(a.sum(1, true) * 0.01);
    case 10: return keep(a.mean(0, true));
    case 11: return keep(softmax(a, 1));
    case 12: return keep(a.matmul(b.t()).matmul(a) * 0.01);
    case 13: return keep(a.t().contiguous().t());
    case 14: return keep(cat({a.slice(1, 0, columns / 2), b.slice(1, columns / 2)}, 1));
    case 15: return keep(a.select(0, 0).unsqueeze(0));
    case 16: return keep(a.to(kFloat64).sin().to(kFloat32));
    case 17: return keep(a.to(kBFloat16).mul(b.to(kBFloat16)).to(kFloat32));
    case 18: {
      Tensor c = a.clone();
      c.mul_(0.5).add_(b);
      return keep(c);
    }
    case 19: {
      Tensor c = a * 1.5;
      c.slice(1, 1, columns / 3 + 1).copy_(b.slice(1, 1, columns / 3 + 1).cos());
      return keep(c);
    }
    case 20: return keep(a.contiguous().view({columns, a.size(0)}).t().contiguous().pow(2) * 0.1);
    case 21: return keep((a - b.amax({1}, true)).exp());
    case 22: return keep(a * ((a * b).mean({1}, true).abs() + 1).rsqrt());
    default: return keep(maximum(a, b) + minimum(a, b).floor());
  }
}

void RandomProgram::add_of_all(size_t choice, const Tensor& a, const Tensor& b) {
  const int64_t columns = a.size(1);
  switch (choice) {
    case 0: return keep(a.matmul(weight_));
    case 1: return keep(F::linear(a, weight_, bias_));
    case 2: return keep(a + bias_);
    // Of a row of equal numbers a norm would leave the rounding of their mean alone: with the bias they differ, and the
    // epsilon is for rows of one number.
    case 3: return keep(layer_norm(a + bias_, {columns}, bias_, {}, 0.1));
    case 4: return keep(dropout(a, 0.3, true));
    case 5: return keep(a + rand_like(b));
    case 6: return keep(a.cumsum(1) * 0.1);
    case 7: return keep(std::get<0>(a.sort(1)));
    case 8: return keep(std::get<0>(a.max(1, true)) - std::get<1>(b.min(1, true)).to(kFloat32) * 0.01);
    case 9: return keep(a.logsumexp(0, true));
    case 10: return keep(a.var(1, false, true) + b);
    case 11: return keep(a.gather(1, b.argsort(1)));
    case 12: return keep(a.index_select(1, b.select(0, 0).argsort(0)));
    case 13: return keep(a.masked_fill(b > 0.5, 0.25));
    case 14: return keep(a.flip({1}).roll({1}, {0}));
    case 15: return keep((a > b).logical_or(a.eq(b)).to(kFloat32));
    case 16: return keep((a * 10).to(kInt32).bitwise_and(7) + (b * 3).to(kInt64).remainder(5));
    case 17: return keep(a.to(kFloat16).exp().add(b.to(kFloat16)));
    case 18: return keep(a.to(kFloat64).matmul(b.to(kFloat64).t()).sum(1, true).tanh());
    case 19: return keep(a.abs().add(0.1).rsqrt());
    case 20: return keep(bmm(a.unsqueeze(1), b.unsqueeze(2)).squeeze(2));
    case 21: return keep(a.chunk(2, 1)[0].sum(1, true).clamp_min(0.1).log());
    case 22: return keep(F::mse_loss(a, b).reshape({1, 1}));
    case 23: return keep(log_softmax(a, 1).exp());
    case 24: {
      Tensor c = a.clone();
      c.t().select(0, 0).add_(b.select(1, 0)).mul_(0.5);
      return keep(c.addcmul(a, b, 0.1));
    }
    case 25: {
      Tensor c = zeros_like(a);
      c.scatter_add_(1, b.argsort(1), a);
      return keep(c);
    }
    case 26: {
      const NoGradGuard no_grad;
      total_.add_(a.mean(0));
      return keep(total_ * 0.1);
    }
    case 27: return keep(a.unsqueeze(0).expand({3, a.size(0), columns}).mul(b).mean(0));
    case 28: return keep(stack({a, b}, 0).permute({1, 2, 0}).prod(2));
    default: return keep(a.detach() + lerp(a, b, 0.3));
  }
}

}  // namespace rush::testing
