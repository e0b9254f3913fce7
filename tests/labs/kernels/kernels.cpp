// Lab 10: CUDA kernels on the emulated grid. Right answers come from loops in double precision.
#include "tests/labs/kernels/kernels.h"

#include <cmath>

#include "tests/labs/grid/grid.h"
#include "tests/labs/kernels/kernel_cases.h"
#include "tests/labs/kernels/kernel_exercise.h"

namespace rush::labs {
namespace {

// ---- numbers ----

std::vector<double> transposed(const std::vector<float>& in, int64_t rows, int64_t columns) {
  std::vector<double> out;
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) out.push_back(in[static_cast<size_t>(r * columns + c)]);
  }
  return out;
}

double sum_of(const std::vector<float>& in) {
  double total = 0;
  for (float x : in) total += x;
  return total;
}

// By log(sum(exp)) in extended precision, whose exponents are large enough for these numbers.
std::vector<double> softmax_of(const std::vector<float>& in, int64_t columns) {
  std::vector<double> out;
  for (size_t begin = 0; begin < in.size(); begin += static_cast<size_t>(columns)) {
    long double total = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(columns); ++i)
      total += std::exp(static_cast<long double>(in[i]));
    for (size_t i = begin; i < begin + static_cast<size_t>(columns); ++i) {
      out.push_back(static_cast<double>(std::exp(in[i] - std::log(total))));
    }
  }
  return out;
}

// Without the maximum: exp is infinite beyond 88.7, and infinity divided by infinity is NaN.
std::vector<double> overflowing_softmax_of(const std::vector<float>& in, int64_t columns) {
  std::vector<double> out;
  for (size_t begin = 0; begin < in.size(); begin += static_cast<size_t>(columns)) {
    float total = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(columns); ++i) total += std::exp(in[i]);
    for (size_t i = begin; i < begin + static_cast<size_t>(columns); ++i) out.push_back(std::exp(in[i]) / total);
  }
  return out;
}

std::vector<double> right_answer(const KernelCase& c, const std::vector<float>& in) {
  if (c.is("transpose")) return transposed(in, c.rows, c.columns);
  if (c.is("sum")) return {sum_of(in)};
  if (c.is("softmax")) return softmax_of(in, c.columns);
  return {in.begin(), in.end()};
}

// ---- traffic ----

// One for each warp of threads that add up some elements is not yet too many.
std::optional<Finding> many_atomics(const KernelCase& c, const grid::Traffic& traffic) {
  constexpr int64_t kElements = 256;  // for each atomic
  if (!c.whole || traffic.requests * kElements <= c.inputs()) return std::nullopt;
  return Finding{str("the numbers are right; but ", c.inputs(), " elements take ", traffic.requests, " atomics, at ",
                     grid::place_of(traffic.code)),
                 "each thread adds by an atomic: they wait for each other, so add up a block first"};
}

std::optional<Finding> slow_access(const KernelCase& c, const grid::Traffic& traffic) {
  if (traffic.use == grid::Use::Atomic) return many_atomics(c, traffic);
  const auto finding = uncoalesced(traffic);
  return finding ? finding : conflicting(traffic);
}

// ---- calls ----

CheckedCall checked(const KernelCase& c) {
  CheckedCall result{call_of(c), c.is("sum") ? "total" : "out", nullptr, {}, nullptr};
  const std::vector<float> in = result.call.inputs[0].values;
  result.right = [=] { return right_answer(c, in); };
  result.slow = [=](const grid::Traffic& traffic) { return slow_access(c, traffic); };
  if (c.is("softmax") && c.largest > 88) {
    result.mistakes.push_back({"the row's maximum is not subtracted: exp of a large number is infinite",
                               [=] { return overflowing_softmax_of(in, c.columns); }});
  }
  if (c.is("softmax") && c.shift < -88) {
    result.mistakes.push_back({kMaximumFromZero, [=] { return std::vector<double>(in.size(), std::nan("")); }});
  }
  return result;
}

// All elements are 0 except the last two, which are 2 and 3; the outputs number `at` have to be `right`.
Finding check_huge(const KernelCase& c, const std::vector<int64_t>& at, const std::vector<double>& right) {
  const int64_t n = c.inputs();
  const grid::Buffer<float> in("in", n), out(c.is("sum") ? "total" : "out", c.outputs());
  in[n - 2] = 2;
  in[n - 1] = 3;
  return check_huge(HugeCall{[&] { make_call(c, in.data(), out.data()); }, out, at, right});
}

Finding check_huge(const std::string& function) {
  constexpr int64_t kMany = (int64_t{1} << 32) + 100, kSide = 70000;
  if (function == "copy") return check_huge({"copy", 1, kMany, false}, {kMany - 2, kMany - 1}, {2, 3});
  if (function == "sum") return check_huge({"sum", 1, kMany, false}, {0}, {5});
  if (function == "transpose") {
    constexpr int64_t kAll = kSide * kSide;
    return check_huge({"transpose", kSide, kSide, false}, {kAll - 1 - kSide, kAll - 1}, {2, 3});
  }
  constexpr int64_t kRows = 5'000'000, kColumns = 1000;
  const double total = std::exp(2.0) + std::exp(3.0) + kColumns - 2;
  return check_huge({"softmax", kRows, kColumns, false}, {kRows * kColumns - 2, kRows * kColumns - 1},
                    {std::exp(2.0) / total, std::exp(3.0) / total});
}

// Logits of a batch that lie class by class: their softmax for each sample, of which each sums to 1.
Finding check_together() {
  const KernelCase c{"softmax", 40, 300, false, 20};
  const std::vector<float> logits = mixed_values(c.inputs(), c.largest);  // (classes, batch)
  const grid::Buffer<float> in("logits", logits), turned("turned", c.inputs()), out("probabilities", c.inputs()),
      kept("kept", c.inputs()), total("total", 1);
  const auto fault = stopped(false, [&] {
    transpose(in.data(), turned.data(), c.rows, c.columns);
    softmax(turned.data(), out.data(), c.columns, c.rows);
    copy(out.data(), kept.data(), c.inputs());
    sum(kept.data(), total.data(), c.inputs());
  });
  if (fault) return *fault;
  const std::vector<double> by_sample = transposed(logits, c.rows, c.columns);
  CheckedCall softmax_call = checked(c);
  softmax_call.right = [&] { return softmax_of({by_sample.begin(), by_sample.end()}, c.rows); };
  if (const auto wrong = wrong_element(softmax_call, kept.values())) return *wrong;
  if (std::abs(total[0] - static_cast<double>(c.columns)) < 1e-3) return {};
  return {str("the probabilities of ", c.columns, " samples sum to ", total[0]), ""};
}

// ---- exercises ----

Exercise exercise_of(const std::string& function) {
  std::vector<NamedCheck> checks;
  for (const KernelCase& c : kKernelCases) {
    if (c.is(function.c_str())) checks.push_back({call_of(c).text(), [c] { return check_call(checked(c)); }});
  }
  checks.push_back({str(function, " of more than 2^32 elements, the last block of it"),
                    [function] { return check_huge(function); }});
  if (function == "softmax") {
    checks.push_back({"transpose, softmax, copy and sum of the logits of 300 samples", check_together});
  }
  return kernel_exercise(function, checks);
}

}  // namespace

std::vector<Exercise> kernel_exercises() {
  return {exercise_of("copy"), exercise_of("transpose"), exercise_of("sum"), exercise_of("softmax")};
}

}  // namespace rush::labs
