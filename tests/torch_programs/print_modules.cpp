// Every module, printed: with the options that it starts with, and with others.
#include <iostream>
#include <sstream>

#include "show.h"

namespace nn = torch::nn;

namespace {

template <class... Modules>
void print(const Modules&... modules) {
  ((std::cout << modules << "\n"), ...);
}

void convolutions() {
  print(nn::Conv1d(1, 20, 5), nn::Conv2d(1, 20, 5), nn::Conv3d(2, 4, 3));
  print(nn::Conv2d(nn::Conv2dOptions(4, 8, {3, 5}).stride({2, 1}).padding(1).dilation(2).groups(2).bias(false)));
  print(nn::Conv2d(nn::Conv2dOptions(4, 8, 3).padding(torch::kSame)),
        nn::Conv2d(nn::Conv2dOptions(4, 8, 3).padding(torch::kValid)),
        nn::Conv1d(nn::Conv1dOptions(4, 8, 3).padding(2).padding_mode(torch::kCircular)),
        nn::Conv3d(nn::Conv3dOptions(4, 8, 3).padding_mode(torch::kReplicate)));
  print(nn::ConvTranspose1d(1, 20, 5), nn::ConvTranspose2d(3, 4, 5), nn::ConvTranspose3d(2, 4, 3));
  print(nn::ConvTranspose2d(
      nn::ConvTranspose2dOptions(4, 8, 3).stride(2).padding(1).output_padding(1).dilation(2).groups(2).bias(false)));
  print(nn::Fold(nn::FoldOptions({4, 5}, {2, 2})), nn::Fold(nn::FoldOptions(8, 3).dilation(2).padding(1).stride(2)),
        nn::Unfold(nn::UnfoldOptions({2, 4}).dilation({1, 2}).padding(1).stride(2)));
}

void linear_modules() {
  print(nn::Identity(), nn::Linear(3, 4), nn::Linear(nn::LinearOptions(3, 4).bias(false)), nn::Bilinear(3, 2, 4),
        nn::Bilinear(nn::BilinearOptions(3, 2, 4).bias(false)));
  print(nn::Flatten(), nn::Flatten(nn::FlattenOptions().start_dim(2).end_dim(3)),
        nn::Unflatten(nn::UnflattenOptions(1, {2, 3})));
}

void activations() {
  print(nn::ELU(), nn::ELU(nn::ELUOptions().alpha(42.42).inplace(true)), nn::SELU(),
        nn::SELU(nn::SELUOptions().inplace(true)), nn::Hardshrink(), nn::Hardshrink(nn::HardshrinkOptions(42.42)),
        nn::Hardtanh(), nn::Hardtanh(nn::HardtanhOptions().min_val(-42.42).max_val(0.123456789).inplace(true)));
  print(nn::LeakyReLU(), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.42).inplace(true)), nn::LogSigmoid(),
        nn::Softmax(1), nn::Softmin(-1), nn::LogSoftmax(2), nn::Softmax2d(), nn::PReLU(),
        nn::PReLU(nn::PReLUOptions().num_parameters(42)), nn::ReLU(), nn::ReLU(nn::ReLUOptions().inplace(true)),
        nn::ReLU(true), nn::ReLU6(), nn::ReLU6(nn::ReLU6Options().inplace(true)));
  print(nn::RReLU(), nn::RReLU(nn::RReLUOptions().lower(0.24).upper(0.42).inplace(true)), nn::CELU(),
        nn::CELU(nn::CELUOptions().alpha(42.42).inplace(true)), nn::GLU(), nn::GLU(1), nn::GELU(), nn::SiLU(),
        nn::Mish(), nn::Sigmoid(), nn::Softplus(), nn::Softplus(nn::SoftplusOptions().beta(0.24).threshold(42.42)),
        nn::Softshrink(), nn::Softshrink(nn::SoftshrinkOptions(42.42)), nn::Softsign(), nn::Tanh(), nn::Tanhshrink(),
        nn::Threshold(24.24, 42.42), nn::Threshold(nn::ThresholdOptions(1e-7, 1e20).inplace(true)));
}

