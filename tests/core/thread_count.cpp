// Results are the same, bit by bit, whatever the number of threads.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "examples/gpt/gpt.h"
#include "examples/mnist/net.h"
#include "rushlight.h"
#include "tests/num_threads_guard.h"

using namespace rush;
namespace F = nn::functional;

namespace {

using Results = std::vector<Tensor>;

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

// The outputs of a call and the gradients of its inputs.
Results with_gradients(const std::function<Tensor(const Results&)>& call, Results inputs) {
  for (Tensor& input : inputs) input.requires_grad_();
  const Tensor out = call(inputs);
  Results results = autograd::grad({out}, inputs, {randn_like(out)});
  results.push_back(out.detach());
  return results;
}

struct Computation {
  std::string name;
  std::function<Results(ScalarType)> run;
};

// Shapes that do not divide evenly by 2, 3 or 7, nor by vectors.
const std::vector<Computation> kComputations = {
    {"products",
     [](ScalarType t) {
       Results results;
       for (const auto& [m, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
                {257, 301, 193}, {1, 1031, 517}, {517, 1031, 1}, {33, 4099, 17}, {1025, 67, 3}, {3, 129, 1025}}) {
         results.push_back(mm(randn({m, k}, t), randn({k, n}, t)));
         results.push_back(mm(randn({k, m}, t).t(), randn({n, k}, t).t()));
       }
       results.push_back(bmm(randn({5, 129, 65}, t), randn({5, 65, 67}, t)));
       results.push_back(addmm(randn({401}, t), randn({129, 257}, t), randn({257, 401}, t)));
       results.push_back(mv(randn({1025, 1025}, t), randn({1025}, t)));
       return results;
     }},
    {"convolutions",
     [](ScalarType t) {
       Results results;
       for (const auto& [batch, in, out, size, groups, stride] :
            std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>>{
                {13, 3, 17, 29, 1, 1}, {5, 16, 24, 15, 4, 2}, {64, 1, 16, 28, 1, 2}, {3, 33, 35, 9, 1, 1}}) {
         for (Tensor& each : with_gradients(
                  [&, stride = stride, groups = groups](const Results& x) {
                    return conv2d(x[0], x[1], x[2], stride, 1, 1, groups);
                  },
                  {randn({batch, in, size, size}, t), randn({out, in / groups, 3, 3}, t), randn({out}, t)})) {
           results.push_back(std::move(each));
         }
       }
       for (Tensor& each : with_gradients([](const Results& x) { return conv_transpose2d(x[0], x[1]); },
                                          {randn({7, 9, 13, 13}, t), randn({9, 11, 3, 3}, t)})) {
         results.push_back(std::move(each));
       }
       return results;
     }},
    {"recurrent layers",
     [](ScalarType t) {
       const nn::LSTM lstm(nn::LSTMOptions(33, 129).num_layers(2).bidirectional(true));
       lstm->to(t);
       return with_gradients([&](const Results& x) { return std::get<0>(lstm->forward(x[0])); },
                             {randn({19, 17, 33}, t)});
     }},
    {"norms",
     [](ScalarType t) {
       Results results;
       for (const bool last : {false, true}) {
         const Tensor image = randn({17, 19, 23, 29}, t);
         const auto format = last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
         for (Tensor& each : with_gradients(
                  [](const Results& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, true); },
                  {image.contiguous(format), randn({19}, t), randn({19}, t)})) {
           results.push_back(std::move(each));
         }
       }
       for (Tensor& each : with_gradients([](const Results& x) { return layer_norm(x[0], {129}, x[1], x[2]); },
                                          {randn({1031, 129}, t), randn({129}, t), randn({129}, t)})) {
         results.push_back(std::move(each));
       }
       return results;
     }},
    {"element by element",
     [](ScalarType t) {
       const Tensor x = randn({1031, 515}, t), y = randn({515}, t);
       return Results{x.exp(),     x.tanh(), gelu(x),       x + y, x / (y.abs() + 1),
                      x.sigmoid(), x.sin(),  x.abs().log(), erf(x)};
     }},
    {"reductions",
     [](ScalarType t) {
       const Tensor x = randn({1031, 515}, t);
       return Results{x.sum(),      x.sum(0),     x.sum(1),    x.mean(0), x.var(IntArrayRef{0}),
                      x.norm(),     x.cumsum(0),  x.cumsum(1), x.prod(1), x.logsumexp(IntArrayRef{1}),
                      x.softmax(0), x.softmax(1), x.argmax(1), x.std(),   std::get<0>(x.sort(1)),
                      x.t().sum(0)};
     }},
    {"losses",
     [](ScalarType t) {
       const Tensor labels = randint(0, 101, {4099});
       Results results =
           with_gradients([&](const Results& x) { return F::cross_entropy(x[0], labels); }, {randn({4099, 101}, t)});
       for (Tensor& each : with_gradients([](const Results& x) { return F::mse_loss(x[0], x[1]); },
                                          {randn({1031, 515}, t), randn({1031, 515}, t)})) {
         results.push_back(std::move(each));
       }
       return results;
     }},
    {"attention",
     [](ScalarType t) {
       return with_gradients(
           [](const Results& x) {
             return scaled_dot_product_attention(x[0], x[1], x[2], {}, /*dropout_p=*/0, /*is_causal=*/true);
           },
           {randn({3, 5, 131, 33}, t), randn({3, 5, 131, 33}, t), randn({3, 5, 131, 33}, t)});
     }},
    {"rows",
     [](ScalarType t) {
       const Tensor indices = randint(0, 501, {8191});
       Results results =
           with_gradients([&](const Results& x) { return F::embedding(indices, x[0]); }, {randn({501, 67}, t)});
       results.push_back(zeros({501, 67}, t).index_add(0, indices, randn({8191, 67}, t)));
       results.push_back(randn({501, 67}, t).index_select(0, indices));
       return results;
     }},
    {"windows",
     [](ScalarType t) {
       Results results;
       for (const auto& call :
            std::vector<std::function<Tensor(const Results&)>>{[](const Results& x) { return max_pool2d(x[0], 3, 2); },
                                                               [](const Results& x) { return avg_pool2d(x[0], 3, 2); },
                                                               [](const Results& x) {
                                                                 return upsample_bilinear2d(x[0], {41, 37}, false);
                                                               }}) {
         for (Tensor& each : with_gradients(call, {randn({13, 11, 27, 31}, t)})) results.push_back(std::move(each));
       }
       return results;
     }},
    {"random numbers",
     [](ScalarType t) {
       return Results{randn({1031, 515}, t), rand({1031, 515}, t), dropout(ones({1031, 515}, t), 0.3, true)};
     }},
};

