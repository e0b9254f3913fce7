// Functional: a function as a module, for Sequential.
#pragma once
#include <functional>

#include "nn/cloneable.h"

namespace rush::nn {

/// forward(x) is function(x), or function(x, arguments...) with the arguments that it was made with:
/// Functional(relu), Functional(leaky_relu, 0.1). A function with overloads or defaults comes in a lambda. As in
/// libtorch; Python has none.
class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;

  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class Fn, class... Args>
  requires(sizeof...(Args) > 0) explicit FunctionalImpl(Fn function, Args&&... args)
      : function_([function = std::move(function), ... args = std::decay_t<Args>(std::forward<Args>(args))](
                      const Tensor& input) { return function(input, args...); }) {}

  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) {
    const ModuleScope scope(*this);
    return function_(input);
  }
  Tensor operator()(const Tensor& input) { return forward(input); }  // forward(input)

  /// Never: a function does not know whether its owner trains.
  bool is_training() const noexcept override { return false; }

 private:
  Function function_;
};
RUSH_MODULE(Functional);

}  // namespace rush::nn