void pools() {
  print(nn::MaxPool1d(5), nn::MaxPool2d(5), nn::MaxPool3d(5),
        nn::MaxPool2d(nn::MaxPool2dOptions({2, 3}).stride({1, 2}).padding(1).dilation(3).ceil_mode(true)));
  print(nn::AvgPool1d(5), nn::AvgPool2d(5), nn::AvgPool3d(5), nn::AvgPool2d(nn::AvgPool2dOptions({2, 3}).stride(1)));
  print(nn::AdaptiveMaxPool1d(5), nn::AdaptiveMaxPool2d(5), nn::AdaptiveMaxPool3d(5), nn::AdaptiveAvgPool1d(5),
        nn::AdaptiveAvgPool2d(5), nn::AdaptiveAvgPool3d(5),
        nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({5, std::nullopt})),
        nn::AdaptiveAvgPool3d(nn::AdaptiveAvgPool3dOptions({5, std::nullopt, 4})));
  print(nn::MaxUnpool1d(5), nn::MaxUnpool2d(5), nn::MaxUnpool3d(nn::MaxUnpool3dOptions(5).stride(2).padding(1)));
  print(nn::LPPool1d(2, 5), nn::LPPool2d(nn::LPPool2dOptions(1.5, {2, 3}).stride({1, 4}).ceil_mode(true)),
        nn::LPPool3d(nn::LPPool3dOptions(3, {1, 2, 3})));
  print(nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions({5, 4}).output_size(1)),
        nn::FractionalMaxPool3d(nn::FractionalMaxPool3dOptions(5).output_size(1)));
}

void norms() {
  print(nn::BatchNorm1d(4), nn::BatchNorm2d(5), nn::BatchNorm3d(6));
  print(nn::BatchNorm2d(
      nn::BatchNorm2dOptions(4).eps(0.5).momentum(0.123456789).affine(false).track_running_stats(false)));
  print(
      nn::InstanceNorm1d(4), nn::InstanceNorm2d(5), nn::InstanceNorm3d(6),
      nn::InstanceNorm1d(nn::InstanceNorm1dOptions(4).eps(0.25).momentum(0.5).affine(true).track_running_stats(true)));
  print(nn::LayerNorm(nn::LayerNormOptions({2, 2})),
        nn::LayerNorm(nn::LayerNormOptions({5}).elementwise_affine(false).eps(2e-5)), nn::GroupNorm(2, 6),
        nn::GroupNorm(nn::GroupNormOptions(2, 4).eps(2e-5).affine(false)));
  print(nn::LocalResponseNorm(2), nn::LocalResponseNorm(nn::LocalResponseNormOptions(5).alpha(2e-3).beta(0.5).k(2)),
        nn::CrossMapLRN2d(4), nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(3).alpha(1e-5).beta(0.1).k(10)));
}

void paddings() {
  print(nn::ReflectionPad1d(2), nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 1, 2, 0})), nn::ReflectionPad3d(1));
  print(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({3, 1})), nn::ReplicationPad2d(2), nn::ReplicationPad3d(1));
  print(nn::ZeroPad1d(1), nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 1, 2, 0})), nn::ZeroPad3d(2));
  print(nn::ConstantPad1d(2, 3.5), nn::ConstantPad2d(nn::ConstantPad2dOptions({3, 0, 2, 1}, 3.5)),
        nn::ConstantPad3d(1, 2));
  print(nn::PixelShuffle(5), nn::PixelUnshuffle(2));
  print(nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>{2, 3})),
        nn::Upsample(nn::UpsampleOptions()
                         .scale_factor(std::vector<double>{0.5, 1.5})
                         .mode(torch::kBilinear)
                         .align_corners(true)));
}

