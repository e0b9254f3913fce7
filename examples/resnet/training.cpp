#include "examples/resnet/training.h"

namespace examples {

using rush::Tensor;

namespace {

rush::optim::SGDOptions sgd(const ResNetTrainingOptions& o) {
  return rush::optim::SGDOptions(o.learning_rate).momentum(o.momentum).weight_decay(o.weight_decay);
}

}  // namespace

ResNetTraining::ResNetTraining(const ResNetTrainingOptions& o)
    : model_(o.model),
      precision_(o.dtype, o.device),
      scaler_(precision_.scaler()),
      optimizer_(model_->parameters(), sgd(o)),
      images_(rush::randn({o.batch_size, 3, o.image_size, o.image_size}, o.device)),
      labels_(
          rush::randint(0, o.model.num_classes, {o.batch_size}, rush::TensorOptions(rush::kLong).device(o.device))) {
  model_->to(o.device);
  if (!o.channels_last) return;
  model_->to(rush::MemoryFormat::ChannelsLast);
  images_ = images_.contiguous(rush::MemoryFormat::ChannelsLast);
}

Tensor ResNetTraining::step() {
  Tensor loss;
  {
    const auto precision = precision_.scope();
    loss = rush::nn::functional::cross_entropy(model_(images_), labels_);
  }
  optimizer_.zero_grad();
  scaler_.scale(loss).backward();
  scaler_.step(optimizer_);
  scaler_.update();
  return loss.detach();
}

}  // namespace examples
