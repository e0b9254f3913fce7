#include "examples/mesh_gpt/training.h"

#include <algorithm>

#include "core/distributed/collectives.h"
#include "core/distributed/init.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/fully_shard.h"
#include "rushlight.h"

namespace examples {

using rush::Tensor;
using rush::distributed::DeviceMesh;
using rush::distributed::Group;

namespace {

DeviceMesh make_mesh(const MeshTrainingOptions& o) {
  const int64_t others = o.fsdp * o.tp * o.cp * o.pp, all = rush::distributed::get_world_size();
  RUSH_CHECK_VALUE(o.dp > 0 || all % others == 0, "--fsdp, --tp, --cp and --pp are ", others,
                   " processes, and there are ", all);
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  return rush::distributed::init_device_mesh(
      {size(o.pp), size(o.dp > 0 ? o.dp : all / others), size(o.fsdp), size(o.cp), size(o.tp)},
      {"pp", "dp", "fsdp", "cp", "tp"});
}

rush::nn::parallel::PipelineOrder make_order(const MeshTrainingOptions& o) {
  const int processes = static_cast<int>(o.pp), micro_batches = static_cast<int>(o.micro_batches);
  if (o.schedule == "interleaved") {
    return rush::nn::parallel::interleaved_1f1b_order(processes, static_cast<int>(o.stages_per_process), micro_batches);
  }
  RUSH_CHECK_VALUE(o.stages_per_process == 1, "--stages_per_process is for --schedule interleaved");
  return o.schedule == "gpipe" ? rush::nn::parallel::gpipe_order(processes, micro_batches)
                               : rush::nn::parallel::one_f_one_b_order(processes, micro_batches);
}

// Module by module, so that the device never has more than one of them whole.
void shard(rush::nn::Module& stage, const Group& group, rush::Device device) {
  const auto options = rush::nn::parallel::FullyShardOptions().process_group(group);
  for (const auto& module : stage.children()) {
    module->to(device);
    rush::nn::parallel::fully_shard(*module, options);
  }
  rush::nn::parallel::fully_shard(stage, options);  // so that each module's parameters are freed behind it
}

}  // namespace

void MeshTrainingOptions::add_to(Options& options) {
  options.add("--dp", &dp, "processes with other rows of a batch and the whole model; 0: as many as are left", 0);
  options.add("--fsdp", &fsdp, "processes with other rows, among which parameters are sharded", 1);
  options.add("--tp", &tp, "processes among which weights are split", 1);
  options.add("--cp", &cp, "processes among which sequences are split", 1);
  options.add("--pp", &pp, "processes among which layers are shared out", 1);
  options.add("--sequence_parallel", &model.sequence_parallel, "norms have a part of the positions, for tp");
  options.add("--schedule", &schedule, "of the pipeline", {"gpipe", "1f1b", "interleaved"});
  options.add("--stages_per_process", &stages_per_process, "of an interleaved pipeline", 1, 1 << 10);
  options.add("--micro_batches", &micro_batches, "of a step", 1, 1 << 16);
  options.add("--n_layer", &model.n_layer, "blocks", 1, 1 << 10);
  options.add("--n_head", &model.n_head, "attention heads of a block", 1, 1 << 10);
  options.add("--n_embd", &model.n_embd, "width", 1, 1 << 16);
  options.add("--block_size", &model.block_size, "characters that the model sees", 1, 1 << 20);
  options.add("--batch_size", &batch_size, "blocks in a batch, of all processes", 1, 1 << 20);
}

MeshTraining::MeshTraining(const MeshTrainingOptions& options)
    : options_(options),
      mesh_(make_mesh(options)),
      schedule_(make_stages(), make_order(options), make_loss()),
      optimizer_(schedule_.parameters(),
                 rush::optim::AdamWOptions(options.learning_rate).weight_decay(options.weight_decay)) {
  RUSH_CHECK_VALUE(options.batch_size % replicas() == 0, "--batch_size ", options.batch_size, " cannot be split among ",
                   replicas(), " processes of dp and fsdp");
}

std::vector<rush::nn::parallel::PipelineStage> MeshTraining::make_stages() {
  rush::manual_seed(static_cast<uint64_t>(options_.seed));
  const auto stages = rush::nn::parallel::split_sequential(make_mesh_gpt(options_.model, mesh_),
                                                           static_cast<int>(options_.pp * options_.stages_per_process),
                                                           mesh_.group("pp"));
  const rush::Device device(options_.device);
  for (const auto& stage : stages) {
    if (options_.fsdp > 1) {
      shard(*stage.module(), mesh_.group("fsdp"), device);
    } else {
      stage.module()->to(device);
    }
    for (const Tensor& parameter : parameters_of_positions(*stage.module())) of_positions_.push_back(parameter);
  }
  return stages;
}

rush::nn::parallel::PipelineSchedule::LossFunction MeshTraining::make_loss() const {
  const Group tp = mesh_.group("tp"), cp = mesh_.group("cp");
  return [tp, cp](const Tensor& scores, const Tensor& targets) {
    return rush::nn::parallel::vocab_parallel_cross_entropy(scores, rush::nn::parallel::context_part(targets, 1, cp),
                                                            tp);
  };
}

Tensor MeshTraining::own_rows(const Tensor& batch) const {
  const int64_t place = mesh_.coordinate("dp") * mesh_.size("fsdp") + mesh_.coordinate("fsdp");
  return batch.narrow(0, place * rows(), rows()).to(rush::Device(options_.device));
}

Tensor MeshTraining::step(const Tensor& ids, const Tensor& targets) {
  optimizer_.zero_grad();
  const Tensor loss = schedule_.step(ids, targets);
  if (options_.model.sequence_parallel) rush::nn::parallel::sum_gradients(of_positions_, mesh_.group("tp"));
  average_gradients();
  optimizer_.step();
  return loss;
}

Tensor MeshTraining::evaluate(const Tensor& ids, const Tensor& targets) {
  const Tensor scores = schedule_.eval(ids);
  return scores.defined() ? make_loss()(scores, targets).detach() : Tensor();
}

// Over the processes that have computed with the same parameters; fully_shard has done so for those of "fsdp".
void MeshTraining::average_gradients() const {
  const Group group = mesh_.flatten({"dp", "cp"});
  if (group->size() == 1) return;
  std::vector<Tensor> grads;
  for (const Tensor& parameter : schedule_.parameters()) grads.push_back(parameter.grad());
  rush::distributed::all_reduce_coalesced(grads, rush::distributed::ReduceOp::AVG, group);
}

rush::nn::parallel::TransformerShape MeshTrainingOptions::shape() const {
  return {model.n_layer, model.n_head, model.n_embd, model.vocab_size, model.block_size, batch_size};
}

rush::nn::parallel::TrainingMesh MeshTrainingOptions::mesh() const {
  rush::nn::parallel::TrainingMesh mesh;
  mesh.dp = std::max<int64_t>(dp, 1), mesh.fsdp = fsdp, mesh.tp = tp, mesh.cp = cp, mesh.pp = pp;
  mesh.stages_per_process = stages_per_process, mesh.micro_batches = micro_batches;
  mesh.sequence_parallel = model.sequence_parallel, mesh.gpipe = schedule == "gpipe";
  return mesh;
}

void MeshTrainingOptions::set_shape(const rush::nn::parallel::TransformerShape& shape) {
  model.vocab_size = shape.vocabulary, model.block_size = shape.sequence;
  model.n_layer = shape.layers, model.n_head = shape.heads, model.n_embd = shape.width;
  batch_size = shape.batch;
}

void MeshTrainingOptions::set_mesh(const rush::nn::parallel::TrainingMesh& mesh) {
  dp = mesh.dp, fsdp = mesh.fsdp, tp = mesh.tp, cp = mesh.cp, pp = mesh.pp;
  stages_per_process = mesh.stages_per_process, micro_batches = mesh.micro_batches;
  model.sequence_parallel = mesh.sequence_parallel;
  schedule = mesh.gpipe ? "gpipe" : mesh.stages_per_process > 1 ? "interleaved" : "1f1b";
}

std::string options_text(const rush::nn::parallel::TrainingMesh& mesh) {
  std::string text;
  const auto add = [&](const char* option, int64_t n) {
    if (n > 1) text += rush::str(text.empty() ? "" : " ", option, ' ', n);
  };
  add("--pp", mesh.pp);
  if (mesh.gpipe) text += " --schedule gpipe";
  if (mesh.stages_per_process > 1) text += " --schedule interleaved";
  add("--stages_per_process", mesh.stages_per_process);
  add("--micro_batches", mesh.micro_batches);
  add("--dp", mesh.dp);
  add("--fsdp", mesh.fsdp);
  add("--cp", mesh.cp);
  add("--tp", mesh.tp);
  return text + (mesh.sequence_parallel ? " --sequence_parallel" : "");
}

namespace {

// As long as it lives, this process is one of a world in which nobody else is.
struct FakeWorld {
  FakeWorld(int rank, int processes) {
    rush::distributed::InitOptions init;
    init.rank = rank;
    init.world_size = processes;
    rush::distributed::init_process_group("fake", init);
  }
  ~FakeWorld() { rush::distributed::destroy_process_group(); }
  FakeWorld(const FakeWorld&) = delete;
};

}  // namespace

rush::MemoryEstimate estimate_mesh_training(MeshTrainingOptions options, int rank, rush::Device device) {
  const FakeWorld world(rank, static_cast<int>(options.mesh().processes()));
  options.device = "meta";
  const auto two_steps = [&] {
    MeshTraining training(options);
    const int64_t positions = options.model.block_size / options.cp;
    const int64_t own = options.model.sequence_parallel ? positions / options.tp : positions;
    training.schedule().expect_activations(rush::kFloat32,
                                           {training.rows() / options.micro_batches, own, options.model.n_embd});
    const Tensor tokens = rush::zeros({training.rows(), options.model.block_size}, rush::kInt64);
    training.step(tokens, tokens);
    rush::reset_estimated_peak();
    training.step(tokens, tokens);
  };
  return rush::estimate_memory(two_steps, device);
}

int64_t most_memory_of_mesh(const MeshTrainingOptions& options, rush::Device device) {
  const int64_t processes = options.mesh().processes(), of_stage = processes / options.pp;
  int64_t most = 0;  // the processes of a stage need about the same
  for (int64_t rank = 0; rank < processes; rank += of_stage) {
    most = std::max(most, estimate_mesh_training(options, static_cast<int>(rank), device).peak);
  }
  return most;
}

}  // namespace examples