void dropouts_embeddings_and_distances() {
  print(nn::Dropout(), nn::Dropout(0.42), nn::Dropout2d(nn::Dropout2dOptions().p(0.42).inplace(true)),
        nn::Dropout3d(1.0 / 3), nn::AlphaDropout(0.2), nn::FeatureAlphaDropout(nn::FeatureAlphaDropoutOptions(0.3)));
  print(
      nn::Embedding(10, 2),
      nn::Embedding(
          nn::EmbeddingOptions(10, 2).padding_idx(3).max_norm(2).norm_type(2.5).scale_grad_by_freq(true).sparse(true)));
  print(nn::EmbeddingBag(10, 2), nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 2)
                                                      .max_norm(2)
                                                      .norm_type(2.5)
                                                      .scale_grad_by_freq(true)
                                                      .sparse(true)
                                                      .mode(torch::kSum)
                                                      .padding_idx(5)));
  print(nn::CosineSimilarity(), nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(0).eps(0.5)),
        nn::PairwiseDistance(), nn::PairwiseDistance(nn::PairwiseDistanceOptions().p(3).eps(0.5).keepdim(true)));
}

void losses() {
  print(nn::L1Loss(), nn::MSELoss(), nn::BCELoss(), nn::KLDivLoss(), nn::NLLLoss(), nn::CrossEntropyLoss(),
        nn::BCEWithLogitsLoss(), nn::PoissonNLLLoss(), nn::CTCLoss(), nn::SoftMarginLoss(), nn::MultiLabelMarginLoss(),
        nn::MultiLabelSoftMarginLoss(), nn::MarginRankingLoss(), nn::SmoothL1Loss(), nn::HuberLoss());
  print(nn::HingeEmbeddingLoss(), nn::HingeEmbeddingLoss(nn::HingeEmbeddingLossOptions().margin(4)),
        nn::CosineEmbeddingLoss(), nn::CosineEmbeddingLoss(nn::CosineEmbeddingLossOptions().margin(0.25)),
        nn::MultiMarginLoss(), nn::MultiMarginLoss(nn::MultiMarginLossOptions().p(2).margin(0.5)),
        nn::MarginRankingLoss(nn::MarginRankingLossOptions().margin(0.5)),
        nn::SmoothL1Loss(nn::SmoothL1LossOptions().beta(0.5)), nn::HuberLoss(nn::HuberLossOptions().delta(0.5)));
  print(nn::TripletMarginLoss(),
        nn::TripletMarginLoss(nn::TripletMarginLossOptions().margin(3).p(1).eps(0.5).swap(true)),
        nn::TripletMarginWithDistanceLoss(),
        nn::TripletMarginWithDistanceLoss(nn::TripletMarginWithDistanceLossOptions().margin(1.5).swap(true)));
  print(nn::AdaptiveLogSoftmaxWithLoss(nn::AdaptiveLogSoftmaxWithLossOptions(32, 4, {2}).div_value(2.)),
        nn::AdaptiveLogSoftmaxWithLoss(nn::AdaptiveLogSoftmaxWithLossOptions(32, 10, {4, 8}).head_bias(true)));
}

void recurrent_modules() {
  print(nn::RNN(128, 64), nn::RNN(nn::RNNOptions(4, 2).num_layers(3).dropout(0.2).nonlinearity(torch::kReLU)),
        nn::LSTM(128, 64),
        nn::LSTM(nn::LSTMOptions(128, 64).num_layers(3).dropout(0.2).bidirectional(true).batch_first(true)),
        nn::LSTM(nn::LSTMOptions(128, 64).proj_size(32).bias(false)), nn::GRU(128, 64),
        nn::GRU(nn::GRUOptions(12, 6).num_layers(3).dropout(0.5)));
  print(nn::RNNCell(20, 10), nn::RNNCell(nn::RNNCellOptions(20, 10).bias(false).nonlinearity(torch::kReLU)),
        nn::LSTMCell(20, 10), nn::LSTMCell(nn::LSTMCellOptions(20, 10).bias(false)), nn::GRUCell(20, 10),
        nn::GRUCell(nn::GRUCellOptions(20, 10).bias(false)));
}

