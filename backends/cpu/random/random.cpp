// Random numbers on the CPU, by Note [One random stream] in core/philox.h.
#include "core/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/loops.h"
#include "backends/cpu/random/random.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"
#include "backends/cpu/scratch.h"
#include "backends/functors/random_kernels.h"
#include "core/box_muller.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/random/random_factories.h"

namespace rush::cpu {

namespace {

constexpr int64_t kBlocksAtOnce = 64;

// body(first element, count, words) over [0, n), where a block of four words makes kPerBlock elements, in parallel and
// in chunks of whole blocks, so that the result does not depend on which thread computes a chunk.
template <int kPerBlock, class Body>
void for_words(const PhiloxState& reserved, int64_t n, const Body& body) {
  const PhiloxState state = reserved.resolved();
  const int64_t blocks = (n + kPerBlock - 1) / kPerBlock;
  parallel_for(0, blocks, kGrain / 16, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[4 * kBlocksAtOnce];
    for (int64_t from = begin; from < end; from += kBlocksAtOnce) {
      const int64_t to = std::min(from + kBlocksAtOnce, end);
      for (int64_t b = from; b < to; ++b) {
        const PhiloxBlock block = philox_block(state, static_cast<uint64_t>(b));
        std::copy_n(block.word, 4, words + 4 * (b - from));
      }
      const int64_t first = from * kPerBlock;
      body(first, std::min(n, to * kPerBlock) - first, words);
    }
  });
}

// What the loops of backends/functors/random_kernels.h draw with.
struct Drawing {
  template <class T, int k, class F>
  static void words(const char* /*op*/, const Tensor& out, const PhiloxState& reserved, const F& f) {
    T* to = out.data_ptr<T>();
    for_words<4 / k>(reserved, out.numel(), [&](int64_t first, int64_t count, const uint32_t* word) {
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (k == 1) {
          to[first + i] = static_cast<T>(f(word[i]));
        } else {
          to[first + i] = static_cast<T>(f(join_words(word[2 * i], word[2 * i + 1])));
        }
      }
    });
  }

  // Normal numbers come in pairs.
  template <class T, class F>
  static void normal(const char* /*op*/, const Tensor& out, const PhiloxState& reserved, const F& f) {
    T* to = out.data_ptr<T>();
    constexpr int kWordsOfPair = functors::kWordsOfNormalPair<T>;
    for_words<8 / kWordsOfPair>(reserved, out.numel(), [&](int64_t first, int64_t count, const uint32_t* word) {
      for (int64_t i = 0; i < count; i += 2) {
        const uint32_t* w = word + kWordsOfPair * (i / 2);
        const auto pair = [&] {
          if constexpr (kWordsOfPair == 1) {
            return box_muller(w[0], functors::spread(w[0]));
          } else if constexpr (kWordsOfPair == 2) {
            return box_muller(w[0], w[1]);
          } else {
            return box_muller(PhiloxBlock{{w[0], w[1], w[2], w[3]}});
          }
        }();
        to[first + i] = static_cast<T>(f(pair.sine));
        if (i + 1 < count) to[first + i + 1] = static_cast<T>(f(pair.cosine));
      }
    });
  }
};

struct BernoulliTensorLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& p, const PhiloxState& reserved) {
    check_probabilities(p);
    if (p.scalar_type() == kFloat64) return draw<T, double>(out, p, reserved);
    draw<T, float>(out, p, reserved);
  }

 private:
  template <class T, class P>
  static void draw(const Tensor& out, const Tensor& p, const PhiloxState& reserved) {
    T* to = out.data_ptr<T>();
    const P* each = p.data_ptr<P>();
    for_words<4>(reserved, out.numel(), [&](int64_t first, int64_t count, const uint32_t* words) {
      for (int64_t i = 0; i < count; ++i) {
        const bool drawn = functors::Bernoulli(static_cast<double>(each[first + i]))(words[i]);
        to[first + i] = static_cast<T>(drawn ? 1.0f : 0.0f);
      }
    });
  }
};

// The numbers in the order of random keys of 64 bits. They are sorted by the upper halves, which few have in common.
void randperm(const Tensor& out, const PhiloxState& reserved) {
  using Keyed = Entry<uint32_t>;
  const int64_t n = out.numel();
  const Scratch<Keyed> keyed(2 * n);
  const Scratch<uint32_t> lower(n);
  for_words<2>(reserved, n, [&](int64_t first, int64_t count, const uint32_t* words) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t key = join_words(words[2 * i], words[2 * i + 1]);
      keyed[first + i] = {static_cast<uint32_t>(key >> 32), first + i};
      lower[first + i] = static_cast<uint32_t>(key);
    }
  });
  sort_entries(keyed.data(), n, keyed.data() + n);
  int64_t* to = out.data_ptr<int64_t>();
  for (int64_t i = 0; i < n; ++i) to[i] = keyed[i].index;
  for (int64_t first = 0, next = 0; first < n; first = next) {
    while (next < n && keyed[next].key == keyed[first].key) ++next;
    if (next - first == 1) continue;
    std::stable_sort(to + first, to + next, [&](int64_t a, int64_t b) { return lower[a] < lower[b]; });
  }
}

