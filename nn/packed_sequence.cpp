#include "nn/packed_sequence.h"

#include <algorithm>
#include <functional>

#include "core/ops/factory/factories.h"
#include "core/ops/view/join.h"
#include "core/ops/view/pad.h"
#include "core/ops/view/read_integers.h"

namespace rush::nn::utils::rnn {

namespace {

Tensor to_tensor(const std::vector<int64_t>& values) { return tensor(ArrayRef<int64_t>(values), kCPU); }

// `input` with `before` and `after` more elements along one dimension.
Tensor pad_along(const Tensor& input, int64_t dim, int64_t before, int64_t after, double value) {
  if (before == 0 && after == 0) return input;
  std::vector<int64_t> amounts(2 * static_cast<size_t>(input.dim() - dim), 0);  // the last dimension comes first
  amounts[amounts.size() - 2] = before;
  amounts[amounts.size() - 1] = after;
  return constant_pad_nd(input, amounts, value);
}

// Run-length encoding: (number, how often) for each run of equal numbers.
std::vector<std::pair<int64_t, int64_t>> run_lengths(const std::vector<int64_t>& values) {
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const int64_t value : values) {
    if (result.empty() || result.back().first != value) result.emplace_back(value, 0);
    ++result.back().second;
  }
  return result;
}

// `head` in front of the sizes of `input` from dimension `from` on.
std::vector<int64_t> with_head(std::vector<int64_t> head, const Tensor& input, int64_t from) {
  for (int64_t d = from; d < input.dim(); ++d) head.push_back(input.size(d));
  return head;
}

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t steps) {
  RUSH_CHECK_VALUE(!lengths.empty(), "pack_padded_sequence: there are no sequences");
  RUSH_CHECK_VALUE(static_cast<int64_t>(lengths.size()) == batch, "pack_padded_sequence: ", lengths.size(),
                   " lengths for ", batch, " sequences");
  for (const int64_t length : lengths) {
    RUSH_CHECK_VALUE(length >= 1 && length <= steps, "pack_padded_sequence: expected lengths within 1 and ", steps,
                     ", got ", length);
  }
}

}  // namespace

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  if (sorted_indices_.defined() && !unsorted_indices_.defined())
    unsorted_indices_ = invert_permutation(sorted_indices_);
  RUSH_CHECK_VALUE(batch_sizes_.dim() == 1 && batch_sizes_.scalar_type() == kInt64 && batch_sizes_.device().is_cpu(),
                   "PackedSequence: expected batch_sizes of one dimension, int64, on the CPU, got shape ",
                   batch_sizes_.sizes(), " of ", batch_sizes_.scalar_type());
}

PackedSequence PackedSequence::to(const TensorOptions& options) const {
  const Tensor data = data_.to(options);
  const auto moved = [&](const Tensor& indices) { return indices.defined() ? indices.to(data.device()) : indices; };
  return PackedSequence(data, batch_sizes_, moved(sorted_indices_), moved(unsorted_indices_));
}

