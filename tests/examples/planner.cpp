// The cost of a step on a mesh, and which meshes are proposed.
#include "examples/plan/planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/error/error.h"
#include "examples/plan/rates.h"
#include "nn/parallel/pipeline_order.h"
#include "tests/temporary_folder.h"

namespace {

using namespace examples;
using rush::ValueError;
using namespace rush::nn::parallel;

const TransformerShape kShape{8, 16, 1024, 1024, 512, 64};

// Only products take time.
DeviceRates products_alone() {
  DeviceRates rates;
  rates.products = 1e12;
  rates.element_wise = rates.copies = HUGE_VAL;
  rates.near.bytes_per_second = rates.far.bytes_per_second = HUGE_VAL;
  return rates;
}

DeviceRates with_links() {
  DeviceRates rates = products_alone();
  rates.near = {1e-5, 1e11};
  rates.far = {1e-4, 1e10};
  return rates;
}

double time_of(const TrainingMesh& mesh, const DeviceRates& rates) { return predict_time(kShape, mesh, rates).total(); }

}  // namespace

TEST_CASE("processes share the products") {
  const double alone = time_of({}, products_alone());
  const double tokens = 64.0 * 512;  // 6 FLOP for each parameter of a product, and causal attention
  const double flops = 8 * tokens * (72.0 * 1024 * 1024 + 7.0 * 512 * 1024) + 6.0 * tokens * 1024 * 1024;
  CHECK(alone == doctest::Approx(flops / 1e12));
  for (const TrainingMesh& mesh :
       {TrainingMesh{.dp = 8}, {.fsdp = 8}, {.tp = 8}, {.cp = 8}, {.fsdp = 2, .tp = 2, .cp = 2}}) {
    CAPTURE(mesh.dp);
    CAPTURE(mesh.fsdp);
    CAPTURE(mesh.tp);
    CHECK(time_of(mesh, products_alone()) == doctest::Approx(alone / 8));
  }
}

TEST_CASE("the bubble is that of the simulated order") {
  TransformerShape shape = kShape;
  shape.vocabulary = 1;  // so that stages are alike
  shape.sequence = 2;
  shape.layers = 16;
  const auto idle = [&](int64_t own, int64_t micro_batches, bool gpipe) {
    TrainingMesh mesh{.pp = 4, .stages_per_process = own, .micro_batches = micro_batches, .gpipe = gpipe};
    const StepTime time = predict_time(shape, mesh, products_alone());
    return time.pipeline / time.total();
  };
  CHECK(idle(1, 4, false) == doctest::Approx(simulate(one_f_one_b_order(4, 4)).bubble).epsilon(0.01));
  CHECK(idle(1, 32, false) == doctest::Approx(simulate(one_f_one_b_order(4, 32)).bubble).epsilon(0.01));
  CHECK(idle(1, 8, true) == doctest::Approx(simulate(gpipe_order(4, 8)).bubble).epsilon(0.01));
  CHECK(idle(4, 8, false) == doctest::Approx(simulate(interleaved_1f1b_order(4, 4, 8)).bubble).epsilon(0.01));
}

TEST_CASE("a collective takes its latency and its bytes, on the link of its processes") {
  const double gradients = 4.0 * static_cast<double>(kShape.parameters());
  CHECK(predict_time(kShape, {.dp = 8}, with_links()).dp == doctest::Approx(3e-5 + 2 * 7.0 / 8 * gradients / 1e11));
  // Sixteen processes are on two machines.
  CHECK(predict_time(kShape, {.dp = 16}, with_links()).dp == doctest::Approx(4e-4 + 2 * 15.0 / 16 * gradients / 1e10));
  // A tensor of a block's positions and features: in the forward pass two all_reduces in each block, which wait.
  const double whole = 4.0 * 64 * 512 * 1024;
  CHECK(predict_time(kShape, {.tp = 8}, with_links()).tp > 8 * 4 * 7.0 / 8 * whole / 1e11);
  DeviceRates no_overlap = with_links();
  no_overlap.overlaps = false;
  for (const TrainingMesh& mesh : {TrainingMesh{.fsdp = 8}, {.tp = 8}, {.cp = 8}, {.pp = 8, .micro_batches = 8}}) {
    CAPTURE(mesh.dp);
    CAPTURE(mesh.fsdp);
    CAPTURE(mesh.tp);
    CHECK(time_of(mesh, no_overlap) > time_of(mesh, with_links()));
    CHECK(time_of(mesh, with_links()) > time_of(mesh, products_alone()));
  }
}