Results run_case(const Computation& each, ScalarType dtype, int threads) {
  const NumThreadsGuard guard(threads);
  manual_seed(1);
  return each.run(dtype);
}

TEST_CASE("an operator's result does not depend on the number of threads") {
  for (const Computation& each : kComputations) {
    for (const ScalarType dtype : {kFloat, kDouble, kBFloat16}) {
      const Results alone = run_case(each, dtype, 1);
      for (const int threads : {2, 3, 7}) {
        const Results shared = run_case(each, dtype, threads);
        REQUIRE(shared.size() == alone.size());
        for (size_t i = 0; i < alone.size(); ++i) {
          INFO(each.name, ", result ", i, ", ", str(dtype), ", ", threads, " threads");
          CHECK(same_bits(alone[i], shared[i]));
        }
      }
    }
  }
}

Results parameters_after_training(const std::shared_ptr<nn::Module>& net, const std::function<Tensor()>& loss) {
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss().backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
  }
  return net->parameters();
}

Results train_digits() {
  manual_seed(2);
  const examples::Net net;
  const Tensor images = randn({32, 1, 28, 28}), labels = randint(0, 10, {32});
  return parameters_after_training(net.ptr(), [&] { return F::cross_entropy(net->forward(images), labels); });
}

Results train_gpt() {
  manual_seed(3);
  examples::GPTConfig config;
  config.vocab_size = 67;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_embd = 64;
  config.block_size = 64;
  config.dropout = 0.1;
  const examples::GPT net(config);
  const Tensor tokens = randint(0, 67, {12, 65});
  return parameters_after_training(net.ptr(), [&] {
    const Tensor logits = net->forward(tokens.narrow(1, 0, 64));
    return F::cross_entropy(logits.flatten(0, 1), tokens.narrow(1, 1, 64).flatten());
  });
}

void check_same(const Results& a, const Results& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("parameter ", i);
    CHECK(same_bits(a[i], b[i]));
  }
}

TEST_CASE("trained weights do not depend on the number of threads") {
  for (const auto& train : {train_digits, train_gpt}) {
    Results alone;
    {
      const NumThreadsGuard one(1);
      alone = train();
    }
    for (const int threads : {2, 5}) {
      INFO(threads, " threads");
      const NumThreadsGuard guard(threads);
      check_same(alone, train());
    }
  }
}

TEST_CASE("two trainings at once do not disturb each other") {
  const NumThreadsGuard guard(3);
  const Generator before = default_generator();
  // Their random numbers would come from one generator, in an order of chance: nets and data are made one by one.
  const auto prepare = [](int64_t seed) {
    manual_seed(seed);
    examples::Net net;
    const Tensor images = randn({32, 1, 28, 28}), labels = randint(0, 10, {32});
    return [=]() -> Results {
      return parameters_after_training(net.ptr(), [&] { return F::cross_entropy(net->forward(images), labels); });
    };
  };
  const auto first_alone = prepare(1)(), second_alone = prepare(2)();
  const auto first = prepare(1), second = prepare(2);
  Results of_first, of_second;
  std::thread other([&] { of_first = first(); });
  of_second = second();
  other.join();
  check_same(first_alone, of_first);
  check_same(second_alone, of_second);
}

}  // namespace
