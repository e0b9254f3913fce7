// A variational autoencoder of small images: the reparametrisation, its two losses, and samples.
#include <torch/torch.h>

#include <iostream>
#include <utility>

struct VAEOutput {
  torch::Tensor reconstruction, mu, log_var;
};

class VAEImpl : public torch::nn::Module {
 public:
  VAEImpl(int64_t image_size, int64_t h_dim, int64_t z_dim)
      : fc1(image_size, h_dim), fc2(h_dim, z_dim), fc3(h_dim, z_dim), fc4(z_dim, h_dim), fc5(h_dim, image_size) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("fc3", fc3);
    register_module("fc4", fc4);
    register_module("fc5", fc5);
  }
  std::pair<torch::Tensor, torch::Tensor> encode(torch::Tensor x) {
    auto h = torch::nn::functional::relu(fc1->forward(x));
    return {fc2->forward(h), fc3->forward(h)};
  }
  torch::Tensor reparameterize(torch::Tensor mu, torch::Tensor log_var) {
    if (!is_training()) return mu;
    auto std = log_var.div(2).exp_();
    auto eps = torch::randn_like(std);
    return eps.mul(std).add_(mu);
  }
  torch::Tensor decode(torch::Tensor z) { return torch::sigmoid(fc5->forward(torch::relu(fc4->forward(z)))); }
  VAEOutput forward(torch::Tensor x) {
    auto [mu, log_var] = encode(x);
    return {decode(reparameterize(mu, log_var)), mu, log_var};
  }

 private:
  torch::nn::Linear fc1, fc2, fc3, fc4, fc5;
};
TORCH_MODULE(VAE);

class Bars : public torch::data::Dataset<Bars> {
 public:
  torch::data::Example<> get(size_t index) override {
    auto image = torch::zeros({6, 6});
    const auto at = static_cast<int64_t>(index % 6);
    (index / 6) % 2 == 0 ? image.select(0, at).fill_(1) : image.select(1, at).fill_(1);
    return {image, torch::tensor(static_cast<int64_t>(index % 12), torch::kInt64)};
  }
  c10::optional<size_t> size() const override { return 48; }
};

int main() {
  torch::manual_seed(10);
  auto device = torch::cuda::is_available() && false ? torch::kCUDA : torch::kCPU;
  auto dataset = Bars()
                     .map(torch::data::transforms::Lambda<torch::data::Example<>>([](torch::data::Example<> e) {
                       return torch::data::Example<>(e.data * 0.9 + 0.05, e.target);
                     }))
                     .map(torch::data::transforms::Stack<>());
  const size_t num_samples = dataset.size().value();
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(16).drop_last(true));
  VAE model(36, 20, 3);
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2).amsgrad(true));
  std::cout << num_samples << " images\n" << model << "\n";

  for (int epoch = 1; epoch <= 3; ++epoch) {
    double total_reconst = 0, total_kl = 0;
    model->train();
    for (auto& batch : *loader) {
      auto images = batch.data.reshape({-1, 36}).to(device);
      auto output = model->forward(images);
      auto reconst_loss = torch::nn::functional::binary_cross_entropy(
          output.reconstruction, images, torch::nn::functional::BinaryCrossEntropyFuncOptions().reduction(torch::kSum));
      auto kl_divergence = -0.5 * torch::sum(1 + output.log_var - output.mu.pow(2) - output.log_var.exp());
      auto loss = reconst_loss + kl_divergence;
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total_reconst += reconst_loss.item<double>();
      total_kl += kl_divergence.item<double>();
    }
    std::printf("epoch %d reconstruction %.2f kl %.3f\n", epoch, total_reconst / 48, total_kl / 48);
  }

  torch::NoGradGuard no_grad;
  model->eval();
  auto z = torch::randn({2, 3});
  auto drawn = model->decode(z).view({-1, 1, 6, 6});
  std::cout << drawn.sizes() << " " << drawn.min().gt(0).item<bool>() << drawn.max().lt(1).item<bool>() << "\n";
  auto first = model->forward(Bars().get(0).data.view({1, 36}));
  std::cout << first.mu.sizes() << torch::equal(first.reconstruction, model->decode(first.mu)) << "\n";
  auto path = torch::stack({torch::lerp(z[0], z[1], 0.0), torch::lerp(z[0], z[1], 0.5), torch::lerp(z[0], z[1], 1.0)});
  std::cout << torch::allclose(path[1], (z[0] + z[1]) / 2) << torch::allclose(path[2], z[1]) << "\n";
  return 0;
}
