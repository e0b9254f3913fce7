// The page "Using the PyTorch C++ Frontend" of PyTorch's tutorials: a DCGAN, smaller, with its own module, checkpoints
// and samples.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <sstream>

// The size of the noise vector fed to the generator.
const int64_t kNoiseSize = 12;
const int64_t kBatchSize = 4;
const int64_t kNumberOfEpochs = 2;
const int64_t kLogInterval = 2;

struct DCGANGeneratorImpl : torch::nn::Module {
  DCGANGeneratorImpl(int kNoiseSize)
      : conv1(torch::nn::ConvTranspose2dOptions(kNoiseSize, 16, 4).bias(false)),
        batch_norm1(16),
        conv2(torch::nn::ConvTranspose2dOptions(16, 8, 3).stride(2).padding(1).bias(false)),
        batch_norm2(8),
        conv3(torch::nn::ConvTranspose2dOptions(8, 4, 4).stride(2).padding(1).bias(false)),
        batch_norm3(4),
        conv4(torch::nn::ConvTranspose2dOptions(4, 1, 4).stride(2).padding(1).bias(false)) {
    // register_module() is needed if we want to use the parameters() method later on
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("conv4", conv4);
    register_module("batch_norm1", batch_norm1);
    register_module("batch_norm2", batch_norm2);
    register_module("batch_norm3", batch_norm3);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    x = torch::relu(batch_norm2(conv2(x)));
    x = torch::relu(batch_norm3(conv3(x)));
    x = torch::tanh(conv4(x));
    return x;
  }

  torch::nn::ConvTranspose2d conv1;
  torch::nn::BatchNorm2d batch_norm1;
  torch::nn::ConvTranspose2d conv2;
  torch::nn::BatchNorm2d batch_norm2;
  torch::nn::ConvTranspose2d conv3;
  torch::nn::BatchNorm2d batch_norm3;
  torch::nn::ConvTranspose2d conv4;
};

TORCH_MODULE(DCGANGenerator);

torch::nn::Sequential create_discriminator() {
  using namespace torch;
  return nn::Sequential(
      // Layer 1
      nn::Conv2d(nn::Conv2dOptions(1, 4, 4).stride(2).padding(1).bias(false)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      // Layer 2
      nn::Conv2d(nn::Conv2dOptions(4, 8, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(8),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      // Layer 3
      nn::Conv2d(nn::Conv2dOptions(8, 16, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(16),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      // Layer 4
      nn::Conv2d(nn::Conv2dOptions(16, 1, 3).stride(1).padding(0).bias(false)), nn::Sigmoid());
}

// Squares of a random size and place in place of the digits.
class Squares : public torch::data::datasets::Dataset<Squares> {
 public:
  torch::data::Example<> get(size_t index) override {
    torch::Tensor image = torch::zeros({1, 28, 28});
    const auto start = static_cast<int64_t>(index % 9);
    image.slice(1, start, start + 12).slice(2, start + 2, start + 14).fill_(1);
    return {image, torch::tensor(static_cast<int64_t>(index))};
  }
  torch::optional<size_t> size() const override { return 16; }
};

int main() {
  torch::manual_seed(1);
  torch::Device device(torch::kCPU);

  DCGANGenerator generator(kNoiseSize);
  generator->to(device);
  auto discriminator = create_discriminator();
  discriminator->to(device);
  std::cout << generator << "\n" << discriminator << "\n";

  auto dataset = Squares().map(torch::data::transforms::Normalize<>(0.5, 0.5)).map(torch::data::transforms::Stack<>());
  const int64_t batches_per_epoch = std::ceil(dataset.size().value() / static_cast<double>(kBatchSize));
  auto data_loader = torch::data::make_data_loader(std::move(dataset),
                                                   torch::data::DataLoaderOptions().batch_size(kBatchSize).workers(0));

  torch::optim::Adam generator_optimizer(generator->parameters(),
                                         torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(),
                                             torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));

  std::stringstream generator_checkpoint, optimizer_checkpoint;
  for (int64_t epoch = 1; epoch <= kNumberOfEpochs; ++epoch) {
    int64_t batch_index = 0;
    for (const torch::data::Example<>& batch : *data_loader) {
      // Train discriminator with real images.
      discriminator->zero_grad();
      torch::Tensor real_images = batch.data.to(device);
      torch::Tensor real_labels = torch::empty(batch.data.size(0), device).uniform_(0.8, 1.0);
      torch::Tensor real_output = discriminator->forward(real_images).reshape(real_labels.sizes());
      torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      // Train discriminator with fake images.
      torch::Tensor noise = torch::randn({batch.data.size(0), kNoiseSize, 1, 1}, device);
      torch::Tensor fake_images = generator->forward(noise);
      torch::Tensor fake_labels = torch::zeros(batch.data.size(0), device);
      torch::Tensor fake_output = discriminator->forward(fake_images.detach()).reshape(fake_labels.sizes());
      torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();

      torch::Tensor d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      // Train generator.
      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake_images).reshape(fake_labels.sizes());
      torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();
      batch_index++;
      if (batch_index % kLogInterval == 0) {
        std::printf("[%2ld/%2ld][%3ld/%3ld] D_loss: %.3f | G_loss: %.3f\n", (long)epoch, (long)kNumberOfEpochs,
                    (long)batch_index, (long)batches_per_epoch, d_loss.item<float>(), g_loss.item<float>());
      }
    }
    generator_checkpoint.str("");
    optimizer_checkpoint.str("");
    torch::save(generator, generator_checkpoint);
    torch::save(generator_optimizer, optimizer_checkpoint);
  }

  DCGANGenerator restored(kNoiseSize);
  torch::load(restored, generator_checkpoint);
  torch::optim::Adam restored_optimizer(restored->parameters(), torch::optim::AdamOptions(1.0));
  torch::load(restored_optimizer, optimizer_checkpoint);
  const auto& options = static_cast<const torch::optim::AdamOptions&>(restored_optimizer.param_groups()[0].options());
  std::cout << "lr " << options.lr() << " beta1 " << std::get<0>(options.betas()) << " states "
            << restored_optimizer.state().size() << "\n";
  torch::NoGradGuard no_grad;
  restored->eval();
  generator->eval();
  torch::Tensor noise = torch::randn({2, kNoiseSize, 1, 1});
  std::cout << "same samples: " << torch::equal(restored(noise), generator(noise)) << " of " << restored(noise).sizes()
            << "\n";
  return 0;
}
