// What the planner says of memory, against dry runs of the net that it speaks of.
#include <doctest/doctest.h>

#include <vector>

#include "core/distributed/init.h"
#include "core/error/error.h"
#include "examples/mesh_gpt/training.h"
#include "tests/num_threads_guard.h"

namespace {

using namespace examples;

MeshTrainingOptions options_of(const TransformerShape& shape, const TrainingMesh& mesh) {
  MeshTrainingOptions options;
  options.set_shape(shape);
  options.set_mesh(mesh);
  return options;
}

std::vector<TrainingMesh> meshes() {
  std::vector<TrainingMesh> all{{},
                                {.dp = 4},
                                {.fsdp = 4},
                                {.fsdp = 16},
                                {.fsdp = 4, .micro_batches = 4},
                                {.dp = 2, .fsdp = 2},
                                {.tp = 4},
                                {.tp = 4, .sequence_parallel = true},
                                {.cp = 4},
                                {.tp = 2, .cp = 2},
                                {.pp = 4, .micro_batches = 4},
                                {.pp = 4, .micro_batches = 4, .gpipe = true},
                                {.pp = 2, .stages_per_process = 2, .micro_batches = 4},
                                {.pp = 2, .micro_batches = 8},
                                {.tp = 4, .micro_batches = 16, .sequence_parallel = true},
                                {.fsdp = 2, .tp = 2, .pp = 2, .micro_batches = 2, .sequence_parallel = true},
                                {.fsdp = 8, .tp = 2, .pp = 2, .sequence_parallel = true}};
  TrainingMesh all_ways{.dp = 2, .fsdp = 2, .tp = 2, .cp = 2, .pp = 2};
  all_ways.micro_batches = 4;
  all_ways.sequence_parallel = true;
  all.push_back(all_ways);
  return all;
}

}  // namespace

TEST_CASE("memory by formulas is that of a dry run within 10 %") {
  const NumThreadsGuard two(
      2);  // the formulas leave out what kernels need for themselves, which grows with the threads
  const TransformerShape shapes[] = {{4, 4, 256, 64, 256, 16},
                                     {12, 12, 768, 50304, 1024, 16},
                                     {24, 16, 1024, 50304, 1024, 64},
                                     {8, 32, 4096, 50304, 2048, 16},
                                     {8, 32, 4096, 512, 128, 16}};  // whose gradients are more than its activations
  for (const TransformerShape& shape : shapes) {
    CAPTURE(shape.width);
    for (const TrainingMesh& mesh : meshes()) {
      CAPTURE(examples::options_text(mesh));
      const auto dry_run = static_cast<double>(examples::most_memory_of_mesh(options_of(shape, mesh), rush::kCPU));
      CHECK(predict_memory(shape, mesh).peak() == doctest::Approx(dry_run).epsilon(0.1));
    }
  }
}

TEST_CASE("a dry run takes place on any process of a world that is not there") {
  const TransformerShape gpt3{96, 96, 12288, 50304, 2048, 1024};
  TrainingMesh mesh{.fsdp = 64, .tp = 8, .pp = 8, .micro_batches = 16, .sequence_parallel = true};
  const MeshTrainingOptions options = options_of(gpt3, mesh);
  REQUIRE(mesh.processes() == 4096);
  const rush::MemoryEstimate first = examples::estimate_mesh_training(options, 0, rush::kCUDA);
  const rush::MemoryEstimate last = examples::estimate_mesh_training(options, 4095, rush::kCUDA);
  // The parameters of a process's stage, of which one block is whole.
  const double own = 4.0 * static_cast<double>(gpt3.parameters()) / 4096;
  CHECK(static_cast<double>(first.at_peak[rush::MemoryUse::OptimizerState]) == doctest::Approx(2 * own).epsilon(0.05));
  CHECK(first.at_peak[rush::MemoryUse::Activation] > 6 * last.at_peak[rush::MemoryUse::Activation]);  // 1F1B
  CHECK_FALSE(rush::distributed::is_initialized());
  CHECK_THROWS_WITH_AS(examples::most_memory_of_mesh(options_of(gpt3, {.dp = 3}), rush::kCPU),
                       doctest::Contains("--batch_size 1024 cannot be split among 3 processes"), rush::ValueError);
  CHECK_FALSE(rush::distributed::is_initialized());
}

TEST_CASE("a mesh is written as the options of mesh_gpt") {
  TrainingMesh mesh{
      .fsdp = 2, .tp = 4, .pp = 8, .stages_per_process = 2, .micro_batches = 16, .sequence_parallel = true};
  CHECK(examples::options_text(mesh) ==
        "--pp 8 --schedule interleaved --stages_per_process 2 --micro_batches 16 --fsdp 2 --tp 4 --sequence_parallel");
  CHECK(examples::options_text({}).empty());
}
