// Layers that move pixels: every padding mode of convolutions, padding layers, pooling with indices, folding,
// shuffling, resizing and sampling.
#include "show.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

static void summary(const char* name, const torch::Tensor& t) {
  std::printf("%s [", name);
  for (int64_t i = 0; i < t.dim(); ++i) std::printf("%s%d", i ? ", " : "", static_cast<int>(t.size(i)));
  std::printf("]");
  const auto wide = t.to(torch::kFloat64).flatten();
  print_number(wide.sum().item<double>());
  print_number((wide * (torch::arange(wide.numel(), torch::kFloat64) * 0.37).cos()).sum().item<double>());
  std::printf("\n");
}

int main() {
  const auto x = wave({2, 2, 6, 5}, 0.3);
  const auto line = wave({2, 2, 7}, 0.9), volume = wave({1, 2, 4, 4, 4}, 1.7);

  for (const nn::detail::conv_padding_mode_t& mode :
       {nn::detail::conv_padding_mode_t(torch::kZeros), nn::detail::conv_padding_mode_t(torch::kReflect),
        nn::detail::conv_padding_mode_t(torch::kReplicate), nn::detail::conv_padding_mode_t(torch::kCircular)}) {
    nn::Conv1d conv1(nn::Conv1dOptions(2, 3, 3).padding(2).padding_mode(mode));
    nn::Conv2d conv2(nn::Conv2dOptions(2, 4, {3, 2}).padding({1, 2}).groups(2).stride(2).padding_mode(mode));
    fill_parameters(*conv1);
    fill_parameters(*conv2);
    summary(torch::enumtype::get_enum_name(mode).c_str(), conv1(line));
    summary("  two dimensions", conv2(x));
  }
  nn::Conv2d same(nn::Conv2dOptions(2, 2, 3).padding(torch::kSame).dilation(2));
  nn::Conv3d valid(nn::Conv3dOptions(2, 2, 2).padding(torch::kValid).bias(false));
  fill_parameters(*same);
  fill_parameters(*valid);
  summary("same", same(x));
  summary("valid", valid(volume));
  nn::ConvTranspose2d up(nn::ConvTranspose2dOptions(2, 2, 3).stride(2).padding(1).output_padding(1));
  fill_parameters(*up);
  summary("transposed", up(x));
  summary("transposed, to a size", up->forward(x, std::vector<int64_t>{11, 9}));

  summary("ZeroPad2d", nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 0, 2, 1}))(x));
  summary("ReflectionPad2d", nn::ReflectionPad2d(2)(x));
  summary("ReplicationPad3d", nn::ReplicationPad3d(1)(volume));
  summary("ConstantPad1d", nn::ConstantPad1d(nn::ConstantPad1dOptions({2, 1}, 3.5))(line));
  summary("circular", F::pad(x, F::PadFuncOptions({1, 1, 2, 0}).mode(torch::kCircular)));

  auto [pooled, where] = nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2))->forward_with_indices(x);
  summary("max pool", pooled);
  summary("unpool", nn::MaxUnpool2d(2)->forward(pooled, where, std::vector<int64_t>{2, 2, 6, 5}));
  summary("average",
          nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(2).padding(1).ceil_mode(true).count_include_pad(false))(x));
  summary("adaptive max", nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({3, 2}))(x));
  summary("adaptive average", F::adaptive_avg_pool3d(volume, F::AdaptiveAvgPool3dFuncOptions({2, std::nullopt, 1})));
  summary("power average", nn::LPPool2d(nn::LPPool2dOptions(2, 2))(x));

  const auto columns = nn::Unfold(nn::UnfoldOptions({2, 3}).padding(1).stride(2))(x);
  summary("unfold", columns);
  summary("fold", nn::Fold(nn::FoldOptions({6, 5}, {2, 3}).padding(1).stride(2))(columns));
  const auto shuffled = nn::PixelShuffle(nn::PixelShuffleOptions(2))(wave({1, 8, 2, 3}, 0.1));
  summary("pixel shuffle", shuffled);
  summary("pixel unshuffle", nn::PixelUnshuffle(2)(shuffled));

  summary(
      "nearest",
      F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 1.5}).mode(torch::kNearest)));
  summary("bilinear",
          nn::Upsample(
              nn::UpsampleOptions().size(std::vector<int64_t>{9, 4}).mode(torch::kBilinear).align_corners(true))(x));
  summary("bicubic",
          F::interpolate(x, F::InterpolateFuncOptions().size(std::vector<int64_t>{4, 8}).mode(torch::kBicubic)));
  summary("trilinear",
          F::interpolate(
              volume,
              F::InterpolateFuncOptions().scale_factor(std::vector<double>{1.5, 1.5, 1.5}).mode(torch::kTrilinear)));
  summary("area", F::interpolate(x, F::InterpolateFuncOptions().size(std::vector<int64_t>{3, 3}).mode(torch::kArea)));

  const auto theta =
      torch::tensor({{{0.8, 0.3, 0.1}, {-0.3, 0.9, 0.0}}, {{1.0, 0.0, 0.2}, {0.1, 1.2, -0.1}}}, torch::kFloat64);
  const auto grid = F::affine_grid(theta, {2, 2, 4, 4}, /*align_corners=*/false);
  summary("grid", grid);
  summary("sampled",
          F::grid_sample(
              x, grid,
              F::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kReflection).align_corners(false)));
  summary(
      "sampled, nearest",
      F::grid_sample(
          x, grid, F::GridSampleFuncOptions().mode(torch::kNearest).padding_mode(torch::kBorder).align_corners(true)));
  for (int wrong = 0; wrong < 3; ++wrong) {
    try {
      if (wrong == 0) nn::Conv2d(3, 4, 3)(x);
      if (wrong == 1) F::pad(x, F::PadFuncOptions({9, 9, 9, 9}).mode(torch::kReflect));
      if (wrong == 2) nn::MaxPool2d(9)(x);
      std::printf("nothing thrown\n");
    } catch (const c10::Error& e) {
      std::printf("refused %d\n", wrong);
    }
  }
  return 0;
}
