// DTensors against one process: placements, operators, gradients, modules and optimisers.
#include "nn/parallel/dtensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "autograd/compile/compile.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/distributed/flight_recorder.h"
#include "core/error/error.h"
#include "core/io/safetensors.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/attention.h"
#include "core/ops/nn/dropout.h"
#include "nn/clip_grad.h"
#include "nn/functional.h"
#include "nn/parallel/distribute_module.h"
#include "tests/distributed/numbers.h"
#include "tests/distributed/small_gpt.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::nn::parallel;
using namespace rush::testing;

Tensor values(IntArrayRef sizes, uint64_t seed) { return seeded_randn(sizes, seed, kFloat64); }

// Of all processes in one dimension, and in two. They are made once, since NCCL takes a tenth of a second for each of
// their groups, and are kept until the process ends.
const std::vector<DeviceMesh>& meshes() {
  static const int size = get_world_size();
  static const auto& all =
      *new std::vector<DeviceMesh>{init_device_mesh({size}, {"tp"}), init_device_mesh({size / 2, 2}, {"dp", "tp"})};
  return all;
}

// All placements of a tensor of `dims` dimensions on a mesh of so many.
std::vector<Placements> all_placements(int64_t dims, size_t mesh_dims) {
  std::vector<Placements> all{{}};
  for (size_t m = 0; m < mesh_dims; ++m) {
    std::vector<Placements> longer;
    for (const Placements& each : all) {
      const auto add = [&](Placement next) {
        longer.push_back(each);
        longer.back().push_back(next);
      };
      add(Replicate());
      add(Partial());
      for (int64_t d = 0; d < dims; ++d) add(Shard(d));
    }
    all = longer;
  }
  return all;
}

TEST_CASE("a tensor goes from any placements to any others, of even and uneven sizes") {
  for (const DeviceMesh& mesh : meshes()) {
    for (const DimVector& sizes : {DimVector{4, 8}, DimVector{5, 3}, DimVector{1, 2}}) {
      const Tensor whole = values(sizes, 1);
      const std::vector<Placements> all = all_placements(2, mesh.dims().size());
      for (const Placements& from : all) {
        const DTensor x = distribute_tensor(whole, mesh, from);
        CHECK(x.sizes() == whole.sizes());
        CHECK(x.placements() == from);
        check_close(x.full_tensor(), whole);
        for (const Placements& to : all) {
          CAPTURE(str(from, " to ", to));
          const DTensor y = x.redistribute(to);
          CHECK(y.placements() == to);
          check_close(y.full_tensor(), whole);
          check_close(DTensor::from_local(y.to_local(), mesh, to, sizes).full_tensor(), whole);
        }
      }
    }
  }
}

// What an operator is checked with: whole inputs, and a function of them.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// The same result and gradients from DTensors in these placements as from whole tensors.
void check_against_one_process(const Function& f, const std::vector<Tensor>& inputs, const DeviceMesh& mesh,
                               const std::vector<Placements>& placements) {
  std::vector<Tensor> whole, distributed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool differentiable = inputs[i].is_floating_point();
    whole.push_back(inputs[i].clone().requires_grad_(differentiable));
    distributed.push_back(distribute_tensor(whole.back(), mesh, placements[i]));
  }
  const Tensor expected = f(whole);
  const DTensor result(f(distributed));
  check_close(result.full_tensor(), expected);
  const Tensor weight = values(expected.sizes(), 99);
  (expected * weight).sum().backward();
  (result * distribute_tensor(weight, mesh, Placements(placements[0].size()))).sum().backward();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_floating_point()) continue;
    CAPTURE(i);
    CHECK(whole[i].grad().defined() == distributed[i].grad().defined());
    if (whole[i].grad().defined()) check_close(DTensor(distributed[i].grad()).full_tensor(), whole[i].grad());
  }
}

// In all placements of the inputs in one dimension; and in two, where all inputs lie alike in the second one.
void check_operator(const char* name, const std::vector<Tensor>& inputs, const Function& f) {
  INFO(name);
  for (const DeviceMesh& mesh : meshes()) {
    std::vector<std::vector<Placements>> combinations{{}};
    for (const Tensor& input : inputs) {
      std::vector<std::vector<Placements>> longer;
      for (const auto& each : combinations) {
        for (const Placements& next : all_placements(input.dim(), 1)) {
          if (next[0].is_partial() && !input.is_floating_point()) continue;
          longer.push_back(each);
          longer.back().push_back(next);
        }
      }
      combinations = longer;
    }
    for (std::vector<Placements>& each : combinations) {
      if (mesh.dims().size() == 2) {
        for (size_t i = 0; i < each.size(); ++i)
          each[i].insert(each[i].begin(), inputs[i].dim() > 0 ? Shard(0) : Replicate());
      }
      std::string all;
      for (const Placements& placements : each) all += str(placements, " ");
      CAPTURE(all);
      check_against_one_process(f, inputs, mesh, each);
    }
  }
}

