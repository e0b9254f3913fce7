// Random arguments for an operator, from its schema: mostly ones that fit together, so that calls get behind the
// checks, and now and then ones that cannot.
#pragma once

#include <string>
#include <vector>

#include "core/dispatch/op.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value.h"
#include "tests/fuzz/random.h"

namespace fuzz {

class RandomArguments {
 public:
  explicit RandomArguments(uint64_t seed);

  /// A stack for OpBase::call_boxed.
  rush::Stack make(const rush::OpBase& op);

 private:
  rush::Value value(const rush::Argument& argument);
  rush::Value odd_value();
  rush::Tensor tensor(const std::string& name);
  rush::Tensor in_layout(rush::IntArrayRef sizes, rush::ScalarType dtype);
  void fill(const rush::Tensor& tensor);
  std::vector<int64_t> sizes();
  int64_t huge_size();
  int64_t integer(const std::string& name);
  double real();
  rush::Value scalar();
  std::string text(const std::string& name);

  Random random_;
  bool meta_ = false, gradients_ = false;
  std::vector<int64_t> common_;  // the sizes that most tensors of this call have
  rush::ScalarType dtype_;       // and their dtype
};

/// "0: float32 [2, 3] strides [3, 1] ...; 1: int -1", for people.
std::string describe(const rush::Stack& arguments);

/// The text of "Tensor(a!) self" arguments: which of the operator's arguments it writes to.
std::vector<size_t> written_arguments(const rush::OpBase& op);

}  // namespace fuzz