struct MultinomialLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& weights, bool replacement, const PhiloxState& reserved) {
    const int64_t rows = weights.size(0), n = weights.size(1), samples = out.size(1);
    const PhiloxState state = reserved.resolved();
    for (int64_t row = 0; row < rows; ++row) {
      const T* weight = weights.data_ptr<T>() + row * n;
      int64_t* to = out.data_ptr<int64_t>() + row * samples;
      check_weights(weight, n, replacement ? 1 : samples);
      if (replacement) {
        draw_again(weight, n, state, row * samples, samples, to);
      } else {
        draw_once(weight, n, state, row * n, samples, to);
      }
    }
  }

 private:
  // Sample j looks the j-th word up in the running sum of the weights.
  template <class T>
  static void draw_again(const T* weight, int64_t n, const PhiloxState& state, int64_t first, int64_t samples,
                         int64_t* to) {
    std::vector<double> sums(static_cast<size_t>(n));
    std::partial_sum(weight, weight + n, sums.begin(), [](double total, double w) { return total + w; });
    for (int64_t j = 0; j < samples; ++j) {
      const double u = philox_word(state, static_cast<uint64_t>(first + j)) * 0x1p-32 * sums.back();
      // The first sum above u; its weight is above zero, since the sum before it is not above u.
      to[j] = std::upper_bound(sums.begin(), sums.end(), u) - sums.begin();
    }
  }

  // The largest of weight / exponential number are a sample without replacement: the exponential race of Efraimidis
  // and Spirakis, "Weighted random sampling with a reservoir" (2006).
  template <class T>
  static void draw_once(const T* weight, int64_t n, const PhiloxState& state, int64_t first, int64_t samples,
                        int64_t* to) {
    std::vector<float> score(static_cast<size_t>(n));
    const functors::Exponential<float> exponential{1};
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t word = philox_word(state, static_cast<uint64_t>(first + i));
      score[static_cast<size_t>(i)] =
          static_cast<float>(static_cast<double>(weight[i]) / exponential(functors::positive_uniform(word)));
    }
    largest_scores(score, samples, to);
  }
};

struct DropoutLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& mask, const Tensor& input, double keep,
                  const PhiloxState& reserved) {
    using M = opmath_t<T>;
    T* to = out.data_ptr<T>();
    bool* kept = mask.data_ptr<bool>();
    const T* from = input.data_ptr<T>();
    const functors::Bernoulli draw(keep);
    const M scale = Scalar(1 / keep).to<M>();
    for_words<4>(reserved, out.numel(), [&](int64_t first, int64_t count, const uint32_t* words) {
      for (int64_t i = 0; i < count; ++i) kept[first + i] = draw(words[i]);
      for (int64_t i = first; i < first + count; ++i) {
        to[i] = kept[i] ? static_cast<T>(static_cast<M>(from[i]) * scale) : T(0);
      }
    });
  }
};

struct DropoutBackwardLoop {
  template <class T>
  static void run(TensorIterator& it, double scale) {
    using M = opmath_t<T>;
    pointwise<T, T, bool>(it, functors::DropoutBackward<M>{Scalar(scale).to<M>()});
  }
};
void dropout_backward(TensorIterator& it, double scale) {
  pick<DropoutBackwardLoop>(FloatTypes(), it.dtype(), it.op())(it, scale);
}

}  // namespace

void check_probabilities(const Tensor& p) {
  const auto check = [&](const auto* each) {
    for (int64_t i = 0; i < p.numel(); ++i) {
      RUSH_CHECK_VALUE(each[i] >= 0 && each[i] <= 1, "bernoulli_: expected probabilities in [0, 1], got ", each[i]);
    }
  };
  p.scalar_type() == kFloat64 ? check(p.data_ptr<double>()) : check(p.data_ptr<float>());
}

void register_random() {
  functors::set_random_kernels<Drawing>(kCPU);
  set_by_dtype<kernels::bernoulli_tensor, BernoulliTensorLoop, RealAndBoolTypes>(kCPU);
  kernels::randperm.set(kCPU, randperm);
  set_by_dtype<kernels::multinomial, MultinomialLoop, TypeList<float, double>, 1>(kCPU);
  set_by_dtype<kernels::dropout, DropoutLoop, FloatTypes>(kCPU);
  kernels::dropout_backward.set(kCPU, dropout_backward);
}

}  // namespace rush::cpu