void transformers() {
  print(nn::MultiheadAttention(20, 10),
        nn::MultiheadAttention(nn::MultiheadAttentionOptions(20, 10).bias(false).dropout(0.1)));
  print(nn::TransformerEncoderLayer(4, 2),
        nn::TransformerDecoderLayer(nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(8).dropout(0.1)));
  print(nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2), 2),
        nn::TransformerDecoder(
            nn::TransformerDecoderOptions(nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(8), 1)));
  print(nn::Transformer(nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(8)));
}

struct NetImpl : nn::Module {
  NetImpl() {
    fc = register_module("fc", nn::Linear(nn::LinearOptions(3, 4).bias(false)));
    body = register_module("body", nn::Sequential(nn::ReLU(), nn::Tanh(), nn::Functional(torch::relu)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return body->forward(fc(x)); }
  nn::Linear fc{nullptr};
  nn::Sequential body{nullptr};
};
TORCH_MODULE(Net);

struct NamedImpl : nn::Module {
  NamedImpl() : nn::Module("a name of its own") { register_module("net", Net()); }
};
TORCH_MODULE(Named);

// What TORCH_MODULE would write, of a template.
template <class Activation>
struct GatedImpl : nn::Module {
  GatedImpl() { this->register_module("gate", gate); }
  Activation gate;
};
template <class Activation>
class Gated : public nn::ModuleHolder<GatedImpl<Activation>> {
 public:
  using nn::ModuleHolder<GatedImpl<Activation>>::ModuleHolder;
  using Impl TORCH_UNUSED_EXCEPT_CUDA = GatedImpl<Activation>;
};

void containers() {
  print(nn::Sequential(), nn::ModuleList(), nn::ModuleDict(), nn::ParameterList(), nn::ParameterDict());
  print(nn::Sequential(nn::Linear(10, 3), nn::Conv2d(1, 2, 3), nn::Dropout(0.5), nn::BatchNorm2d(5),
                       nn::Embedding(4, 10), nn::LSTM(4, 5)));
  print(nn::Sequential({{"first", nn::Linear(1, 2)}, {"second", nn::ReLU()}}));
  print(nn::ModuleList(nn::Linear(10, 3), nn::Sequential(nn::Tanh(), Net()), nn::ModuleList(nn::GELU())));
  torch::OrderedDict<std::string, std::shared_ptr<nn::Module>> modules = {
      {"linear", nn::Linear(10, 3).ptr()},
      {"conv", nn::Conv2d(1, 2, 3).ptr()},
      {"body", nn::Sequential(nn::Dropout(0.5)).ptr()},
  };
  print(nn::ModuleDict(modules));
  nn::ParameterList list(torch::ones({2, 3}), torch::ones({1}).to(torch::kFloat64), torch::zeros({}));
  nn::ParameterDict dict;
  dict->insert("weight", torch::ones({2, 3}));
  dict->insert("scale", torch::ones({4}, torch::kFloat64).requires_grad_());
  print(list, dict);
  print(Net(), *Net(), Named(), nn::ModuleList(Net(), list), Gated<nn::Tanh>());
}

}  // namespace

int main() {
  convolutions();
  linear_modules();
  activations();
  pools();
  norms();
  paddings();
  dropouts_embeddings_and_distances();
  losses();
  recurrent_modules();
  transformers();
  containers();
  std::ostringstream text;
  nn::Linear(1, 2)->pretty_print(text);
  std::cout << text.str() << " " << nn::Linear(1, 2)->name() << " " << Net()->name() << "\n";
  std::cout << c10::str("a", 1, 2.5, 'c', nn::Linear(2, 3), torch::ones({2, 3}).sizes(), torch::kFloat) << "\n";
  return 0;
}
