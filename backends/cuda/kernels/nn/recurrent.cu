// All gates of a step of an LSTM or a GRU in one pass: Note [Gates in one pass]. A thread computes a unit.
#include "core/ops/nn/recurrent.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/register.h"
#include "backends/functors/unary.h"

namespace rush::cuda {

namespace {

template <class T>
struct Gates {
  using Math = opmath_t<T>;
  T *next_h, *next_c;  // next_c: LSTM only
  const T *from_input, *from_hidden, *state;
  int64_t hidden;

  __device__ void operator()(int64_t i) const {
    if (next_c) {
      lstm(i);
    } else {
      gru(i);
    }
  }

 private:
  // Where the first of `gates` gates of unit i lies; the others follow `hidden` apart.
  __device__ int64_t first_gate(int64_t i, int gates) const { return i + i / hidden * (gates - 1) * hidden; }
  __device__ Math given(int64_t at) const {
    return static_cast<Math>(from_input[at]) + static_cast<Math>(from_hidden[at]);
  }
  __device__ void lstm(int64_t i) const {
    const functors::Sigmoid sigmoid;
    const int64_t first = first_gate(i, 4);
    const Math in = sigmoid(given(first)), forget = sigmoid(given(first + hidden));
    const Math cell = std::tanh(given(first + 2 * hidden)), out = sigmoid(given(first + 3 * hidden));
    const Math c = forget * static_cast<Math>(state[i]) + in * cell;
    next_c[i] = static_cast<T>(c);
    next_h[i] = static_cast<T>(out * std::tanh(c));
  }
  __device__ void gru(int64_t i) const {
    const functors::Sigmoid sigmoid;
    const int64_t first = first_gate(i, 3), last = first + 2 * hidden;
    const Math reset = sigmoid(given(first)), update = sigmoid(given(first + hidden));
    const Math n = std::tanh(static_cast<Math>(from_input[last]) + reset * static_cast<Math>(from_hidden[last]));
    next_h[i] = static_cast<T>(n + update * (static_cast<Math>(state[i]) - n));
  }
};

struct GatesLoop {
  template <class T>
  static void run(const Tensor& next_h, const Tensor& next_c, const Tensor& from_input, const Tensor& from_hidden,
                  const Tensor& state) {
    for_each_index(kernels::recurrent_gates.name(), next_h.numel(),
                   Gates<T>{next_h.data_ptr<T>(), next_c.defined() ? next_c.data_ptr<T>() : nullptr,
                            from_input.data_ptr<T>(), from_hidden.data_ptr<T>(), state.data_ptr<T>(), state.size(-1)});
  }
};

}  // namespace

void register_recurrent_gates() { set_by_dtype<kernels::recurrent_gates, GatesLoop, RealFloatTypes>(kCUDA); }

}  // namespace rush::cuda
