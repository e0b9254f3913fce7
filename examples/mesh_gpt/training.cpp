#include "examples/mesh_gpt/training.h"

#include <algorithm>

#include "core/distributed/collectives.h"
#include "core/distributed/init.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/fully_shard.h"
#include "nn/parallel/module_parts.h"
#include "rushlight.h"

namespace examples {

using rush::Tensor;
using rush::distributed::DeviceMesh;
using rush::distributed::Group;
using rush::distributed::TensorPart;
using rush::nn::parallel::PipelineSchedule;
using rush::nn::parallel::PipelineStage;

namespace {

constexpr const char *kTokens = "embedding.wte.weight", *kTokensOfHead = "head.wte.weight";

DeviceMesh make_mesh(const MeshOptions& o) {
  if (!rush::distributed::is_initialized()) rush::distributed::init_process_group("fake");  // alone
  const int64_t others = o.fsdp * o.tp * o.cp * o.pp, all = rush::distributed::get_world_size();
  RUSH_CHECK_VALUE(o.dp > 0 || all % others == 0, "--fsdp, --tp, --cp and --pp are ", others,
                   " processes, and there are ", all);
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  return rush::distributed::init_device_mesh(
      {size(o.pp), size(o.dp > 0 ? o.dp : all / others), size(o.fsdp), size(o.cp), size(o.tp)},
      {"pp", "dp", "fsdp", "cp", "tp"});
}

rush::nn::parallel::PipelineOrder make_order(const MeshOptions& o, int64_t of_step) {
  const int processes = static_cast<int>(o.pp), micro_batches = static_cast<int>(of_step);
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

GPT seeded_gpt(const MeshTrainingOptions& options) {
  rush::manual_seed(static_cast<uint64_t>(options.seed));
  return GPT(options.model);
}

}  // namespace

void MeshOptions::add_to(Options& options) {
  options.add("--dp", &dp, "processes with other rows of a batch and the whole model; 0: as many as are left", 0);
  options.add("--fsdp", &fsdp, "processes with other rows, among which parameters are sharded", 1);
  options.add("--tp", &tp, "processes among which weights are split", 1);
  options.add("--cp", &cp, "processes among which sequences are split", 1);
  options.add("--pp", &pp, "processes among which layers are shared out", 1);
  options.add("--sequence_parallel", &sequence_parallel, "norms have a part of the positions, for tp");
  options.add("--schedule", &schedule, "of the pipeline", {"gpipe", "1f1b", "interleaved"});
  options.add("--stages_per_process", &stages_per_process, "of an interleaved pipeline", 1, 1 << 10);
  options.add("--micro_batches", &micro_batches, "into which a process's rows of a batch are cut", 1, 1 << 16);
}

MeshNet::MeshNet(const GPT& whole, const MeshOptions& options, int64_t micro_batches, const Precision& precision,
                 rush::Device device)
    : options_(options),
      device_(device),
      mesh_(make_mesh(options)),
      stages_(make_stages(whole, {options.sequence_parallel, options.checkpoint_blocks, precision})),
      schedule_(stages_, make_order(options, micro_batches), make_loss()),
      evaluation_(stages_, make_order(options, options.micro_batches)) {}

std::vector<PipelineStage> MeshNet::make_stages(const GPT& whole, const MeshModelOptions& options) {
  const auto stages = rush::nn::parallel::split_sequential(make_mesh_gpt(whole, mesh_, options),
                                                           static_cast<int>(options_.pp * options_.stages_per_process),
                                                           mesh_.group("pp"));
  for (const PipelineStage& stage : stages) {
    if (options_.fsdp > 1) {
      shard(*stage.module(), mesh_.group("fsdp"), device_);
    } else {
      stage.module()->to(device_);
    }
    for (const Tensor& parameter : parameters_of_positions(*stage.module())) of_positions_.push_back(parameter);
  }
  return stages;
}

PipelineSchedule::LossFunction MeshNet::make_loss() const {
  const Group tp = mesh_.group("tp"), cp = mesh_.group("cp");
  return [tp, cp](const Tensor& scores, const Tensor& targets) {
    return rush::nn::parallel::vocab_parallel_cross_entropy(scores.to(rush::kFloat32),
                                                            rush::nn::parallel::context_part(targets, 1, cp), tp);
  };
}

std::vector<TensorPart> MeshNet::parts() const {
  std::vector<TensorPart> all;
  for (const PipelineStage& stage : stages_) {
    for (TensorPart& part : rush::nn::parallel::module_parts(*stage.module())) {
      part.name = name_in_gpt(part.name);
      all.push_back(std::move(part));
    }
  }
  return all;
}

// Such that each element of the whole model is in those of one process.
std::vector<TensorPart> MeshNet::own_parts() const {
  std::vector<TensorPart> own;
  if (mesh_.coordinate("dp") > 0 || mesh_.coordinate("cp") > 0) return own;
  for (const PipelineStage& stage : stages_) {
    const auto modules = stage.module()->named_modules();
    for (TensorPart& part : rush::nn::parallel::module_parts(*stage.module())) {
      const size_t dot = part.name.rfind('.');
      const auto* split = modules[part.name.substr(0, dot)]->as<rush::nn::parallel::SplitModule>();
      const bool is_split = split && split->split_dim(part.name.substr(dot + 1));
      if (part.name == kTokensOfHead || (!is_split && mesh_.coordinate("tp") > 0)) continue;
      part.name = name_in_gpt(part.name);
      own.push_back(std::move(part));
    }
  }
  return own;
}

Tensor MeshNet::own_rows(const Tensor& batch) const {
  const int64_t of_batch = batch.size(0), shares = replicas() * options_.micro_batches;
  RUSH_CHECK_VALUE(of_batch % shares == 0, "--batch_size ", of_batch, " cannot be split among ", replicas(),
                   " processes of dp and fsdp in ", options_.micro_batches, " micro-batches");
  const int64_t rows = of_batch / replicas();
  const int64_t place = mesh_.coordinate("dp") * mesh_.size("fsdp") + mesh_.coordinate("fsdp");
  return batch.narrow(0, place * rows, rows).to(device_);
}

Tensor MeshNet::compute_gradients(const Tensor& ids, const Tensor& targets) {
  const Tensor loss = schedule_.step(ids, targets);
  if (options_.sequence_parallel) rush::nn::parallel::sum_gradients(of_positions_, mesh_.group("tp"));
  add_gradients_of_tokens();
  average_gradients();
  return loss;
}

Tensor MeshNet::evaluate(const Tensor& ids, const Tensor& targets) {
  const Tensor scores = evaluation_.eval(ids);
  return scores.defined() ? make_loss()(scores, targets).detach() : Tensor();
}

// The table of tokens is in the first and the last stage.
void MeshNet::add_gradients_of_tokens() const {
  const Group& pp = mesh_.group("pp");
  const auto gradient_of = [](const PipelineStage& stage, const char* name) {
    return stage.module()->named_parameters()[name].grad();
  };
  if (pp->size() == 1) {
    const Tensor first = gradient_of(stages_.front(), kTokens), last = gradient_of(stages_.back(), kTokensOfHead);
    first.add_(last);
    last.copy_(first);
  } else if (stages_.front().is_first()) {
    const Tensor own = gradient_of(stages_.front(), kTokens), other = rush::empty_like(own);
    rush::distributed::send(own, pp->ranks().back(), pp);
    rush::distributed::recv(other, pp->ranks().back(), pp);
    own.add_(other);
  } else if (stages_.back().is_last()) {
    const Tensor own = gradient_of(stages_.back(), kTokensOfHead), other = rush::empty_like(own);
    rush::distributed::recv(other, pp->ranks().front(), pp);
    rush::distributed::send(own, pp->ranks().front(), pp);
    own.add_(other);
  }
}

// Over the processes that have computed with the same parameters; fully_shard has done so for those of "fsdp".
void MeshNet::average_gradients() const {
  const Group group = mesh_.flatten({"dp", "cp"});
  if (group->size() == 1) return;
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters()) grads.push_back(parameter.grad());
  rush::distributed::all_reduce_coalesced(grads, rush::distributed::ReduceOp::AVG, group);
}

// All rows have equally many positions, and those of a replica are on the processes of its last stage.
Tensor MeshNet::mean_of(const Tensor& loss) const {
  const auto options = rush::TensorOptions(rush::kFloat64).device(device_);
  const Tensor sum = loss.defined() ? loss.to(rush::kFloat64) : rush::zeros({}, options);
  rush::distributed::all_reduce(sum);
  return sum * (static_cast<double>(options_.pp) / rush::distributed::get_world_size());
}

Tensor MeshNet::gradient_norm() const {
  std::vector<Tensor> own;
  for (const TensorPart& part : own_parts()) {
    if (part.local.numel() > 0) own.push_back(part.local.grad());
  }
  const Tensor sum = own.empty() ? rush::zeros({}, rush::TensorOptions(rush::kFloat32).device(device_))
                                 : rush::nn::utils::get_total_norm(own).square();
  rush::distributed::all_reduce(sum);
  return sum.sqrt();
}

void MeshNet::gather(GPTImpl& whole) const {
  const rush::NoGradGuard no_grad;
  const std::vector<TensorPart> own = own_parts();
  const int64_t heads = whole.config().n_head;
  for (const auto& parameter : whole.named_parameters()) {
    std::vector<int64_t> sizes = parameter->sizes().vec();
    if (parameter.key() == "wte.weight") sizes[0] = padded_rows(sizes[0]);
    Tensor values = rush::zeros(sizes, rush::TensorOptions(parameter->scalar_type()).device(device_));
    for (const TensorPart& part : own) {
      if (part.name != parameter.key()) continue;
      Tensor place = values;
      for (int64_t d = 0; d < place.dim(); ++d) {
        place = place.narrow(d, part.offsets[static_cast<size_t>(d)], part.local.size(d));
      }
      place.copy_(part.local);
    }
    rush::distributed::all_reduce(values);
    if (parameter->is_meta()) continue;
    if (parameter.key().find(".c_attn.") != std::string::npos) values = rows_by_kind(values, heads);
    parameter->copy_(values.narrow(0, 0, parameter->size(0)));
  }
}

void MeshTrainingOptions::add_to(Options& options) {
  MeshOptions::add_to(options);
  options.add("--n_layer", &model.n_layer, "blocks", 1, 1 << 10);
  options.add("--n_head", &model.n_head, "attention heads of a block", 1, 1 << 10);
  options.add("--n_embd", &model.n_embd, "width", 1, 1 << 16);
  options.add("--block_size", &model.block_size, "characters that the model sees", 1, 1 << 20);
  options.add("--batch_size", &batch_size, "blocks in a batch, of all processes", 1, 1 << 20);
}

MeshTraining::MeshTraining(const MeshTrainingOptions& options)
    : MeshNet(seeded_gpt(options), options, options.micro_batches, Precision("float32", rush::Device(options.device)),
              rush::Device(options.device)),
      optimizer_(parameters(), rush::optim::AdamWOptions(options.learning_rate).weight_decay(options.weight_decay)) {}

Tensor MeshTraining::step(const Tensor& ids, const Tensor& targets) {
  optimizer_.zero_grad();
  const Tensor loss = compute_gradients(ids, targets);
  optimizer_.step();
  return loss;
}

TransformerShape MeshTrainingOptions::shape() const {
  return {model.n_layer, model.n_head, model.n_embd, model.vocab_size, model.block_size, batch_size};
}

TrainingMesh MeshOptions::mesh() const {
  TrainingMesh mesh;
  mesh.dp = std::max<int64_t>(dp, 1), mesh.fsdp = fsdp, mesh.tp = tp, mesh.cp = cp, mesh.pp = pp;
  mesh.stages_per_process = stages_per_process, mesh.micro_batches = micro_batches;
  mesh.sequence_parallel = sequence_parallel, mesh.gpipe = schedule == "gpipe";
  return mesh;
}

void MeshTrainingOptions::set_shape(const TransformerShape& shape) {
  model.vocab_size = shape.vocabulary, model.block_size = shape.sequence;
  model.n_layer = shape.layers, model.n_head = shape.heads, model.n_embd = shape.width;
  batch_size = shape.batch;
}

void MeshOptions::set_mesh(const TrainingMesh& mesh) {
  dp = mesh.dp, fsdp = mesh.fsdp, tp = mesh.tp, cp = mesh.cp, pp = mesh.pp;
  stages_per_process = mesh.stages_per_process, micro_batches = mesh.micro_batches;
  sequence_parallel = mesh.sequence_parallel;
  schedule = mesh.gpipe ? "gpipe" : mesh.stages_per_process > 1 ? "interleaved" : "1f1b";
}

std::string options_text(const TrainingMesh& mesh) {
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
    const int64_t own = options.sequence_parallel ? positions / options.tp : positions;
    const Tensor tokens = training.own_rows(rush::zeros({options.batch_size, options.model.block_size}, rush::kInt64));
    training.schedule().expect_activations(rush::kFloat32,
                                           {tokens.size(0) / options.micro_batches, own, options.model.n_embd});
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
