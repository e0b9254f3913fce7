// Sequences of different lengths in one tensor: padded to the longest, or packed without padding for recurrent
// networks.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/tensor.h"

namespace rush::nn::utils::rnn {

// Note [Packed sequences]
// Sequences, the longest first, laid out time step by time step: all first elements, then all second ones, and so on.
// A sequence that has ended is simply not there any more, so batch_sizes (T), how many there are at each step, never
// grows. sorted_indices says which of the caller's sequences is the i-th longest; unsorted_indices undoes that. Both
// are undefined where the caller's sequences were sorted.
class PackedSequence : public DeviceCopies<PackedSequence> {
 public:
  PackedSequence() = default;
  // Throws ValueError unless batch_sizes is one dimension of integers on the CPU.
  PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});

  const Tensor& data() const { return data_; }                          // (sum of lengths, ...)
  const Tensor& batch_sizes() const { return batch_sizes_; }            // (T), on the CPU
  const Tensor& sorted_indices() const { return sorted_indices_; }      // (N), or undefined
  const Tensor& unsorted_indices() const { return unsorted_indices_; }  // (N), or undefined

  // The same with the data (and, where the device changes, the indices) converted; the batch sizes stay on the CPU.
  PackedSequence to(const TensorOptions& options) const;
  bool is_on(DeviceType type) const { return data_.is_on(type); }  // its data
  bool is_pinned() const { return data_.is_pinned(); }             // its data
  PackedSequence pin_memory() const;                               // data and indices, not the sizes

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

// p such that permutation[p[i]] = i. Throws ValueError for a number that no permutation of that size has.
Tensor invert_permutation(const Tensor& permutation);

// Sequences (T, N, ...), or (N, T, ...) with batch_first, of the given lengths (N). Throws ValueError when a length is
// not within 1 to T, and, unless enforce_sorted is off, when a length is larger than the one before it.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                    bool enforce_sorted = true);

// The inverse: the padded sequences, and their lengths (N), in the caller's order. Throws ValueError when total_length,
// the T asked for, is less than the longest.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                               double padding_value = 0.0,
                                               std::optional<int64_t> total_length = std::nullopt);

// Sequences (L_i, ...) -> (max L, N, ...), or (N, max L, ...) with batch_first, padded on the "right" or the "left".
// Throws ValueError when there are none, or when they differ in more than their length.
Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");

// Sequences (L_i, ...), packed.
PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true);

// The sequences (L_i, ...) of a padded tensor.
std::vector<Tensor> unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths, bool batch_first = false);

}  // namespace rush::nn::utils::rnn