TEST_CASE("element-wise operators, with broadcast") {
  const Tensor a = values({4, 6}, 1), b = values({4, 6}, 2), row = values({6}, 3), column = values({4, 1}, 4);
  check_operator("add", {a, b}, [](const auto& x) { return x[0] + x[1]; });
  check_operator("sub of a row", {a, row}, [](const auto& x) { return x[0].sub(x[1], 2); });
  check_operator("mul by a column", {a, column}, [](const auto& x) { return x[0] * x[1]; });
  check_operator("numbers", {a}, [](const auto& x) { return (x[0] * 2 + 1) / 3 - 4; });
  check_operator("div", {a, b}, [](const auto& x) { return x[0] / (x[1].square() + 1); });
  check_operator("gelu", {values({5, 3}, 5)}, [](const auto& x) { return nn::functional::gelu(-x[0]).exp().tanh(); });
  check_operator("where", {a, b}, [](const auto& x) { return where(x[0] > x[1], x[0], x[1]); });
}

TEST_CASE("products of matrices") {
  const Tensor x = values({4, 6}, 1), w = values({8, 6}, 2), bias = values({8}, 3);
  check_operator("linear", {x, w, bias}, [](const auto& t) { return nn::functional::linear(t[0], t[1], t[2]); });
  check_operator("mm", {x, values({6, 4}, 4)}, [](const auto& t) { return t[0].mm(t[1]); });
  check_operator("addmm", {bias, x, values({6, 8}, 4)}, [](const auto& t) { return t[0].addmm(t[1], t[2]); });
  check_operator("bmm", {values({4, 3, 2}, 5), values({4, 2, 5}, 6)}, [](const auto& t) { return t[0].bmm(t[1]); });
  check_operator("matmul", {values({2, 3, 2}, 5), values({2, 4}, 6)}, [](const auto& t) { return t[0].matmul(t[1]); });
  check_operator("matmul of a vector", {x, values({6}, 6)}, [](const auto& t) { return t[0].matmul(t[1]); });
}

TEST_CASE("reductions") {
  const Tensor x = values({4, 6}, 1);
  check_operator("sum", {x}, [](const auto& t) { return t[0].sum(); });
  check_operator("sum of rows", {x}, [](const auto& t) { return t[0].sum(-1); });
  check_operator("sum of columns", {x}, [](const auto& t) { return t[0].sum(0, true); });
  check_operator("mean", {values({5, 3}, 2)}, [](const auto& t) { return t[0].mean(); });
  check_operator("mean of rows", {x}, [](const auto& t) { return t[0].mean({1}); });
  check_operator("amax", {x}, [](const auto& t) { return t[0].amax({1}); });
  check_operator("all", {x}, [](const auto& t) {
    return (t[0] > -3).all(1).logical_and((t[0] > 9).any()).to(kFloat64) * t[0].sum();
  });
  check_operator("norm", {x}, [](const auto& t) { return t[0].norm(); });
}

TEST_CASE("views") {
  const Tensor x = values({4, 8, 6}, 1);
  check_operator("heads", {x}, [](const auto& t) { return t[0].view({4, 8, 2, 3}).transpose(1, 2); });
  check_operator("merged", {x}, [](const auto& t) { return t[0].transpose(0, 1).reshape({8, -1}); });
  check_operator("flatten", {x}, [](const auto& t) { return t[0].flatten(0, 1); });
  check_operator("permute", {x}, [](const auto& t) { return t[0].permute({2, 0, 1}).unsqueeze(1); });
  check_operator("squeeze", {values({4, 1, 2}, 2)}, [](const auto& t) { return t[0].squeeze() + t[0].squeeze(1); });
  check_operator("steps", {x}, [](const auto& t) { return t[0].slice(1, 1, 8, 2).slice(2, 0, 4, 3); });
  check_operator("chunk", {x}, [](const auto& t) { return t[0].chunk(2, 2)[1] * 2; });
  check_operator("slices", {x}, [](const auto& t) { return t[0].narrow(1, 2, 4).select(0, 1); });
  check_operator("expand", {values({4, 1}, 2)}, [](const auto& t) { return t[0].expand({4, 3}) * 2; });
  check_operator("cat", {values({4, 2}, 2), values({4, 6}, 3)}, [](const auto& t) { return cat({t[0], t[1]}, 1); });
}

