// Lab 10: CUDA kernels on the emulated grid. Right answers come from loops in double precision. A call is also watched:
// races, bounds, barriers, and then what the warps asked of memory, tell mistakes by what they do.
#include "tests/labs/kernels.h"

#include <cmath>
#include <memory>
#include <optional>

#include "tests/labs/exercise.h"
#include "tests/labs/grid/grid.h"
#include "tests/labs/kernel_cases.h"

namespace rush::labs {
namespace {

// What is wrong with a call, and the mistake that is known to do so.
struct Finding {
  std::string fault, mistake;
};

constexpr const char* kNarrowIndex =
    "an index is computed in 32 bits: blockIdx.x times a size goes beyond 2^31, so make it an int64_t first";

// ---- faults ----

std::string mistake_of_fault(grid::FaultKind kind, bool whole) {
  switch (kind) {
    case grid::FaultKind::Race:
      return "a barrier is missing: what one thread wrote to shared memory, another may read or overwrite only after "
             "__syncthreads()";
    case grid::FaultKind::RaceOfBlocks:
      return "blocks write one element without atomics: they run at the same time, so add by atomicAdd";
    case grid::FaultKind::Divergence:
      return "a barrier or a shuffle stands where not all threads come: in a branch, or behind a return";
    case grid::FaultKind::OutOfBounds:
      if (!whole) return "the tail is not checked: the last block has threads beyond the last element";
      return {};
    default: return {};
  }
}

// Calls `launches`, and gives what stopped it.
std::optional<Finding> stopped(bool whole, const std::function<void()>& launches) {
  try {
    launches();
    return std::nullopt;
  } catch (const grid::Fault& fault) {
    return Finding{fault.what(), mistake_of_fault(fault.kind, whole)};
  }
}

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

std::vector<double> right_answer(const KernelCase& c, const std::vector<float>& in) {
  if (c.is("transpose")) return transposed(in, c.rows, c.columns);
  if (c.is("sum")) return {sum_of(in)};
  if (c.is("softmax")) return softmax_of(in, c.columns);
  return {in.begin(), in.end()};
}

std::string output_name(const KernelCase& c, int64_t i) { return c.is("sum") ? "the sum" : str("out[", i, "]"); }

std::optional<Finding> wrong_element(const KernelCase& c, const std::vector<double>& right,
                                     const std::vector<float>& got) {
  for (size_t i = 0; i < right.size(); ++i) {
    if (std::abs(got[i] - right[i]) <= tolerance(c, right[i])) continue;
    const bool overflowed = c.is("softmax") && c.largest > 88;
    return Finding{str("first wrong element: ", output_name(c, static_cast<int64_t>(i)), " is ", got[i],
                       " and has to be ", right[i]),
                   overflowed ? "the row's maximum is not subtracted: exp of a large number is infinite" : ""};
  }
  return std::nullopt;
}

// ---- traffic ----

std::string per_request(int64_t count, const grid::Traffic& traffic) {
  return str(static_cast<double>(count * 10 / traffic.requests) / 10);
}

std::string request_of(const grid::Traffic& traffic) {
  return str("the numbers are right; but a warp's request to ", traffic.use == grid::Use::Load ? "read " : "write ",
             traffic.memory, ", at ", grid::place_of(traffic.code), ", ");
}

// One for each warp of threads that add up some elements is not yet too many.
std::optional<Finding> many_atomics(const KernelCase& c, const grid::Traffic& traffic) {
  constexpr int64_t kElements = 256;  // for each atomic
  if (!c.whole || traffic.requests * kElements <= c.inputs()) return std::nullopt;
  return Finding{str("the numbers are right; but ", c.inputs(), " elements take ", traffic.requests, " atomics, at ",
                     grid::place_of(traffic.code)),
                 "each thread adds by an atomic: they wait for each other, so add up a block first"};
}

// A contiguous request that begins within a sector touches one more than it needs.
std::optional<Finding> slow_access(const KernelCase& c, const grid::Traffic& traffic) {
  if (traffic.use == grid::Use::Atomic) return many_atomics(c, traffic);
  if (!traffic.shared && traffic.sectors > traffic.least_sectors + traffic.requests) {
    return Finding{str(request_of(traffic), "touches ", per_request(traffic.sectors, traffic),
                       " sectors of 32 bytes where ", per_request(traffic.least_sectors, traffic), " would do"),
                   "accesses are not coalesced: neighbouring threads have to access neighbouring elements, of rows and "
                   "not of columns"};
  }
  if (traffic.shared && 2 * traffic.passes > 3 * traffic.requests) {
    return Finding{str(request_of(traffic), "takes ", per_request(traffic.passes, traffic), " passes where 1 would do"),
                   "the banks of shared memory are in conflict: a column of the tile lies in one bank, unless rows "
                   "have an element of padding"};
  }
  return std::nullopt;
}

// ---- calls ----

Finding check_case(const KernelCase& c) {
  const std::vector<float> in = inputs_of(c);
  const grid::Buffer<float> device_in("in", in);
  const grid::Buffer<float> device_out(c.is("sum") ? "total" : "out", c.outputs());
  if (const auto fault = stopped(c.whole, [&] { make_call(c, device_in.data(), device_out.data()); })) return *fault;
  if (const auto wrong = wrong_element(c, right_answer(c, in), device_out.values())) return *wrong;
  for (const grid::Traffic& traffic : grid::traffic()) {
    if (const auto slow = slow_access(c, traffic)) return *slow;
  }
  return {};
}

// A call with more than 2^32 elements, of which the grid's last block runs alone. All are 0 except the last two, which
// are 2 and 3; the outputs number `at` have to be `right`.
Finding check_huge(const KernelCase& c, const std::vector<int64_t>& at, const std::vector<double>& right) {
  const int64_t n = c.inputs();
  const grid::Buffer<float> in("in", n), out(c.is("sum") ? "total" : "out", c.outputs());
  in[n - 2] = 2;
  in[n - 1] = 3;
  const grid::OnlyLastBlocks last(1);
  const auto fault = stopped(true, [&] { make_call(c, in.data(), out.data()); });
  if (fault) return {fault->fault, kNarrowIndex};
  for (size_t i = 0; i < at.size(); ++i) {
    if (std::abs(out[at[i]] - right[i]) <= 1e-6) continue;
    return {str("first wrong element: ", output_name(c, at[i]), " is ", out[at[i]], " and has to be ", right[i],
                " (only the last block of this launch was run)"),
            kNarrowIndex};
  }
  return {};
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
  const std::vector<float> logits = inputs_of(c);  // (classes, batch)
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
  const auto wrong = wrong_element(c, softmax_of({by_sample.begin(), by_sample.end()}, c.rows), kept.values());
  if (wrong) return *wrong;
  if (std::abs(total[0] - static_cast<double>(c.columns)) < 1e-3) return {};
  return {str("the probabilities of ", c.columns, " samples sum to ", total[0]), ""};
}

// ---- exercises ----

std::string text_of(const KernelCase& c) {
  const bool is_matrix = c.is("transpose") || c.is("softmax");
  const std::string sizes =
      is_matrix ? str(c.rows, " rows of ", c.columns) : str(c.inputs(), c.inputs() == 1 ? " element" : " elements");
  return str(c.function, " of ", sizes, c.largest > 1 ? str(", up to ", c.largest) : "");
}

Exercise kernel_exercise(const std::string& function) {
  const auto last = std::make_shared<Finding>();
  Exercise result{str("rush::labs::", function, "_kernel"), {}, [last] { return KnownMistake{last->mistake, ""}; }};
  const auto add = [&](const std::string& text, const std::function<Finding()>& check) {
    result.calls.push_back({text, [last, check] {
                              *last = {};
                              *last = check();
                              return last->fault;
                            }});
  };
  for (const KernelCase& c : kKernelCases) {
    if (c.is(function.c_str())) add(text_of(c), [c] { return check_case(c); });
  }
  add(str(function, " of more than 2^32 elements, the last block of it"), [function] { return check_huge(function); });
  if (function == "softmax") add("transpose, softmax, copy and sum of the logits of 300 samples", check_together);
  return result;
}

}  // namespace

std::vector<Exercise> kernel_exercises() {
  return {kernel_exercise("copy"), kernel_exercise("transpose"), kernel_exercise("sum"), kernel_exercise("softmax")};
}

}  // namespace rush::labs
