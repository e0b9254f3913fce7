// Functional: a function as a module, for a Sequential.
#pragma once
#include <functional>

#include "nn/cloneable.h"

namespace rush::nn {

// Calls `function` on its input, followed by the other arguments that it was made with: Functional(relu),
// Functional(elu, 1, 1, 1). torch::nn::Functional.
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
  Tensor forward(const Tensor& input) { return function_(input); }
  Tensor operator()(const Tensor& input) { return forward(input); }

  // Never: a function does not know whether its owner trains.
  bool is_training() const noexcept override { return false; }

 private:
  Function function_;
};
RUSH_MODULE(Functional);

}  // namespace rush::nn