TEST_CASE("what a transformer needs") {
  const Tensor x = values({4, 6, 8}, 1), weight = values({8}, 2), bias = values({8}, 3);
  check_operator("layer_norm", {x, weight, bias}, [](const auto& t) {
    return nn::functional::layer_norm(t[0], nn::functional::LayerNormFuncOptions({8}).weight(t[1]).bias(t[2]));
  });
  check_operator("softmax", {x}, [](const auto& t) { return t[0].softmax(-1); });
  check_operator("log_softmax", {x}, [](const auto& t) { return t[0].log_softmax(1); });
  const Tensor q = values({2, 4, 3, 2}, 4), k = values({2, 2, 3, 2}, 5);
  check_operator("attention", {q, values({2, 4, 3, 2}, 6)}, [](const auto& t) {
    return scaled_dot_product_attention(t[0], t[1], t[0] + t[1], {}, 0.0, /*is_causal=*/true);
  });
  check_operator("attention of shared keys", {q, k}, [](const auto& t) {
    return scaled_dot_product_attention(t[0], t[1], t[1], {}, 0.0, true, std::nullopt, /*enable_gqa=*/true);
  });
  Generator generator = make_generator<CPUGeneratorImpl>(7);
  const Tensor ids = here(randint(0, 8, {4, 3}, generator, TensorOptions(kInt64).device(kCPU)));
  check_operator("embedding", {values({8, 6}, 8), ids},
                 [](const auto& t) { return nn::functional::embedding(t[1], t[0]); });
  check_operator("cross_entropy", {values({4, 8}, 9), ids.select(1, 0).contiguous()},
                 [](const auto& t) { return nn::functional::cross_entropy(t[0], t[1]); });
  check_operator("cross_entropy of one sample", {values({8}, 9), ids.select(1, 0).select(0, 0).clone()},
                 [](const auto& t) { return nn::functional::cross_entropy(t[0], t[1]); });
  check_operator("cross_entropy of rows", {values({4, 8, 3}, 9), ids},
                 [](const auto& t) { return nn::functional::cross_entropy(t[0], t[1]); });
  check_operator("mse_loss", {x, values({4, 6, 8}, 10)},
                 [](const auto& t) { return nn::functional::mse_loss(t[0], t[1]); });
}

TEST_CASE("local tensors and DTensors lead to each other's gradients") {
  const int size = get_world_size(), rank = get_rank();
  const DeviceMesh mesh = init_device_mesh({size}, {"tp"});
  const Tensor rows = values({2, 3}, 1 + static_cast<uint64_t>(rank)).requires_grad_();
  const DTensor x = DTensor::from_local(rows, mesh, {Shard(0)});
  CHECK(x.sizes() == IntArrayRef({2 * size, 3}));
  CHECK_FALSE(x.is_leaf());
  x.full_tensor().square().sum().backward();
  check_close(rows.grad(), 2 * rows.detach());

  // Each process computes with a replicated tensor on data of its own: the gradient is the sum of all.
  const DTensor weight = distribute_tensor(values({3}, 7).requires_grad_(), mesh, {Replicate()});
  (weight.to_local(Placements{Partial()}) * (rank + 1)).sum().backward();
  check_close(DTensor(weight.grad()).full_tensor(), full({3}, size * (size + 1) / 2.0, kFloat64));

  // detach() and the memory of local tensors are shared.
  const NoGradGuard no_grad;
  const DTensor alias(weight.detach());
  alias.mul_(0);
  CHECK(weight.to_local().abs().max().item<double>() == 0);
}

TEST_CASE("second derivatives") {
  for (const DeviceMesh& mesh : meshes()) {
    const Tensor whole = values({4, 6}, 1).requires_grad_(), weight = values({6, 4}, 2);
    const auto penalty = [](const Tensor& x, const Tensor& w) {
      const Tensor gradient = autograd::grad({x.mm(w).tanh().sum()}, {x}, {}, true, true)[0];
      return gradient.square().sum();
    };
    penalty(whole, weight).backward();
    Placements by_rows(mesh.dims().size(), Replicate()), by_columns = by_rows;
    by_rows[0] = Shard(0);
    by_columns.back() = Shard(1);
    const DTensor x = distribute_tensor(whole, mesh, by_rows), w = distribute_tensor(weight, mesh, by_columns);
    penalty(x, w).backward();
    check_close(DTensor(x.grad()).full_tensor(), whole.grad());
  }
}

