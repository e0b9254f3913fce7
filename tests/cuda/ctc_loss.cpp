// The CTC loss on the GPU against the CPU's.
#include "core/ops/nn/ctc_loss.h"

#include <doctest/doctest.h>

#include "backends/cuda/devices.h"
#include "rushlight.h"

namespace {

using namespace rush;

struct CtcSetup {
  int64_t steps, classes, blank;
  std::vector<int64_t> input_lengths, target_lengths;
};

const CtcSetup kCtcSetups[] = {
    {12, 5, 0, {12, 9, 12}, {4, 3, 0}},
    {300, 40, 39, {300, 250}, {140, 70}},  // more states than a block has threads
    {4, 3, 0, {4, 2}, {2, 4}},             // the second target does not fit: its loss is infinite
    {1, 2, 1, {1}, {1}},
};

}  // namespace

TEST_CASE("cuda: the CTC loss and its gradient" * doctest::skip(!cuda::is_available())) {
  for (const CtcSetup& s : kCtcSetups) {
    for (const ScalarType dtype : {kFloat32, kFloat64}) {
      CAPTURE(s.steps);
      CAPTURE(str(dtype));
      manual_seed(5);
      const auto samples = static_cast<int64_t>(s.input_lengths.size());
      const int64_t longest = *std::max_element(s.target_lengths.begin(), s.target_lengths.end());
      const Tensor log_probs = randn({s.steps, samples, s.classes}, dtype).log_softmax(2);
      // Labels repeat, and are none of them the blank.
      Tensor targets = randint(0, s.classes - 1, {samples, longest}, kInt64);
      if (s.blank == 0) targets = targets + 1;
      const auto run = [&](const Tensor& probs, const Tensor& labels, bool zero_infinity) {
        const Tensor leaf = probs.detach().requires_grad_();
        const Tensor loss =
            ctc_loss(leaf, labels, s.input_lengths, s.target_lengths, s.blank, Reduction::Sum, zero_infinity);
        loss.backward();
        return std::pair(loss.detach().cpu(), leaf.grad().cpu());
      };
      for (const bool zero_infinity : {false, true}) {
        const auto expected = run(log_probs, targets, zero_infinity);
        const auto got = run(log_probs.cuda(), targets.cuda(), zero_infinity);
        const double most = dtype == kFloat64 ? 1e-10 : 2e-3;
        CHECK(got.first.allclose(expected.first, most, most, true));
        CHECK(got.second.allclose(expected.second, most, most, true));
      }
    }
  }
}

TEST_CASE("cuda: a CTC target that is no class" * doctest::skip(!cuda::is_available())) {
  const Tensor log_probs = randn({5, 1, 3}).log_softmax(2).cuda();
  const Tensor targets = tensor({1, 7}).view({1, 2}).cuda();
  const std::vector<int64_t> input_lengths = {5}, target_lengths = {2};
  CHECK_THROWS_AS(ctc_loss(log_probs, targets, input_lengths, target_lengths).item(), IndexError);
  CHECK_NOTHROW(ctc_loss(log_probs, targets.clamp_max(2), input_lengths, target_lengths).item());
}
