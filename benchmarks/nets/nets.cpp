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

// The one of these that is for the size.
template <class T>
T at(Size size, const T& test, const T& cpu, const T& gpu) {
  return size == Size::Test ? test : size == Size::Cpu ? cpu : gpu;
}

// A net of convolutions, or of attention, that a GPU trains in bfloat16.
Workload for_size(Size size, Workload workload) {
  if (size == Size::Cpu) return workload;
  workload.dtype = kBFloat16;
  workload.is_channels_last = workload.x.dim() == 4;
  return workload;
}

template <class Net>
Workload of_tokens(const Net& net, int64_t vocabulary, int64_t batch, int64_t length) {
  return classification(net, whole_numbers(vocabulary, {batch, length}), whole_numbers(vocabulary, {batch, length}));
}

Workload mlp(Size size) {
  const int64_t width = at<int64_t>(size, 16, 512, 1024), batch = at<int64_t>(size, 4, 128, 128);
  return classification(perceptron<nn::ReLU>({width, width, width, width, width, 10}), randn({batch, width}),
                        whole_numbers(10, {batch}));
}

Workload mnist(Size size) {
  const int64_t batch = at<int64_t>(size, 2, 64, 64);
  return classification(mnist_cnn(), randn({batch, 1, 28, 28}), whole_numbers(10, {batch}));
}

Workload residual(const std::vector<int64_t>& depths, bool is_bottleneck, Size size, int64_t side_on_cpu) {
  const int64_t batch = at<int64_t>(size, 2, 8, 64), side = at<int64_t>(size, 32, side_on_cpu, 224);
  const nn::Sequential net = resnet(size == Size::Test ? std::vector<int64_t>{1, 1} : depths, is_bottleneck);
  Workload workload = for_size(size, classification(net, randn({batch, 3, side, side}), whole_numbers(1000, {batch})));
  workload.is_by_sgd = true;
  return workload;
}
Workload resnet18(Size size) { return residual({2, 2, 2, 2}, false, size, 112); }
Workload resnet50(Size size) { return residual({3, 4, 6, 3}, true, size, 96); }

Workload vit(Size size) {  // ViT-S/16 on a GPU
  const int64_t batch = at<int64_t>(size, 2, 8, 64), side = at<int64_t>(size, 32, 64, 224);
  const Vit net(side, size == Size::Cpu ? 8 : 16, at<int64_t>(size, 2, 4, 12),
                at(size, BlockOptions{32, 2}, BlockOptions{192, 6}, BlockOptions{384, 6}));
  Workload workload = for_size(size, classification(net, randn({batch, 3, side, side}), whole_numbers(1000, {batch})));
  workload.is_channels_last = false;
  return workload;
}

// A net of tokens, and a batch of sequences.
template <class Net, class Options>
Workload of_text(Size size, const Options& options, int64_t batch, int64_t length) {
  return for_size(size, of_tokens(Net(options), options.vocabulary, batch, length));
}

Workload bert(Size size) {  // BERT-base on a GPU
  const GptSize net = at(size, GptSize{50, 16, 2, 2, 32, 0.1}, GptSize{2000, 128, 4, 4, 256, 0.1},
                         GptSize{30522, 512, 12, 12, 768, 0.1});
  return of_text<Bert>(size, net, at<int64_t>(size, 2, 8, 32), at<int64_t>(size, 16, 64, 128));
}

Workload gpt2(Size size) {  // of 124 million parameters on a GPU
  const GptSize net =
      at(size, GptSize{50, 16, 2, 2, 32}, GptSize{256, 64, 4, 4, 128}, GptSize{50304, 1024, 12, 12, 768});
  return of_text<Gpt>(size, net, at<int64_t>(size, 2, 12, 16), at<int64_t>(size, 16, 64, 1024));
}

Workload llama(Size size) {  // of 159 million parameters on a GPU
  const LlamaSize net = at(size, LlamaSize{50, 16, 2, 4, 2, 32, 48}, LlamaSize{2000, 128, 4, 8, 4, 256, 640},
                           LlamaSize{32000, 1024, 12, 16, 4, 1024, 2560});
  return of_text<Llama>(size, net, at<int64_t>(size, 2, 4, 16), at<int64_t>(size, 16, 128, 1024));
}

Workload unet(Size size) {
  const int64_t batch = at<int64_t>(size, 1, 2, 16), side = at<int64_t>(size, 16, 64, 256);
  const UNet net(at<int64_t>(size, 4, 16, 64), at<int64_t>(size, 2, 3, 4));
  return for_size(size, classification(net, randn({batch, 3, side, side}), whole_numbers(2, {batch, side, side})));
}

Workload lstm(Size size) {
  const int64_t vocabulary = at<int64_t>(size, 50, 1000, 10000);
  return of_tokens(Lstm(vocabulary, at<int64_t>(size, 8, 256, 512)), vocabulary, at<int64_t>(size, 2, 16, 64),
                   at<int64_t>(size, 6, 64, 128));
}

Workload gcn(Size size) {  // with Cora's numbers, where 140 nodes have labels
  const bool is_test = size == Size::Test;
  const int64_t nodes = is_test ? 40 : 2708, features = is_test ? 12 : 1433, labels = is_test ? 8 : 140;
  const Gcn net(nodes, 4 * nodes, features, 16, 7);
  Workload workload = classification(net, randn({nodes, features}), whole_numbers(7, {labels}));
  workload.loss = [net](const Tensor& x, const Tensor& y) {
    return F::cross_entropy(net->forward(x).slice(0, 0, y.size(0)), y);
  };
  return workload;
}

Workload vae(Size size) {
  const Vae net;
  const Tensor x = rand({size == Size::Test ? 4 : 128, 784});
  return {net.ptr(), x, x, [net](const Tensor& in) { return net->forward(in); },
          [net](const Tensor& in, const Tensor& wanted) { return net->loss(in, wanted); }};
}

Workload physics(Size size) {
  const int64_t width = at<int64_t>(size, 8, 64, 256), points = at<int64_t>(size, 10, 1024, 8192);
  const nn::Sequential field = perceptron<nn::Tanh>({2, width, width, width, width, 1});
  return {field.ptr(), rand({points, 2}), rand({points, 1}), [field](const Tensor& x) { return field->forward(x); },
          [field](const Tensor& x, const Tensor& medium) { return physics_loss(field, x, medium); }};
}

const std::pair<const char*, Workload (*)(Size)> kNets[] = {
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

Workload make_workload(const std::string& name, Size size) {
  for (const auto& [each, make] : kNets) {
    if (name != each) continue;
    Workload workload = make(size);
    if (!workload.is_channels_last) return workload;
    workload.x = workload.x.contiguous(MemoryFormat::ChannelsLast);
    for (Tensor& parameter : workload.net->parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(MemoryFormat::ChannelsLast));
    }
    return workload;
  }
  RUSH_THROW(ValueError, "there is no net '", name, "'");
}

Training::Training(const Workload& workload, bool is_capturable, double rate_of_adam) : workload_(workload) {
  const std::vector<Tensor> parameters = workload.net->parameters();
  if (workload.is_by_sgd) {
    const auto options = optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4).capturable(is_capturable);
    optimizer_ = std::make_unique<optim::SGD>(parameters, options);
  } else {
    optimizer_ =
        std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(rate_of_adam).capturable(is_capturable));
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
