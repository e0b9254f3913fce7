// A generative adversarial network: a generator learns to draw discs of 8 x 8 pixels that a discriminator cannot tell
// from those of a formula.
#include "show.h"

struct GeneratorImpl : torch::nn::Module {
  explicit GeneratorImpl(int64_t noise_size)
      : conv1(torch::nn::ConvTranspose2dOptions(noise_size, 8, 4).bias(false)),
        norm1(8),
        conv2(torch::nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
  }

  torch::Tensor forward(torch::Tensor noise) {  // (N, noise, 1, 1) -> (N, 1, 8, 8)
    torch::Tensor x = torch::relu(norm1(conv1(noise)));
    return torch::tanh(conv2(x));
  }

  torch::nn::ConvTranspose2d conv1;
  torch::nn::BatchNorm2d norm1;
  torch::nn::ConvTranspose2d conv2;
};
TORCH_MODULE(Generator);

static torch::nn::Sequential make_discriminator() {  // (N, 1, 8, 8) -> (N, 1, 1, 1), the probability of being real
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
                               torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 12, 4).stride(2).padding(1).bias(false)),
                               torch::nn::BatchNorm2d(12),
                               torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(12, 1, 2).bias(false)), torch::nn::Sigmoid());
}

// White discs on black, each with a centre of its own.
static torch::Tensor discs(int64_t count, double phase) {
  const torch::Tensor axis = torch::arange(8, torch::kFloat64) - 3.5;
  const torch::Tensor x = axis.view({1, 1, 1, 8}) - wave({count, 1, 1, 1}, phase, 1.5);
  const torch::Tensor y = axis.view({1, 1, 8, 1}) - wave({count, 1, 1, 1}, phase + 0.5, 1.5);
  return (6 - x.pow(2) - y.pow(2)).tanh();
}

int main() {
  const int64_t batch_size = 6, noise_size = 5;
  Generator generator(noise_size);
  torch::nn::Sequential discriminator = make_discriminator();
  fill_parameters(*generator);
  fill_parameters(*discriminator);

  torch::optim::Adam generator_optimizer(
      generator->parameters(), torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.9)).weight_decay(1e-4));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(),
                                             torch::optim::AdamOptions(1e-3).betas(std::make_tuple(0.5, 0.9)));

  for (int step = 1; step <= 8; ++step) {
    discriminator->zero_grad();
    const torch::Tensor real_output = discriminator->forward(discs(batch_size, step));
    const torch::Tensor real_labels = torch::full(real_output.sizes(), 0.9, real_output.options());
    const torch::Tensor real_loss = torch::binary_cross_entropy(real_output, real_labels);
    real_loss.backward();

    const torch::Tensor fake = generator->forward(wave({batch_size, noise_size, 1, 1}, 2.0 * step));
    const torch::Tensor fake_output = discriminator->forward(fake.detach());
    const torch::Tensor fake_loss = torch::binary_cross_entropy(fake_output, torch::zeros_like(fake_output));
    fake_loss.backward();
    const torch::Tensor discriminator_loss = real_loss + fake_loss;
    discriminator_optimizer.step();

    generator->zero_grad();
    const torch::Tensor judged = discriminator->forward(fake);
    const torch::Tensor generator_loss = torch::binary_cross_entropy(judged, torch::ones_like(judged));
    generator_loss.backward();
    generator_optimizer.step();

    std::printf("step %d", step);
    print_number(discriminator_loss.item<double>());
    print_number(generator_loss.item<double>());
    std::printf("\n");
  }

  generator->eval();
  torch::NoGradGuard no_grad;
  show("a drawing", generator(wave({1, noise_size, 1, 1}, 0.25)).squeeze());
  show("running mean", generator->norm1->running_mean);
  show("running variance", generator->norm1->running_var);
  return 0;
}
