// Every loss of torch::nn, as a module and as a function, with its gradient.
#include "show.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

template <class Loss, class... Args>
static void measure(const char* name, Loss loss, torch::Tensor input, const Args&... rest) {
  input = input.detach().clone().requires_grad_();
  torch::Tensor value = loss(input, rest...);
  value.sum().backward();
  std::printf("%s:", name);
  print_number(value.sum().template item<double>());
  print_number(input.grad().abs().sum().template item<double>());
  std::printf("\n");
}

int main() {
  const auto x = wave({4, 3}, 0.2), y = wave({4, 3}, 1.1), z = wave({4, 3}, 2.5);
  const auto probability = torch::sigmoid(x), wanted = torch::sigmoid(y);
  const auto classes = torch::tensor({0, 2, 1, 2});
  const auto sign = torch::tensor({1, -1, -1, 1}).to(torch::kDouble);
  measure("L1Loss", nn::L1Loss(), x, y);
  measure("MSELoss", nn::MSELoss(nn::MSELossOptions(torch::kSum)), x, y);
  measure("MSELoss of each", nn::MSELoss(nn::MSELossOptions().reduction(torch::kNone)), x, y);
  measure("SmoothL1Loss", nn::SmoothL1Loss(nn::SmoothL1LossOptions().beta(0.5)), x, y);
  measure("HuberLoss", nn::HuberLoss(nn::HuberLossOptions().delta(0.3)), x, y);
  measure("BCELoss", nn::BCELoss(), probability, wanted);
  measure("BCELoss weighed", nn::BCELoss(nn::BCELossOptions().weight(y.abs()).reduction(torch::kSum)), probability,
          wanted);
  measure(
      "BCEWithLogits",
      nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().pos_weight(torch::tensor({1., 2., 3.}, torch::kFloat64))), x,
      wanted);
  measure("CrossEntropy", nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().ignore_index(1).label_smoothing(0.2)), x,
          classes);
  measure("CrossEntropy of probabilities", nn::CrossEntropyLoss(), x, torch::softmax(y, 1));
  measure("NLLLoss", nn::NLLLoss(nn::NLLLossOptions().weight(torch::tensor({0.2, 0.3, 0.5}, torch::kFloat64))),
          torch::log_softmax(x, 1), classes);
  measure("KLDivLoss", nn::KLDivLoss(nn::KLDivLossOptions().reduction(torch::kBatchMean)), torch::log_softmax(x, 1),
          torch::softmax(y, 1));
  measure("KLDivLoss of logarithms", nn::KLDivLoss(nn::KLDivLossOptions().reduction(torch::kSum).log_target(true)),
          torch::log_softmax(x, 1), torch::log_softmax(y, 1));
  measure("PoissonNLL", nn::PoissonNLLLoss(nn::PoissonNLLLossOptions().full(true)), x, y.abs() * 3);
  measure("SoftMargin", nn::SoftMarginLoss(), x, y.sign());
  measure("HingeEmbedding", nn::HingeEmbeddingLoss(nn::HingeEmbeddingLossOptions().margin(0.7)), x, y.sign());
  measure("MultiMargin", nn::MultiMarginLoss(nn::MultiMarginLossOptions().p(2).margin(0.5)), x, classes);
  measure("MultiLabelSoftMargin", nn::MultiLabelSoftMarginLoss(), x, y.gt(0).to(torch::kDouble));
  measure("MultiLabelMargin", nn::MultiLabelMarginLoss(), x,
          torch::tensor({{0, 2, -1}, {1, -1, 0}, {2, 1, 0}, {-1, 0, 1}}));
  measure("CosineEmbedding", nn::CosineEmbeddingLoss(nn::CosineEmbeddingLossOptions().margin(0.1)), x, y, sign);
  measure("MarginRanking", nn::MarginRankingLoss(nn::MarginRankingLossOptions().margin(0.2)), x.select(1, 0),
          y.select(1, 0), sign);
  measure("TripletMargin", nn::TripletMarginLoss(nn::TripletMarginLossOptions().margin(0.9).p(1).swap(true)), x, y, z);
  measure("TripletMarginWithDistance",
          nn::TripletMarginWithDistanceLoss(nn::TripletMarginWithDistanceLossOptions()
                                                .distance_function([](const torch::Tensor& a, const torch::Tensor& b) {
                                                  return (a - b).abs().amax(1);
                                                })
                                                .margin(1.5)),
          x, y, z);
  const auto log_probs = torch::log_softmax(wave({5, 2, 4}, 0.6), 2);
  measure("CTCLoss", nn::CTCLoss(nn::CTCLossOptions().blank(0).zero_infinity(true)), log_probs,
          torch::tensor({{1, 2}, {3, 3}}), torch::tensor({5, 4}), torch::tensor({2, 2}));

  // As functions.
  show("l1_loss", F::l1_loss(x, y, F::L1LossFuncOptions(torch::kSum)));
  show("smooth_l1_loss", F::smooth_l1_loss(x, y, F::SmoothL1LossFuncOptions(torch::kMean), 0.25));
  show("huber_loss", F::huber_loss(x, y, F::HuberLossFuncOptions().reduction(torch::kNone).delta(0.5)));
  show("nll_loss",
       F::nll_loss(torch::log_softmax(x, 1), classes, F::NLLLossFuncOptions().ignore_index(2).reduction(torch::kNone)));
  show("cross_entropy", F::cross_entropy(x, classes));
  show("ctc_loss", F::ctc_loss(log_probs, torch::tensor({1, 2, 3}), torch::tensor({5, 5}), torch::tensor({2, 1}),
                               F::CTCLossFuncOptions().reduction(torch::kNone)));
  show("pairwise_distance", F::pairwise_distance(x, y, F::PairwiseDistanceFuncOptions().p(1).keepdim(true)));
  show("cosine_similarity", F::cosine_similarity(x, y, F::CosineSimilarityFuncOptions().dim(0)));
  show("triplet", F::triplet_margin_loss(x, y, z, F::TripletMarginLossFuncOptions().margin(1.0)));

  // The older function of torch:: drops dimensions of one element; the checks of both.
  std::printf("%d%d%d\n", static_cast<int>(torch::binary_cross_entropy(probability, wanted).dim()),
              static_cast<int>(torch::mse_loss(x, y, at::Reduction::None).dim()),
              static_cast<int>(torch::nll_loss(torch::log_softmax(x, 1), classes, {}, at::Reduction::Sum).dim()));
  const auto refused = [](const char* what, auto fn) {
    try {
      fn();
      std::printf("nothing thrown\n");
    } catch (const c10::Error& e) {
      std::printf("refused: %s\n", what);
    }
  };
  refused("a target of another size, logits", [&] { F::binary_cross_entropy_with_logits(x, wanted.slice(0, 0, 2)); });
  refused("a target of another size", [&] { F::binary_cross_entropy(probability, wanted.slice(1, 0, 2)); });
  refused("another batch", [&] { F::nll_loss(x, torch::tensor({0, 1})); });
  refused("a class that there is not", [&] { F::nll_loss(x, torch::tensor({0, 1, 2, 3})); });
  return 0;
}