PackedSequence PackedSequence::pin_memory() const {
  const auto pinned = [](const Tensor& indices) { return indices.defined() ? indices.pin_memory() : indices; };
  return PackedSequence(data_.pin_memory(), batch_sizes_, pinned(sorted_indices_), pinned(unsorted_indices_));
}

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  const std::vector<int64_t> forward = native::read_integers(permutation);
  std::vector<int64_t> inverse(forward.size());
  for (size_t i = 0; i < forward.size(); ++i) {
    RUSH_CHECK_VALUE(forward[i] >= 0 && forward[i] < static_cast<int64_t>(forward.size()),
                     "invert_permutation: ", forward[i], " is outside a permutation of ", forward.size());
    inverse[static_cast<size_t>(forward[i])] = static_cast<int64_t>(i);
  }
  return to_tensor(inverse).to(permutation.device());
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  RUSH_CHECK_VALUE(input.dim() >= 2 && lengths.dim() == 1,
                   "pack_padded_sequence: expected an input of at least 2 dimensions and lengths of one, got shapes ",
                   input.sizes(), " and ", lengths.sizes());
  Tensor padded = batch_first ? input.transpose(0, 1) : input;  // (T, N, ...)
  std::vector<int64_t> sizes = native::read_integers(lengths);
  check_lengths(sizes, padded.size(1), padded.size(0));
  Tensor sorted_indices;
  if (!enforce_sorted) {
    std::vector<int64_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    const auto length = [&](int64_t i) { return sizes[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
    sorted_indices = to_tensor(order).to(input.device());
    padded = padded.index_select(1, sorted_indices);
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
  }
  RUSH_CHECK_VALUE(std::is_sorted(sizes.rbegin(), sizes.rend()), "pack_padded_sequence: lengths ", sizes,
                   " are not in decreasing order; pass enforce_sorted=false to have them sorted");

  std::vector<int64_t> batch_sizes(static_cast<size_t>(sizes[0]), 0);
  for (const int64_t size : sizes) {
    for (int64_t t = 0; t < size; ++t) ++batch_sizes[static_cast<size_t>(t)];
  }
  std::vector<Tensor> parts;
  int64_t step = 0;
  for (const auto& [batch, steps] : run_lengths(batch_sizes)) {
    const Tensor part = padded.narrow(0, step, steps).narrow(1, 0, batch);
    parts.push_back(part.reshape(with_head({steps * batch}, part, 2)));
    step += steps;
  }
  return PackedSequence(cat(parts), to_tensor(batch_sizes), sorted_indices);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                               std::optional<int64_t> total_length) {
  const std::vector<int64_t> batch_sizes = native::read_integers(sequence.batch_sizes());
  RUSH_CHECK_VALUE(!batch_sizes.empty(), "pad_packed_sequence: the sequence has no time steps");
  const auto longest = static_cast<int64_t>(batch_sizes.size());
  RUSH_CHECK_VALUE(total_length.value_or(longest) >= longest, "pad_packed_sequence: total_length ", *total_length,
                   " is less than the longest sequence's ", longest);
  const int64_t batch = batch_sizes[0];
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const auto& [present, steps] : run_lengths(batch_sizes)) {
    const Tensor part = sequence.data().narrow(0, start, steps * present);
    const Tensor steps_first = part.reshape(with_head({steps, present}, part, 1));
    parts.push_back(pad_along(steps_first, 1, 0, batch - present, padding_value));
    start += steps * present;
  }
  Tensor padded = pad_along(cat(parts), 0, 0, total_length.value_or(longest) - longest, padding_value);
  std::vector<int64_t> counts(static_cast<size_t>(batch), 0);
  for (const int64_t present : batch_sizes) {
    for (int64_t i = 0; i < present; ++i) ++counts[static_cast<size_t>(i)];
  }
  Tensor lengths = to_tensor(counts);
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(1, sequence.unsorted_indices());
    lengths = lengths.index_select(0, sequence.unsorted_indices().cpu());
  }
  return {batch_first ? padded.transpose(0, 1) : padded, lengths};
}

Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  RUSH_CHECK_VALUE(!sequences.empty(), "pad_sequence: there are no sequences");
  RUSH_CHECK_VALUE(padding_side == "right" || padding_side == "left",
                   "pad_sequence: padding_side has to be right or left, got ", padding_side);
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    RUSH_CHECK_VALUE(sequence.dim() >= 1 && sequence.sizes().slice(1) == sequences[0].sizes().slice(1),
                     "pad_sequence: sequences may differ in their first size only, got shapes ", sequences[0].sizes(),
                     " and ", sequence.sizes());
    longest = std::max(longest, sequence.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& sequence : sequences) {
    const int64_t missing = longest - sequence.size(0), before = padding_side == "left" ? missing : 0;
    padded.push_back(pad_along(sequence, 0, before, missing - before, padding_value));
  }
  return stack(padded, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted) {
  const Tensor padded = pad_sequence(sequences);
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return pack_padded_sequence(padded, to_tensor(lengths), /*batch_first=*/false, enforce_sorted);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths, bool batch_first) {
  const std::vector<int64_t> sizes = native::read_integers(lengths);
  const int64_t batch_dim = batch_first ? 0 : 1;
  RUSH_CHECK_VALUE(padded_sequences.dim() >= 2 && padded_sequences.size(batch_dim) == lengths.numel(),
                   "unpad_sequence: ", lengths.numel(), " lengths for sequences of shape ", padded_sequences.sizes());
  std::vector<Tensor> sequences = padded_sequences.unbind(batch_dim);
  for (size_t i = 0; i < sequences.size(); ++i) sequences[i] = sequences[i].narrow(0, 0, sizes[i]);
  return sequences;
}

}  // namespace rush::nn::utils::rnn
