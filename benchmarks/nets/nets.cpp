#include "benchmarks/nets/nets.h"

#include <utility>

#include "benchmarks/nets/images.h"
#include "benchmarks/nets/language.h"
#include "benchmarks/nets/science.h"

namespace plain {

namespace F = nn::functional;

namespace {

Tensor whole_numbers(int64_t below, IntArrayRef sizes) { return randint(0, below, sizes, kInt64); }

// Scores (B, C) or (B, C, H, W), or those of tokens, (B, T, C).
Tensor error_of_scores(const Tensor& scores, const Tensor& labels) {
  return scores.dim() == 3 ? F::cross_entropy(scores.flatten(0, 1), labels.flatten())
                           : F::cross_entropy(scores, labels);
}

template <class Net>
Workload classification(const Net& net, const Tensor& x, const Tensor& labels) {
  return {net.ptr(), x, labels, [net](const Tensor& in) { return net->forward(in); },
          [net](const Tensor& in, const Tensor& y) { return error_of_scores(net->forward(in), y); }};
}

// A net of convolutions, or of attention, that a GPU trains in bfloat16.
Workload in_bfloat16(Workload workload) {
  workload.dtype = kBFloat16;
  workload.is_channels_last = workload.x.dim() == 4;
  return workload;
}

template <class Net>
Workload of_tokens(const Net& net, int64_t vocabulary, int64_t batch, int64_t length) {
  return classification(net, whole_numbers(vocabulary, {batch, length}), whole_numbers(vocabulary, {batch, length}));
}

Workload mlp(bool is_small) {
  const int64_t width = is_small ? 16 : 1024, batch = is_small ? 4 : 128;
  return classification(perceptron<nn::ReLU>({width, width, width, width, width, 10}), randn({batch, width}),
                        whole_numbers(10, {batch}));
}

Workload mnist(bool is_small) {
  const int64_t batch = is_small ? 2 : 64;
  return classification(mnist_cnn(), randn({batch, 1, 28, 28}), whole_numbers(10, {batch}));
}

Workload residual(const std::vector<int64_t>& depths, bool is_bottleneck, bool is_small) {
  const int64_t batch = is_small ? 2 : 64, side = is_small ? 32 : 224;
  const nn::Sequential net = resnet(is_small ? std::vector<int64_t>{1, 1} : depths, is_bottleneck);
  Workload workload = in_bfloat16(classification(net, randn({batch, 3, side, side}), whole_numbers(1000, {batch})));
  workload.is_by_sgd = true;
  return workload;
}
Workload resnet18(bool is_small) { return residual({2, 2, 2, 2}, false, is_small); }
Workload resnet50(bool is_small) { return residual({3, 4, 6, 3}, true, is_small); }

Workload vit(bool is_small) {  // ViT-S/16
  const int64_t batch = is_small ? 2 : 64, side = is_small ? 32 : 224;
  const Vit net = is_small ? Vit(side, 16, 2, BlockOptions{32, 2}) : Vit(side, 16, 12, BlockOptions{384, 6});
  Workload workload = in_bfloat16(classification(net, randn({batch, 3, side, side}), whole_numbers(1000, {batch})));
  workload.is_channels_last = false;
  return workload;
}

Workload bert(bool is_small) {  // BERT-base
  if (is_small) return in_bfloat16(of_tokens(Bert(GptSize{50, 16, 2, 2, 32, 0.1}), 50, 2, 16));
  return in_bfloat16(of_tokens(Bert(GptSize{30522, 512, 12, 12, 768, 0.1}), 30522, 32, 128));
}

Workload gpt2(bool is_small) {  // of 124 million parameters
  if (is_small) return in_bfloat16(of_tokens(Gpt(GptSize{50, 16, 2, 2, 32}), 50, 2, 16));
  return in_bfloat16(of_tokens(Gpt(GptSize{50304, 1024, 12, 12, 768}), 50257, 16, 1024));
}

Workload llama(bool is_small) {  // of 159 million parameters
  if (is_small) return in_bfloat16(of_tokens(Llama(LlamaSize{50, 16, 2, 4, 2, 32, 48}), 50, 2, 16));
  return in_bfloat16(of_tokens(Llama(LlamaSize{32000, 1024, 12, 16, 4, 1024, 2560}), 32000, 16, 1024));
}

Workload unet(bool is_small) {
  const int64_t batch = is_small ? 1 : 16, side = is_small ? 16 : 256;
  const UNet net = is_small ? UNet(4, 2) : UNet(64, 4);
  return in_bfloat16(classification(net, randn({batch, 3, side, side}), whole_numbers(2, {batch, side, side})));
}

Workload lstm(bool is_small) {
  return is_small ? of_tokens(Lstm(50, 8), 50, 2, 6) : of_tokens(Lstm(10000, 512), 10000, 64, 128);
}

Workload gcn(bool is_small) {  // with Cora's numbers, where 140 nodes have labels
  const int64_t nodes = is_small ? 40 : 2708, features = is_small ? 12 : 1433, labels = is_small ? 8 : 140;
  const Gcn net(nodes, 4 * nodes, features, 16, 7);
  Workload workload = classification(net, randn({nodes, features}), whole_numbers(7, {labels}));
  workload.loss = [net](const Tensor& x, const Tensor& y) {
    return F::cross_entropy(net->forward(x).slice(0, 0, y.size(0)), y);
  };
  return workload;
}

Workload vae(bool is_small) {
  const Vae net;
  const Tensor x = rand({is_small ? 4 : 128, 784});
  return {net.ptr(), x, x, [net](const Tensor& in) { return net->forward(in); },
          [net](const Tensor& in, const Tensor& wanted) { return net->loss(in, wanted); }};
}

Workload physics(bool is_small) {
  const int64_t width = is_small ? 8 : 256, points = is_small ? 10 : 8192;
  const nn::Sequential field = perceptron<nn::Tanh>({2, width, width, width, width, 1});
  return {field.ptr(), rand({points, 2}), rand({points, 1}), [field](const Tensor& x) { return field->forward(x); },
          [field](const Tensor& x, const Tensor& medium) { return physics_loss(field, x, medium); }};
}

const std::pair<const char*, Workload (*)(bool)> kNets[] = {
    {"mnist", mnist}, {"mlp", mlp},   {"resnet18", resnet18}, {"resnet50", resnet50}, {"vit", vit},
    {"bert", bert},   {"gpt2", gpt2}, {"llama", llama},       {"unet", unet},         {"lstm", lstm},
    {"gcn", gcn},     {"vae", vae},   {"physics", physics},
};

}  // namespace

std::vector<std::string> names_of_nets() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kNets) names.emplace_back(name);
  return names;
}

