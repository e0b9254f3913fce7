// Optimisers of a program's own, with options and states that go into archives.
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

struct HeavyBallOptions : torch::optim::OptimizerCloneableOptions<HeavyBallOptions> {
  HeavyBallOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.5;
  TORCH_ARG(int64_t, warmup) = 1;
  TORCH_ARG(bool, sign) = false;
  TORCH_ARG(torch::optional<double>, limit) = torch::nullopt;

 public:
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, momentum);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, warmup);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, sign);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(double, limit);
  }
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(momentum);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(warmup);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(sign);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(limit);
  }
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

struct HeavyBallParamState : torch::optim::OptimizerCloneableParamState<HeavyBallParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(torch::Tensor, velocity);
  TORCH_ARG(torch::Tensor, unused);

 public:
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, step);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, velocity);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, unused);
  }
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(step);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(velocity);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(unused);
  }
};

class HeavyBall : public torch::optim::Optimizer {
 public:
  explicit HeavyBall(std::vector<torch::Tensor> params, const HeavyBallOptions& defaults = {0.1})
      : Optimizer(std::move(params), std::make_unique<HeavyBallOptions>(defaults)) {}

  torch::Tensor step(LossClosure closure = nullptr) override {
    torch::NoGradGuard no_grad;
    torch::Tensor loss;
    if (closure != nullptr) {
      const at::AutoGradMode recording(true);
      loss = closure();
    }
    for (auto& group : param_groups_) {
      const auto& options = static_cast<HeavyBallOptions&>(group.options());
      for (auto& p : group.params()) {
        if (p.grad().defined()) update(p, options);
      }
    }
    return loss;
  }

  void save(torch::serialize::OutputArchive& archive) const override { serialize(*this, archive); }
  void load(torch::serialize::InputArchive& archive) override { serialize(*this, archive); }

 private:
  void update(torch::Tensor& p, const HeavyBallOptions& options) {
    auto found = state_.find(p.unsafeGetTensorImpl());
    if (found == state_.end()) {
      auto fresh = std::make_unique<HeavyBallParamState>();
      fresh->velocity(torch::zeros_like(p));
      found = state_.insert({p.unsafeGetTensorImpl(), std::move(fresh)}).first;
    }
    auto& state = static_cast<HeavyBallParamState&>(*found->second);
    state.step(state.step() + 1);
    state.velocity().mul_(options.momentum()).add_(options.sign() ? p.grad().sign() : p.grad());
    if (state.step() > options.warmup()) p.add_(state.velocity(), -options.lr());
  }

  template <typename Self, typename Archive>
  static void serialize(Self& self, Archive& archive) {
    _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(HeavyBall);
  }
};

static double train(const torch::Tensor& w, torch::optim::Optimizer& optimizer, int steps) {
  torch::Tensor loss;
  for (int i = 0; i < steps; ++i) {
    loss = optimizer.step([&] {
      optimizer.zero_grad();
      torch::Tensor square = (w - 1).pow(2).sum();
      square.backward();
      return square;
    });
  }
  return loss.item<double>();
}

int main() {
  torch::Tensor w = torch::zeros({3}, torch::requires_grad()), twin = torch::zeros({3}, torch::requires_grad());
  HeavyBall optimizer({w}, HeavyBallOptions(0.05).momentum(0.7).limit(3));
  std::cout << train(w, optimizer, 4) << "\n";

  // The twin goes on from what was saved, with the same options.
  std::stringstream file;
  torch::save(optimizer, file);
  HeavyBall other({twin});
  torch::load(other, file);
  twin.data().copy_(w.data());
  const auto& options = static_cast<const HeavyBallOptions&>(other.param_groups()[0].options());
  std::cout << options.lr() << " " << options.momentum() << " " << options.warmup() << " " << options.sign() << " "
            << options.limit().value_or(0) << "\n";
  const auto& state = static_cast<HeavyBallParamState&>(*other.state().at(twin.unsafeGetTensorImpl()));
  std::cout << state.step() << " " << state.velocity().sizes() << state.unused().defined() << "\n";
  std::cout << (train(w, optimizer, 3) == train(twin, other, 3)) << torch::equal(w, twin) << "\n";

  torch::optim::StepLR schedule(other, 1, 0.5);
  schedule.step();
  std::cout << other.param_groups()[0].options().get_lr() << "\n";

  // The options of libtorch's own go into an archive, too.
  torch::optim::SGD sgd({w}, torch::optim::SGDOptions(0.25).momentum(0.5));
  torch::serialize::OutputArchive written;
  sgd.param_groups()[0].options().serialize(written);
  std::stringstream text;
  written.save_to(text);
  torch::serialize::InputArchive read;
  read.load_from(text);
  torch::optim::SGDOptions again(1);
  again.serialize(read);
  std::cout << again.lr() << " " << again.momentum() << "\n";
  return 0;
}