TEST_CASE("AdamW steps on chunks of uneven sizes, and keeps its states like the parameters") {
  for (const DeviceMesh& mesh : meshes()) {
    const Tensor whole = values({5, 3}, 1).requires_grad_();
    Placements placed(mesh.dims().size(), Shard(0));
    const DTensor x = distribute_tensor(whole, mesh, placed);
    optim::AdamW alone = make_optimizer({whole}), distributed = make_optimizer({x});
    for (int step = 0; step < 3; ++step) {
      for (const Tensor& each : {whole, static_cast<const Tensor&>(x)}) {
        each.mutable_grad().reset();
        (each * each).sum().backward();
      }
      alone.step();
      distributed.step();
      check_close(x.full_tensor(), whole.detach());
    }
  }
}

int64_t all_reduces() {
  const auto records = flight_recorder().records();
  return std::count_if(records.begin(), records.end(),
                       [](const CollectiveRecord& each) { return std::string_view(each.name) == "all_reduce"; });
}

TEST_CASE("a product of shards sends nothing, and the sum of what it makes is one all_reduce") {
  const DeviceMesh mesh = init_device_mesh({get_world_size()}, {"tp"});
  const DTensor x = distribute_tensor(values({3, 8}, 1), mesh, {Replicate()});
  const DTensor up = distribute_tensor(values({16, 8}, 2), mesh, {Shard(0)});
  const DTensor down = distribute_tensor(values({8, 16}, 3), mesh, {Shard(1)});
  flight_recorder().clear();
  const DTensor hidden(nn::functional::gelu(nn::functional::linear(x, up)));
  const DTensor y(nn::functional::linear(hidden, down));
  CHECK(flight_recorder().records().empty());
  CHECK(hidden.placements() == Placements{Shard(1)});
  CHECK(y.placements() == Placements{Partial()});
  y.full_tensor();
  CHECK(flight_recorder().records().size() == 1);
  CHECK(all_reduces() == 1);
}

TEST_CASE("what cannot be is refused, by name") {
  const int size = get_world_size();
  const DeviceMesh mesh = init_device_mesh({size}, {"tp"}), other = init_device_mesh({size}, {"tp"});
  const Tensor whole = values({4, 6}, 1);
  const DTensor x = distribute_tensor(whole, mesh, {Shard(0)});
  const auto check = [](const char* text, const auto& f, auto error) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(text), decltype(error));
  };
  check(
      "got 2 placements: (Shard(0), Replicate)",
      [&] {
        distribute_tensor(whole, mesh, {Shard(0), Replicate()});
      },
      ValueError(""));
  check(
      "distribute_tensor", [&] { distribute_tensor(whole, mesh, {Shard(2)}); }, IndexError(""));
  check(
      "distributed already", [&] { distribute_tensor(x, mesh, {Shard(0)}); }, TypeError(""));
  check(
      "the tensor is not distributed", [&] { DTensor plain(whole); }, TypeError(""));
  check(
      "has sizes",
      [&] {
        DTensor::from_local(whole, mesh, {Shard(0)}, IntArrayRef({4, 6}));
      },
      ValueError(""));
  check(
      "rush::sgd_step_: there is no rule",
      [&] {
        const DTensor summands = distribute_tensor(whole.clone().requires_grad_(), mesh, {Partial()});
        summands.sum().backward();
        optim::SGD({summands}, 0.1).step();
      },
      NotImplementedError(""));
  check(
      "native_dropout: there is no rule", [&] { dropout(x, 0.5, true); }, NotImplementedError(""));
  check(
      "a plain tensor of", [&] { x + whole; }, TypeError(""));
  check(
      "on different meshes", [&] { x + distribute_tensor(whole, other, {Shard(0)}); }, ValueError(""));
  check(
      "aten::cumsum: there is no rule for DTensors placed (Shard(0))", [&] { x.cumsum(0); }, NotImplementedError(""));
  check_close(DTensor(x.redistribute({Replicate()}).cumsum(0)).full_tensor(), whole.cumsum(0));
  const DTensor leaf = distribute_tensor(whole.clone().requires_grad_(), mesh, {Shard(0)});
  check(
      "under NoGradGuard", [&] { (leaf * 2).mul_(2); }, NotImplementedError(""));
  check(
      "6 columns against 4 rows", [&] { x.mm(x); }, ValueError(""));
  check(
      "DTensor::to_local has a local tensor", [&] { all_reduce(x); }, TypeError(""));
  check(
      "has no data",
      [&] {
        io::save_safetensors("dtensor.safetensors", {{"x", x}});
      },
      ValueError(""));
  check(
      "was given the sizes (6, 4) in place", [&] { x.detach().transpose_(0, 1) + 1; }, ValueError(""));
  check(
      "whose elements cannot be copied",
      [&] {
        leaf.sum().backward();
        optim::Adafactor({leaf}).step();
      },
      NotImplementedError(""));
  nn::Sequential net(nn::Linear(2, 2), nn::LayerNorm(nn::LayerNormOptions({2})));
  check(
      "no module is named 'up'",
      [&] {
        parallelize_module(*net, mesh, {{"up", ParallelStyle::Colwise}});
      },
      ValueError(""));
  check(
      "neither a Linear",
      [&] {
        parallelize_module(*net, mesh, {{"1", ParallelStyle::Colwise}});
      },
      ValueError(""));
  check(
      "no dimension 'cp'", [&] { parallelize_module(*net, mesh, {}, "cp"); }, ValueError(""));

  std::ostringstream text;
  text << distribute_tensor(full({2 * size}, 1.5), mesh, {Shard(0)});
  CHECK(text.str() ==
        str("DTensor(local_tensor=", to_string(full({2}, 1.5)), ", device_mesh=tp ", size, ", placements=(Shard(0)))"));
  CHECK(to_string(x.detach()).rfind("tensor(...", 0) == 0);
}

