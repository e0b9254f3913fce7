// The arguments of a kernel, kept until it runs.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "core/iterator/tensor_iterator.h"
#include "tests/labs/device/work.h"

namespace rush::labs {

// Notes what the arguments of a kernel access. Bit i of `written` says that it writes the tensors of argument i.
class ArgumentAccesses {
 public:
  explicit ArgumentAccesses(unsigned written) : written_(written) {}
  void next_argument() { ++argument_; }

  // A tensor on the CPU over the memory of `t`, without a share in it. Of a number on the CPU, a copy.
  Tensor hold(const Tensor& t) { return hold(t, (written_ >> argument_ & 1) != 0); }
  Tensor hold(const Tensor& t, bool writes);
  std::vector<Access> take() { return std::move(accesses_); }

 private:
  unsigned written_;
  int argument_ = -1;
  std::vector<Access> accesses_;
};

// An argument without tensors.
template <class Arg>
class HeldArgument {
  using Value = std::remove_cvref_t<Arg>;
  static_assert(std::is_trivially_destructible_v<Value>, "what it refers to has to be kept, too");

 public:
  HeldArgument(Arg argument, ArgumentAccesses&) : value_(argument) {}
  Arg get() { return static_cast<Arg>(value_); }
  void finish() {}

 private:
  Value value_;
};

template <>
class HeldArgument<const Tensor&> {
 public:
  HeldArgument(const Tensor& argument, ArgumentAccesses& accesses) : value_(accesses.hold(argument)) {}
  const Tensor& get() { return value_; }
  void finish() {}

 private:
  Tensor value_;
};

template <>
class HeldArgument<TensorList> {
 public:
  HeldArgument(TensorList argument, ArgumentAccesses& accesses) {
    for (const Tensor& t : argument) values_.push_back(accesses.hold(t));
  }
  TensorList get() { return values_; }
  void finish() {}

 private:
  std::vector<Tensor> values_;
};

template <class T>
class HeldArgument<ArrayRef<T>> {
 public:
  HeldArgument(ArrayRef<T> argument, ArgumentAccesses&) : values_(argument.begin(), argument.end()) {}
  ArrayRef<T> get() { return values_; }
  void finish() {}

 private:
  std::vector<T> values_;
};

// An iterator goes over other tensors when the kernel runs, and is prepared for these again.
template <>
class HeldArgument<TensorIterator&> {
 public:
  HeldArgument(TensorIterator& argument, ArgumentAccesses& accesses);
  TensorIterator& get();
  void finish();

 private:
  const char* op_;
  std::vector<Tensor> operands_;
  std::unique_ptr<TensorIterator> iterator_;
};

}  // namespace rush::labs
