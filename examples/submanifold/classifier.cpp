#include "examples/submanifold/classifier.h"

#include <cmath>
#include <ostream>

#include "core/str.h"
#include "rushlight.h"

namespace examples {

using namespace rush;

SubmanifoldConvImpl::SubmanifoldConvImpl(int64_t in_channels, int64_t out_channels, IntArrayRef kernel_size,
                                         bool with_bias)
    : sizes_({out_channels, in_channels}), with_bias_(with_bias) {
  sizes_.insert(sizes_.end(), kernel_size.begin(), kernel_size.end());
  SubmanifoldConvImpl::reset();
}

// As the library's convolutions start: uniform within 1 / sqrt(C * kernel...).
void SubmanifoldConvImpl::reset() {
  weight = register_parameter("weight", rush::empty(sizes_));
  bias = register_parameter("bias", with_bias_ ? rush::empty(sizes_[0]) : Tensor(), with_bias_);
  nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  const double bound = 1 / std::sqrt(static_cast<double>(weight[0].numel()));
  if (with_bias_) nn::init::uniform_(bias, -bound, bound);
}

void SubmanifoldConvImpl::pretty_print(std::ostream& stream) const {
  stream << str("examples::SubmanifoldConv(", sizes_[1], ", ", sizes_[0], ", kernel_size=", weight.sizes().slice(2),
                with_bias_ ? ")" : ", bias=false)");
}

Tensor halved(const Tensor& input) {
  const Tensor at = input.indices();  // (1 + D, n)
  const Tensor halves = cat({at.narrow(0, 0, 1), at.narrow(0, 1, at.size(0) - 1).div(2, "trunc")});
  DimVector sizes(input.sizes());
  for (size_t d = 1; d + 1 < sizes.size(); ++d) sizes[d] = (sizes[d] + 1) / 2;
  return _sparse_coo_tensor_unsafe(halves, input.values(), sizes).coalesce();
}

namespace {

// The mean of each batch's sites: (B, spatial..., C) -> (B, C)
Tensor mean_of_sites(const Tensor& input) {
  const Tensor batch = input.indices()[0], values = input.values();
  const Tensor sums = zeros({input.size(0), values.size(1)}, values.options()).index_add(0, batch, values);
  const Tensor one = ones({values.size(0), 1}, values.options());
  return sums / zeros({input.size(0), 1}, values.options()).index_add(0, batch, one);
}

}  // namespace

SubmanifoldBlockImpl::SubmanifoldBlockImpl(int64_t in, int64_t out) {
  constexpr int64_t kKernel[] = {3, 3, 3};
  conv1 = register_module("conv1", SubmanifoldConv(in, out, kKernel, false));
  bn1 = register_module("bn1", nn::BatchNorm1d(out));
  conv2 = register_module("conv2", SubmanifoldConv(out, out, kKernel, false));
  bn2 = register_module("bn2", nn::BatchNorm1d(out));
}

Tensor SubmanifoldBlockImpl::forward(Tensor x) {
  const RuleBook rules(x, conv1->weight.sizes().slice(2));
  x = conv1(x, rules);
  x = at_sites_of(x, relu(bn1(x.values())));
  x = conv2(x, rules);
  return at_sites_of(x, relu(bn2(x.values())));
}

ShapeNetImpl::ShapeNetImpl() {
  block1 = register_module("block1", SubmanifoldBlock(1, 16));
  block2 = register_module("block2", SubmanifoldBlock(16, 24));
  block3 = register_module("block3", SubmanifoldBlock(24, 32));
  fc = register_module("fc", nn::Linear(32, static_cast<int64_t>(kShapeNames.size())));
}

Tensor ShapeNetImpl::forward(const Tensor& shapes) {  // (N, 32, 32, 32, 1)
  Tensor x = halved(block1(shapes));                  // (N, 16, 16, 16, 16)
  x = halved(block2(x));                              // (N, 8, 8, 8, 24)
  return fc(mean_of_sites(block3(x)));                // (N, kinds)
}

ShapeClassifier::ShapeClassifier(Device device, double learning_rate, int64_t steps)
    : device_(device),
      optimizer_(net_->parameters(), optim::AdamWOptions(learning_rate)),
      schedule_(optimizer_, learning_rate, steps) {
  net_->to(device);
}

Tensor ShapeClassifier::step(int64_t count) {
  const Shapes shapes = make_shapes(count, device_);
  const Tensor loss = nn::functional::cross_entropy(net_(shapes.sites), shapes.labels);
  optimizer_.zero_grad();
  loss.backward();
  optimizer_.step();
  schedule_.step();
  return loss.detach();
}

Tensor ShapeClassifier::guess(const Shapes& shapes) {
  const NoGradGuard no_grad;
  net_->eval();
  const Tensor best = net_(shapes.sites).argmax(1);
  net_->train();
  return best;
}

}  // namespace examples