TEST_CASE("a process that waits leaves shared processors to others") {
  DeviceRates shared = products_alone();
  const TrainingMesh pipeline{.pp = 4, .micro_batches = 4};
  const double alone = time_of(pipeline, shared);
  shared.processors = 0.5;
  CHECK(time_of(pipeline, shared) < 0.8 * alone);
  // Of seven slots two have one process at work, two have two and two have three, which take 0.5, 0.5 and 0.75.
  CHECK(time_of(pipeline, shared) > 4.4 / 7 * alone);
  CHECK(time_of({.dp = 4}, shared) == time_of({.dp = 4}, products_alone()));
}

TEST_CASE("processes wait where they meet, and only there") {
  DeviceRates served_unlike = products_alone();
  served_unlike.waiting = 1e-3;
  const auto waited = [&](const TrainingMesh& mesh) {
    return time_of(mesh, served_unlike) - time_of(mesh, products_alone());
  };
  CHECK(waited({}) == 0);
  CHECK(waited({.dp = 8}) == doctest::Approx(1e-3));
  CHECK(waited({.fsdp = 8}) == doctest::Approx(3e-3));  // for the embedding, beside which nothing is computed
  CHECK(waited({.tp = 8}) == doctest::Approx((8 * 4 + 1 + 3) * 1e-3));
  CHECK(waited({.pp = 2, .micro_batches = 4}) == doctest::Approx(2e-3));
  served_unlike.overlaps = false;
  CHECK(waited({.fsdp = 8}) == doctest::Approx(3 * (8 + 2) * 1e-3));
  CHECK(waited({.cp = 8}) == doctest::Approx((8 * 2 * 7 + 1) * 1e-3));
  CHECK(waited({.pp = 2, .micro_batches = 4}) == doctest::Approx(2 * (1 + 4) * 1e-3));
}

TEST_CASE("while a stage's processes wait for each other, those of other stages have their processors") {
  DeviceRates shared = products_alone();
  shared.processors = 0.5;
  const TrainingMesh mesh{.tp = 2, .pp = 2, .micro_batches = 4};
  const double punctual = time_of(mesh, shared);
  shared.waiting = 1e-3;
  const double in_each = 4 * (8 * 4 + 1 + 3) / 2 * 1e-3;  // of two stages
  CHECK(time_of(mesh, shared) - punctual == doctest::Approx(in_each / 2));
}

TEST_CASE("the host's calls take their time beside what a device computes, and after what a CPU does") {
  DeviceRates rates = products_alone();
  const double computing = time_of({}, rates);
  rates.call = 0.5 * computing / (8 * 90 + 30 + 50);  // half as long in all
  CHECK(time_of({}, rates) < 1.05 * computing);       // an embedding has no products to hide them
  rates.overlaps = false;
  CHECK(time_of({}, rates) == doctest::Approx(1.5 * computing));
}

TEST_CASE("the fastest meshes that fit are proposed") {
  const TransformerShape shape{48, 32, 1600, 50304, 1024, 512};
  const std::vector<Plan> plans = propose(shape, 64, 80e9, with_links());
  REQUIRE(plans.size() > 10);
  for (const Plan& plan : plans) {
    CHECK(plan.mesh.processes() == 64);
    CHECK(plan.mesh.tp <= 8);
    CHECK(plan.memory.peak() <= 80e9);
  }
  CHECK(std::is_sorted(plans.begin(), plans.end(),
                       [](const Plan& a, const Plan& b) { return a.time.total() < b.time.total(); }));
  const std::vector<Plan> small = propose(shape, 64, 8e9, with_links());
  REQUIRE(!small.empty());
  CHECK(small.size() < plans.size());
  CHECK(small[0].time.total() >= plans[0].time.total());

  // Where nothing fits, what needs least.
  const std::vector<Plan> least = propose(shape, 64, 1e6, with_links());
  REQUIRE(least.size() == 1);
  CHECK(least[0].memory.peak() == std::min_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
                                    return a.memory.peak() < b.memory.peak();
                                  })->memory.peak());
  CHECK(propose({4, 4, 64, 64, 64, 1}, 4096, 80e9, with_links()).empty());
  CHECK_THROWS_AS(propose(shape, 0, 80e9, with_links()), ValueError);
}

