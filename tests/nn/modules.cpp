// Every module against PyTorch's numbers: names and shapes of parameters, outputs, gradients, changes of buffers.
#include "tests/nn/torch_fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using namespace rush_tests;

Tensor loss_weight(const json& fixture, const char* name) { return from_json(fixture["state"][name]); }

// The cases of make_fixtures.py.
const FixtureCases kModuleFixtures = {
    {"Linear(4, 3)", [](auto&) { return Linear(4, 3); }},
    {"Linear(4, 3) without bias", [](auto&) { return Linear(LinearOptions(4, 3).bias(false)); }},
    {"Bilinear(2, 3, 4)", [](auto&) { return Bilinear(2, 3, 4); }},
    {"Flatten", [](auto&) { return Flatten(); }},
    {"Unflatten",
     [](auto&) {
       return Unflatten(1, std::vector<int64_t>{2, 3});
     }},
    {"Conv1d", [](auto&) { return Conv1d(Conv1dOptions(2, 4, 3).stride(2).padding(1)); }},
    {"Conv2d",
     [](auto&) {
       return Conv2d(Conv2dOptions(4, 6, {3, 2}).stride({2, 1}).padding({1, 0}).dilation({1, 2}).groups(2));
     }},
    {"Conv2d unbatched", [](auto&) { return Conv2d(1, 2, 3); }},
    {"Conv2d same",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 2, {3, 4}).padding(kSame).dilation(2).bias(false));
     }},
    {"Conv2d valid", [](auto&) { return Conv2d(Conv2dOptions(1, 2, 2).padding(kValid)); }},
    {"Conv2d reflect",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 2, 3).padding({2, 1}).padding_mode(kReflect));
     }},
    {"Conv1d replicate", [](auto&) { return Conv1d(Conv1dOptions(1, 2, 3).padding(3).padding_mode(kReplicate)); }},
    {"Conv2d circular same",
     [](auto&) {
       return Conv2d(Conv2dOptions(1, 1, {2, 3}).padding(kSame).padding_mode(kCircular));
     }},
    {"Conv3d", [](auto&) { return Conv3d(1, 2, 2); }},
    {"BatchNorm1d(3)", [](auto&) { return BatchNorm1d(3); }},
    {"BatchNorm1d(3) of sequences", [](auto&) { return BatchNorm1d(3); }},
    {"BatchNorm2d(2) cumulative", [](auto&) { return BatchNorm2d(BatchNorm2dOptions(2).momentum(std::nullopt)); }},
    {"BatchNorm2d(2) evaluated", [](auto&) { return evaluated(BatchNorm2d(2)); }},
    {"BatchNorm2d(2) untracked",
     [](auto&) { return BatchNorm2d(BatchNorm2dOptions(2).track_running_stats(false).affine(false)); }},
    {"BatchNorm3d(1)", [](auto&) { return BatchNorm3d(BatchNorm3dOptions(1).eps(0.1).momentum(0.5)); }},
    {"LayerNorm({3, 4})",
     [](auto&) {
       return LayerNorm(LayerNormOptions({3, 4}));
     }},
    {"LayerNorm({4}) without bias", [](auto&) { return LayerNorm(LayerNormOptions({4}).bias(false).eps(0.1)); }},
    {"GroupNorm(2, 4)", [](auto&) { return GroupNorm(2, 4); }},
    {"RMSNorm({4})", [](auto&) { return RMSNorm(RMSNormOptions({4})); }},
    {"Embedding(5, 3)", [](auto&) { return Embedding(EmbeddingOptions(5, 3).padding_idx(-4)); }},
    {"Embedding(5, 3) limited", [](auto&) { return Embedding(EmbeddingOptions(5, 3).max_norm(1.0)); }},
    {"LSTM(3, 4)", [](auto&) { return LSTM(3, 4); }},
    {"LSTM(3, 2) of all kinds",
     [](auto&) { return LSTM(LSTMOptions(3, 2).num_layers(2).bidirectional(true).batch_first(true)); }},
    {"LSTM(3, 2) unbatched", [](auto&) { return LSTM(LSTMOptions(3, 2).bias(false)); }},
    {"LSTMCell(3, 2)", [](auto&) { return LSTMCell(3, 2); }},
    {"MaxPool1d", [](auto&) { return MaxPool1d(MaxPool1dOptions(3).stride(2).padding(1)); }},
    {"MaxPool2d",
     [](auto&) {
       return MaxPool2d(MaxPool2dOptions({2, 3}).stride({2, 1}).padding({0, 1}).ceil_mode(true));
     }},
    {"MaxPool3d", [](auto&) { return MaxPool3d(2); }},
    {"AvgPool1d", [](auto&) { return AvgPool1d(AvgPool1dOptions(2).padding(1)); }},
    {"AvgPool2d", [](auto&) { return AvgPool2d(AvgPool2dOptions(3).stride(2).padding(1).count_include_pad(false)); }},
    {"AvgPool3d", [](auto&) { return AvgPool3d(AvgPool3dOptions(2).divisor_override(3)); }},
    {"AdaptiveAvgPool1d", [](auto&) { return AdaptiveAvgPool1d(3); }},
    {"AdaptiveAvgPool2d",
     [](auto&) {
       return AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({2, std::nullopt}));
     }},
    {"AdaptiveAvgPool3d", [](auto&) { return AdaptiveAvgPool3d(1); }},
    {"ReLU", [](auto&) { return ReLU(); }},
    {"ReLU6", [](auto&) { return ReLU6(); }},
    {"ELU", [](auto&) { return ELU(ELUOptions().alpha(0.7)); }},
    {"SELU", [](auto&) { return SELU(); }},
    {"CELU", [](auto&) { return CELU(CELUOptions().alpha(1.5)); }},
    {"LeakyReLU", [](auto&) { return LeakyReLU(LeakyReLUOptions().negative_slope(0.2)); }},
    {"GELU", [](auto&) { return GELU(); }},
    {"GELU tanh", [](auto&) { return GELU(GELUOptions().approximate("tanh")); }},
    {"SiLU", [](auto&) { return SiLU(); }},
    {"Mish", [](auto&) { return Mish(); }},
    {"Hardswish", [](auto&) { return Hardswish(); }},
    {"Hardsigmoid", [](auto&) { return Hardsigmoid(); }},
    {"Hardtanh", [](auto&) { return Hardtanh(HardtanhOptions().min_val(-0.5).max_val(0.8)); }},
    {"Softplus", [](auto&) { return Softplus(SoftplusOptions().beta(2).threshold(1)); }},
    {"GLU", [](auto&) { return GLU(1); }},
    {"Sigmoid", [](auto&) { return Sigmoid(); }},
    {"Tanh", [](auto&) { return Tanh(); }},
    {"LogSigmoid", [](auto&) { return LogSigmoid(); }},
    {"Softsign", [](auto&) { return Softsign(); }},
    {"Tanhshrink", [](auto&) { return Tanhshrink(); }},
    {"Softmax", [](auto&) { return Softmax(1); }},
    {"Softmin", [](auto&) { return Softmin(0); }},
    {"LogSoftmax", [](auto&) { return LogSoftmax(-1); }},
    {"CrossEntropyLoss", [](auto&) { return CrossEntropyLoss(); }},
    {"CrossEntropyLoss weighted",
     [](auto& fixture) {
       return CrossEntropyLoss(CrossEntropyLossOptions()
                                   .weight(loss_weight(fixture, "weight"))
                                   .ignore_index(2)
                                   .label_smoothing(0.1)
                                   .reduction(kSum));
     }},
    {"CrossEntropyLoss of probabilities", [](auto&) { return CrossEntropyLoss(); }},
    {"NLLLoss",
     [](auto& fixture) { return NLLLoss(NLLLossOptions().weight(loss_weight(fixture, "weight")).reduction(kNone)); }},
    {"MSELoss", [](auto&) { return MSELoss(); }},
    {"L1Loss", [](auto&) { return L1Loss(L1LossOptions(kSum)); }},
    {"SmoothL1Loss", [](auto&) { return SmoothL1Loss(SmoothL1LossOptions().beta(0.5)); }},
    {"HuberLoss", [](auto&) { return HuberLoss(HuberLossOptions().delta(0.6)); }},
    {"BCELoss", [](auto& fixture) { return BCELoss(BCELossOptions().weight(loss_weight(fixture, "weight"))); }},
    {"BCEWithLogitsLoss",
     [](auto& fixture) {
       return BCEWithLogitsLoss(BCEWithLogitsLossOptions().pos_weight(loss_weight(fixture, "pos_weight")));
     }},
    {"KLDivLoss", [](auto&) { return KLDivLoss(KLDivLossOptions(kBatchMean)); }},
};

TEST_CASE("modules have PyTorch's parameters, outputs and gradients") {
  check_fixtures("nn/fixtures.json", kModuleFixtures);
}

TEST_CASE("a clone computes the same, and shares nothing") { check_clones("nn/fixtures.json", kModuleFixtures); }

}  // namespace
