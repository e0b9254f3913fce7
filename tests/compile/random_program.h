// RandomProgram: a training step, or a function, of operators that a seed chooses.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight.h"
#include "tests/fuzz/random.h"

namespace rush::testing {

/// What a program draws from. All are functions of tensors that are compiled, and run as they stand.
enum class Variety {
  Plain,  // operators on float32, with gradients that the function computes itself where its inputs require them
  All,    // other dtypes, autocast, random numbers, state, parameters, an optimiser, numbers that are read
};

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, Variety variety);

  /// The same operators each time. The inputs are those of make_inputs.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  /// Three inputs for call `call`, of other numbers each time; of dynamic programs of other sizes.
  std::vector<Tensor> make_inputs(int call) const;
  /// What calls leave: parameters, their gradients and sums.
  std::vector<Tensor> state() const;
  CompileOptions options() const { return options_; }
  bool reads_numbers() const { return reads_; }  ///< so a part of it is compiled

 private:
  const Tensor& any() { return tensors_[random_.below(tensors_.size())]; }
  // Of the sizes of all tensors, and bounded, so that no program overflows.
  void keep(const Tensor& t);
  void add();
  void add_of_plain(size_t choice, const Tensor& a, const Tensor& b);
  void add_of_all(size_t choice, const Tensor& a, const Tensor& b);
  void train(const Tensor& loss);

  const uint64_t seed_;
  const Variety variety_;
  fuzz::Random random_;
  CompileOptions options_;
  bool differentiates_ = false, trains_ = false, reads_ = false, lowers_ = false;
  int64_t rows_ = 5, columns_ = 67;
  Tensor weight_, bias_, total_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<Tensor> tensors_;
};

}  // namespace rush::testing
