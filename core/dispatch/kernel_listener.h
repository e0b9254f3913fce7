// What is told of the kernels that calls on the meta device would have run: so the compiler takes operators apart.
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/array_ref.h"
#include "core/device/device.h"
#include "core/scalar.h"

namespace rush {

class Tensor;
class TensorIterator;
template <class Signature>
class Kernel;

// A call of an element-wise kernel, to be repeated on the operands of another iterator.
class IteratorCall {
 public:
  virtual ~IteratorCall() = default;
  /// Runs the device's kernel on the operands of `iterator`, with the numbers of the call.
  virtual void run(DeviceType device, TensorIterator& iterator) const = 0;
  virtual const char* kernel() const = 0;                          // its name
  virtual const void* kernel_address() const = 0;                  // the Kernel object, by which tables find it
  virtual std::vector<std::optional<Scalar>> numbers() const = 0;  // what it is given after the iterator
};

/// Told of kernels, while it is this thread's kernel_listener.
class KernelListener {
 public:
  virtual ~KernelListener() = default;
  // Of an element-wise kernel, with the iterator that it would have walked.
  virtual void element_wise(const TensorIterator& iterator, std::unique_ptr<IteratorCall> call) = 0;
  // Of a kernel that reduces `dims`, or has such arguments.
  using Reduction = Kernel<void(const Tensor& output, const Tensor& input, IntArrayRef dims)>;
  virtual void reduction(const Reduction& kernel, const Tensor& output, const Tensor& input, IntArrayRef dims) = 0;
  virtual void other(const char* kernel) = 0;
};
inline thread_local constinit KernelListener* kernel_listener = nullptr;

namespace detail {

template <class T>
inline constexpr bool is_number =
    std::is_arithmetic_v<T> || std::same_as<T, Scalar> || std::same_as<T, std::optional<Scalar>>;

template <class KernelT, class... Numbers>
class RepeatedCall final : public IteratorCall {
 public:
  explicit RepeatedCall(const KernelT& kernel, const Numbers&... numbers) : kernel_(kernel), numbers_(numbers...) {}
  void run(DeviceType device, TensorIterator& iterator) const override {
    std::apply([&](const Numbers&... each) { kernel_(device, iterator, each...); }, numbers_);
  }
  const char* kernel() const override { return kernel_.name(); }
  const void* kernel_address() const override { return &kernel_; }
  std::vector<std::optional<Scalar>> numbers() const override {
    return std::apply(
        [](const Numbers&... each) { return std::vector<std::optional<Scalar>>{std::optional<Scalar>(each)...}; },
        numbers_);
  }

 private:
  const KernelT& kernel_;
  const std::tuple<Numbers...> numbers_;
};

template <class KernelT>
void tell_listener(const KernelT& kernel, const auto&...) {
  kernel_listener->other(kernel.name());
}
template <class KernelT, class... Numbers>
requires(is_number<Numbers>&&...) void tell_listener(const KernelT& kernel, TensorIterator& iterator,
                                                     const Numbers&... numbers) {
  kernel_listener->element_wise(iterator, std::make_unique<RepeatedCall<KernelT, Numbers...>>(kernel, numbers...));
}

inline void tell_listener(const KernelListener::Reduction& kernel, const Tensor& output, const Tensor& input,
                          IntArrayRef dims) {
  kernel_listener->reduction(kernel, output, input, dims);
}

}  // namespace detail

}  // namespace rush
