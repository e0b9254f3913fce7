// Layers that normalise: statistics in training and evaluation, momentum, groups, and what they refuse.
#include "show.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

template <class Layer>
static void run(const char* name, Layer layer, torch::Tensor x) {
  layer->to(torch::kDouble);
  {
    torch::NoGradGuard guard;
    double phase = 0.2;
    for (auto& p : layer->parameters()) p.copy_(wave(p.sizes().vec(), phase += 0.7, 0.5) + 1);
  }
  x = x.detach().requires_grad_();
  auto y = layer(x);
  (y * wave(y.sizes().vec(), 1.1)).sum().backward();
  std::printf("%s:", name);
  print_number(y.detach().mean().template item<double>());
  print_number(y.detach().std().template item<double>());
  print_number(x.grad().abs().sum().template item<double>());
  for (const auto& p : layer->parameters()) print_number(p.grad().sum().template item<double>());
  std::printf("\n");
}

int main() {
  const auto rows = wave({6, 4}, 0.3, 2), series = wave({2, 4, 5}, 0.8), image = wave({2, 4, 3, 3}, 1.3),
             volume = wave({2, 2, 2, 3, 2}, 0.4);
  nn::BatchNorm1d batch1(nn::BatchNorm1dOptions(4).momentum(0.3).eps(1e-3));
  run("BatchNorm1d", batch1, rows);
  run("again, of a series", batch1, series);
  show("mean", batch1->running_mean);
  show("variance", batch1->running_var);
  batch1->eval();
  show("evaluated", batch1(rows));
  nn::BatchNorm2d cumulative(nn::BatchNorm2dOptions(4).momentum(std::nullopt));
  run("BatchNorm2d, averaging", cumulative, image);
  run("BatchNorm2d, averaging", cumulative, image * 3);
  show("mean", cumulative->running_mean);
  std::printf("%d\n", static_cast<int>(cumulative->num_batches_tracked.item<double>()));
  run("BatchNorm3d", nn::BatchNorm3d(nn::BatchNorm3dOptions(2).affine(false).track_running_stats(false)), volume);
  run("InstanceNorm1d", nn::InstanceNorm1d(nn::InstanceNorm1dOptions(4).affine(true)), series);
  run("InstanceNorm2d", nn::InstanceNorm2d(nn::InstanceNorm2dOptions(4).track_running_stats(true)), image);
  run("InstanceNorm3d", nn::InstanceNorm3d(2), volume);
  run("GroupNorm", nn::GroupNorm(nn::GroupNormOptions(2, 4).eps(1e-4)), image);
  run("LayerNorm", nn::LayerNorm(nn::LayerNormOptions({3, 3})), image);
  run("LayerNorm without weights", nn::LayerNorm(nn::LayerNormOptions({5}).elementwise_affine(false)), series);
  run("LocalResponseNorm", nn::LocalResponseNorm(nn::LocalResponseNormOptions(2).alpha(0.2).k(1.5)), image);
  show("CrossMapLRN2d", nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(3).alpha(0.1))(image).mean({0, 2, 3}));

  show("batch_norm", F::batch_norm(rows, torch::zeros({4}, torch::kDouble), torch::ones({4}, torch::kDouble),
                                   F::BatchNormFuncOptions().training(true))
                         .mean(0));
  show("layer_norm", F::layer_norm(rows, F::LayerNormFuncOptions({4}).eps(2e-5)).std(1, false));
  show("group_norm", F::group_norm(image, F::GroupNormFuncOptions(4)).mean({0, 2, 3}));
  show("instance_norm", F::instance_norm(series).std(2, false));
  show("local_response_norm", F::local_response_norm(series, F::LocalResponseNormFuncOptions(3)));
  show("native", std::get<1>(torch::native_layer_norm(rows, {4}, {}, {}, 1e-5)));
  // Weight normalisation by hand, and dropout of features, which the seed decides.
  auto v = wave({3, 4}, 0.6);
  show("weight norm", torch::_weight_norm(v, torch::ones({3, 1}, torch::kDouble), 0).norm(2, 1));
  torch::manual_seed(31);
  show("dropout", nn::Dropout(0.3)(torch::ones({10})));
  show("dropout of channels", nn::Dropout2d(0.4)(torch::ones({2, 3, 1, 2})));
  show("alpha dropout", nn::FeatureAlphaDropout(0.5)(torch::ones({2, 3, 2})));
  for (int wrong = 0; wrong < 4; ++wrong) {
    try {
      if (wrong == 0) nn::BatchNorm1d(3)(rows);
      if (wrong == 1) nn::BatchNorm2d(4)(rows);
      if (wrong == 2) nn::GroupNorm(3, 4)(image);
      if (wrong == 3) nn::LayerNorm(nn::LayerNormOptions({7}))(rows);
      std::printf("nothing thrown\n");
    } catch (const c10::Error&) {
      std::printf("refused\n");
    }
  }
  return 0;
}