TEST_CASE("what a mesh cannot split is named") {
  const auto reason = [](const TrainingMesh& mesh) { return obstacle(kShape, mesh); };
  CHECK(reason({}) == "");
  CHECK(reason({.tp = 32}) == "heads: 16 cannot be split into 32 processes of tp");
  CHECK(reason({.cp = 3}) == "a sequence of 512 cannot be split into 6 chunks for cp");
  CHECK(reason({.dp = 3}) == "a batch of 64 cannot be split into 3 processes of dp and fsdp");
  CHECK(reason({.dp = 8, .micro_batches = 3}) == "a replica's sequences: 8 cannot be split into 3 micro-batches");
  CHECK(reason({.pp = 16}) == "10 modules cannot be split into 16 stages");
  CHECK(reason({.pp = 4, .stages_per_process = 2}) == "1 micro-batches cannot go in equal rounds of at least 4");
  CHECK(reason({.tp = 0}) == "a size is 0, expected 1 to 1048576");
  CHECK_THROWS_WITH_AS(predict_memory(kShape, {.dp = 3}), doctest::Contains("a batch of 64 cannot"), ValueError);
}

TEST_CASE("a file of rates says again what was written, and is refused with the name of what cannot be") {
  const rush::testing::TemporaryFolder folder;
  const std::string path = folder / "rates.json";
  DeviceRates written = with_links();
  written.element_wise = written.copies = 2e12;
  written.call = 1e-6;
  written.overlaps = false;
  written.waiting = 1e-3;
  written.per_machine = 3;
  write_rates(path, written);
  const DeviceRates read = read_rates(path);
  CHECK(read.products == written.products);
  CHECK(read.far.latency == written.far.latency);
  CHECK(read.overlaps == written.overlaps);
  CHECK(read.waiting == written.waiting);
  CHECK(read.per_machine == written.per_machine);

  const std::string whole = rush::testing::file_content(path);
  const auto refuses = [&](const std::string& from, const std::string& to, const char* message) {
    const size_t at = whole.find(from);
    REQUIRE(at != std::string::npos);
    folder.write("wrong.json", std::string(whole).replace(at, from.size(), to));
    CHECK_THROWS_WITH_AS(read_rates(folder / "wrong.json"), doctest::Contains(message), ValueError);
  };
  refuses("\"call\"", "\"calls\"", "wrong.json: there is no number 'call'");
  refuses("\"per_machine\": 3", "\"per_machine\": 0", "'per_machine' is 0");
  refuses("\"per_machine\": 3", "\"per_machine\": \"3\"", "must be number, but is string");
  refuses("\"overlaps\": false", "\"overlaps\": 0", "must be boolean, but is number");
  refuses("\"waiting_seconds\": 0.001", "\"waiting_seconds\": -1", "'waiting_seconds' is -1");
  refuses("{", "", "there is no number");
}

TEST_CASE("sizes whose products would not fit are errors") {
  constexpr int64_t kHuge = INT64_MAX / 2;
  for (int64_t TransformerShape::*size : {&TransformerShape::layers, &TransformerShape::width,
                                          &TransformerShape::vocabulary, &TransformerShape::sequence}) {
    TransformerShape shape;
    shape.*size = kHuge;
    CHECK_THROWS_WITH_AS(shape.parameters(), doctest::Contains("does not fit 64 bits"), ValueError);
    CHECK_THROWS_WITH_AS(predict_memory(shape, {}), doctest::Contains("expected 1 to 1048576"), ValueError);
  }
  TrainingMesh mesh;
  for (int64_t TrainingMesh::*size : {&TrainingMesh::dp, &TrainingMesh::tp, &TrainingMesh::cp, &TrainingMesh::pp}) {
    mesh.*size = 1 << 16;
  }
  CHECK(obstacle(kShape, mesh) == "there are more than 1048576 processes");
  CHECK_THROWS_AS(propose(kShape, kHuge, 80e9, with_links()), ValueError);
}
