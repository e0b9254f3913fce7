#include "tests/labs/kernels/kernel_exercise.h"

#include <cmath>
#include <memory>

#include "tests/labs/kernels/grid_call.h"

namespace rush::labs {
namespace {

std::string mistake_of_fault(grid::FaultKind kind, bool whole) {
  switch (kind) {
    case grid::FaultKind::Race:
      return "a barrier is missing after a write: what one thread wrote to shared memory, another may read or "
             "overwrite only "
             "after __syncthreads()";
    case grid::FaultKind::RaceOfNext:
      return "a barrier is missing before the next write: what one thread reads from shared memory, another may "
             "overwrite "
             "only after __syncthreads()";
    case grid::FaultKind::Misaligned:
      return "a vector is read or written at an address that is no multiple of its size: where rows have a multiple of "
             "its "
             "elements, and not elsewhere, each row begins at one";
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

std::string output_name(const CheckedCall& checked, size_t i) {
  return checked.call.outputs == 1 ? str("the ", checked.out) : str("out[", i, "]");
}

// An infinity, or NaN, where it is expected is near, too.
bool near(const KernelCall& call, double got, double expected) {
  return got == expected || std::abs(got - expected) <= call.tolerance(expected) ||
         (std::isnan(got) && std::isnan(expected));
}

std::string mistake_of_numbers(const CheckedCall& checked, const std::vector<float>& got) {
  for (const ModelOfMistake& mistake : checked.mistakes) {
    const std::vector<double> expected = mistake.outputs();
    size_t same = 0;
    while (same < got.size() && near(checked.call, got[same], expected[same])) ++same;
    if (same == got.size()) return mistake.name;
  }
  return {};
}

std::string per_request(int64_t count, const grid::Traffic& traffic) {
  return str(static_cast<double>(count * 10 / traffic.requests) / 10);
}

}  // namespace

std::optional<Finding> stopped(bool whole, const std::function<void()>& launches) {
  try {
    launches();
    return std::nullopt;
  } catch (const grid::Fault& fault) {
    return Finding{fault.what(), mistake_of_fault(fault.kind, whole)};
  }
}

std::optional<Finding> wrong_element(const CheckedCall& checked, const std::vector<float>& got) {
  const std::vector<double> right = checked.right();
  for (size_t i = 0; i < right.size(); ++i) {
    if (std::abs(got[i] - right[i]) <= checked.call.tolerance(right[i])) continue;
    return Finding{str("first wrong element: ", output_name(checked, i), " is ", got[i], " and has to be ", right[i]),
                   mistake_of_numbers(checked, got)};
  }
  return std::nullopt;
}

Finding check_call(const CheckedCall& checked) {
  std::vector<float> got;
  const auto make = [&] { got = outputs_on_grid(checked.call, checked.out); };
  if (const auto fault = stopped(checked.call.whole, make)) return *fault;
  if (const auto wrong = wrong_element(checked, got)) return *wrong;
  for (const grid::Traffic& traffic : grid::traffic()) {
    if (const auto slow = checked.slow(traffic)) return *slow;
  }
  return {};
}

Finding check_huge(const HugeCall& call) {
  const grid::OnlyLastBlocks last(1);
  if (const auto fault = stopped(true, call.make)) return {fault->fault, kNarrowIndex};
  for (size_t i = 0; i < call.at.size(); ++i) {
    const float got = call.out[call.at[i]];
    if (std::abs(got - call.right[i]) <= 1e-6 * std::max(1.0, std::abs(call.right[i]))) continue;
    return {str("first wrong element: element ", call.at[i], " of the outputs is ", got, " and has to be ",
                call.right[i], " (only the last block of this launch was run)"),
            kNarrowIndex};
  }
  return {};
}

// ---- traffic ----

std::string request_of(const grid::Traffic& traffic) {
  return str("the numbers are right; but a warp's request to ", traffic.use == grid::Use::Load ? "read " : "write ",
             traffic.memory, ", at ", grid::place_of(traffic.code), ", ");
}

// A contiguous request that begins within a sector touches one more than it needs.
std::optional<Finding> uncoalesced(const grid::Traffic& traffic) {
  if (traffic.shared || traffic.use == grid::Use::Atomic) return std::nullopt;
  if (traffic.sectors <= traffic.least_sectors + traffic.requests) return std::nullopt;
  return Finding{str(request_of(traffic), "touches ", per_request(traffic.sectors, traffic),
                     " sectors of 32 bytes where ", per_request(traffic.least_sectors, traffic), " would do"),
                 "accesses are not coalesced: neighbouring threads have to access neighbouring elements, of rows and "
                 "not of columns"};
}

std::optional<Finding> conflicting(const grid::Traffic& traffic) {
  if (!traffic.shared || traffic.use == grid::Use::Atomic || 2 * traffic.passes <= 3 * traffic.requests) {
    return std::nullopt;
  }
  return Finding{
      str(request_of(traffic), "takes ", per_request(traffic.passes, traffic), " passes where 1 would do"),
      "the banks of shared memory are in conflict: lanes ask for different words of one bank, as in a column of a "
      "tile with 32 words in a row; another padding of the rows parts them"};
}

// ---- exercises ----

Exercise kernel_exercise(const std::string& function, const std::vector<NamedCheck>& checks) {
  const auto last = std::make_shared<Finding>();
  Exercise result{str("rush::labs::", function, "_kernel"), {}, [last] { return KnownMistake{last->mistake, ""}; }};
  for (const NamedCheck& each : checks) {
    result.calls.push_back({each.text, [last, check = each.check] {
                              *last = {};
                              *last = check();
                              return last->fault;
                            }});
  }
  return result;
}

}  // namespace rush::labs