Workload make_workload(const std::string& name, bool is_small) {
  for (const auto& [each, make] : kNets) {
    if (name != each) continue;
    Workload workload = make(is_small);
    if (!workload.is_channels_last) return workload;
    workload.x = workload.x.contiguous(MemoryFormat::ChannelsLast);
    for (Tensor& parameter : workload.net->parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(MemoryFormat::ChannelsLast));
    }
    return workload;
  }
  RUSH_THROW(ValueError, "there is no net '", name, "'");
}

Training::Training(const Workload& workload, bool is_capturable) : workload_(workload) {
  const std::vector<Tensor> parameters = workload.net->parameters();
  if (workload.is_by_sgd) {
    const auto options = optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4).capturable(is_capturable);
    optimizer_ = std::make_unique<optim::SGD>(parameters, options);
  } else {
    optimizer_ = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(1e-3).capturable(is_capturable));
  }
}

Tensor Training::operator()(const Tensor& x, const Tensor& y) {
  optimizer_->zero_grad();
  Tensor loss;
  {
    const autocast::Autocast lower(x.device().type, kBFloat16, workload_.dtype == kBFloat16);
    loss = workload_.loss(x, y);
  }
  loss.backward();
  optimizer_->step();
  return loss;
}

void prepare_for_inference(Workload& workload) {
  workload.net->eval();
  workload.net->to(workload.dtype);
  if (workload.x.is_floating_point()) workload.x = workload.x.to(workload.dtype);
}

}  // namespace plain