TEST_CASE("gradients are clipped by the norm of the whole") {
  for (const DeviceMesh& mesh : meshes()) {
    std::vector<Tensor> plain, distributed;
    for (const Placements& placed : all_placements(2, mesh.dims().size())) {
      if (placed[0].is_partial()) continue;
      plain.push_back(values({5, 4}, 1 + plain.size()).requires_grad_());
      distributed.push_back(distribute_tensor(plain.back(), mesh, placed));
      plain.back().square().sum().backward();
      distributed.back().square().sum().backward();
    }
    const double norm = nn::utils::clip_grad_norm_(plain, 1.0);
    CHECK(std::abs(nn::utils::clip_grad_norm_(distributed, 1.0) - norm) < 1e-12);
    for (size_t i = 0; i < plain.size(); ++i)
      check_close(DTensor(distributed[i].grad()).full_tensor(), plain[i].grad());
  }
}

// Query, key and value of all heads, and the perceptron's first layer, are split by features; what follows them by its
// inputs.
void parallelize(SmallGpt& net, const DeviceMesh& mesh, std::string_view dim = "tp") {
  const auto by_out = ParallelStyle::Colwise, by_in = ParallelStyle::Rowwise;
  parallelize_module(*net, mesh,
                     {{"query", by_out},
                      {"key", by_out},
                      {"value", by_out},
                      {"project", by_in},
                      {"up", by_out},
                      {"down", by_in},
                      {"positions", by_out},
                      {"head", by_out}},
                     dim);
}

TEST_CASE("a GPT of DTensors has the losses of one process, whatever the mesh") {
  const TrainingRun alone = train_small_gpt_alone(12);
  for (const DeviceMesh& mesh : meshes()) {
    const bool has_rows = mesh.has("dp");
    SmallGpt net = make_small_gpt();
    const std::vector<Tensor> parameters = net->parameters();
    parallelize(net, mesh);
    optim::AdamW optimizer = make_optimizer(parameters);
    const Placements rows = has_rows ? Placements{Shard(0), Replicate()} : Placements{Replicate()};
    for (size_t step = 0; step < alone.losses.size(); ++step) {
      const TokenBatch batch = TokenBatch::of_step(static_cast<int64_t>(step));
      optimizer.zero_grad();
      flight_recorder().clear();
      const Tensor loss =
          token_loss(net(distribute_tensor(batch.ids, mesh, rows)), distribute_tensor(batch.targets, mesh, rows));
      if (!has_rows) CHECK(all_reduces() == 2 * kLayers);  // behind each attention and each perceptron
      loss.backward();
      optimizer.step();
      CHECK(std::abs(loss.item<double>() - alone.losses[step]) < 1e-6);
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      CHECK((DTensor(parameters[i]).full_tensor() - alone.parameters[i]).abs().max().item<double>() < 1e-6);
    }
    const DTensor query(net->named_parameters()["layers.0.query.weight"]);
    CHECK(query.to_local().sizes() == IntArrayRef({kWidth / mesh.size("tp"), kWidth}));
  }
}

}  // namespace
