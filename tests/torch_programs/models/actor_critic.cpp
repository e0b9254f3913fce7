// Actor and critic learn to balance a pole: sampling of actions, discounted returns, and a normalised advantage.
#include <torch/torch.h>

#include <cmath>
#include <deque>
#include <iostream>

// Sutton's cart and pole.
class CartPole {
 public:
  torch::Tensor reset() {
    state = torch::rand({4}, torch::kDouble) * 0.1 - 0.05;
    return state.to(torch::kFloat);
  }
  std::tuple<torch::Tensor, float, bool> step(int64_t action) {
    auto a = state.accessor<double, 1>();
    const double force = action == 1 ? 10 : -10, sine = std::sin(a[2]), cosine = std::cos(a[2]);
    const double temp = (force + 0.05 * a[3] * a[3] * sine) / 1.1;
    const double angular = (9.8 * sine - cosine * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
    const double linear = temp - 0.05 * angular * cosine / 1.1;
    a[0] += 0.02 * a[1];
    a[1] += 0.02 * linear;
    a[2] += 0.02 * a[3];
    a[3] += 0.02 * angular;
    const bool done = std::abs(a[0]) > 2.4 || std::abs(a[2]) > 12 * M_PI / 180;
    return {state.to(torch::kFloat), 1.f, done};
  }

 private:
  torch::Tensor state;
};

struct PolicyImpl : torch::nn::Module {
  PolicyImpl() {
    affine = register_module("affine", torch::nn::Linear(4, 16));
    action_head = register_module("action_head", torch::nn::Linear(16, 2));
    value_head = register_module("value_head", torch::nn::Linear(16, 1));
    for (const auto& child : children()) {
      if (auto* linear = child->as<torch::nn::LinearImpl>()) {
        torch::nn::init::orthogonal_(linear->weight, std::sqrt(2.0));
        torch::nn::init::constant_(linear->bias, 0);
      }
    }
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    x = torch::nn::functional::leaky_relu(affine(x));
    return {torch::softmax(action_head(x), -1), value_head(x)};
  }
  torch::nn::Linear affine{nullptr}, action_head{nullptr}, value_head{nullptr};
};
TORCH_MODULE(Policy);

int main() {
  torch::manual_seed(543);
  // The arithmetic of orthogonal_ depends on the library of linear algebra, up to signs; so only its product is shown.
  auto square = torch::empty({3, 5});
  torch::nn::init::orthogonal_(square);
  std::cout << torch::allclose(square.mm(square.t()), torch::eye(3), 1e-4, 1e-5) << "\n";

  Policy model;
  torch::manual_seed(7);
  {
    torch::NoGradGuard no_grad;
    for (auto& p : model->parameters()) p.uniform_(-0.4, 0.4);
  }
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-2));
  CartPole env;
  double running_reward = 10;
  std::deque<int> lengths;
  for (int episode = 1; episode <= 5; ++episode) {
    auto state = env.reset();
    std::vector<torch::Tensor> log_probs, values;
    std::vector<float> rewards;
    torch::Tensor entropy = torch::zeros({});
    for (int t = 0; t < 40; ++t) {
      auto [probs, value] = model->forward(state.unsqueeze(0));
      auto action = probs.multinomial(1).detach();
      log_probs.push_back(probs.gather(1, action).log().squeeze());
      values.push_back(value.squeeze());
      entropy = entropy - (probs * probs.log()).sum();
      auto [next, reward, done] = env.step(action.item<int64_t>());
      rewards.push_back(reward);
      state = next;
      if (done) break;
    }
    lengths.push_back(static_cast<int>(rewards.size()));
    std::vector<float> returns(rewards.size());
    float R = 0;
    for (size_t i = rewards.size(); i-- > 0;) returns[i] = R = rewards[i] + 0.99f * R;
    auto target = torch::tensor(returns);
    target = (target - target.mean()) / (target.std() + 1e-6);
    auto predicted = torch::stack(values), chosen = torch::stack(log_probs);
    auto advantage = target - predicted.detach();
    auto policy_loss = -(chosen * advantage).sum();
    auto value_loss = torch::smooth_l1_loss(predicted, target, at::Reduction::Sum);
    optimizer.zero_grad();
    (policy_loss + value_loss - 0.01 * entropy).backward();
    optimizer.step();
    running_reward = 0.05 * static_cast<double>(rewards.size()) + 0.95 * running_reward;
    std::printf("episode %d steps %d policy %.2f value %.2f running %.3f\n", episode, lengths.back(),
                policy_loss.item<float>(), value_loss.item<float>(), running_reward);
  }
  return 0;
}
