#include "nn/parallel/pipeline.h"

#include <algorithm>
#include <utility>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/error/error_context.h"
#include "core/ops/basic.h"

namespace rush::nn::parallel {

using distributed::Arriving;
using Kind = PipelineAction::Kind;

namespace {

constexpr int64_t kHeader = 32;            // dtype, requires_grad, number of dimensions, sizes
constexpr size_t kMostDims = kHeader - 3;  // of what stages exchange
constexpr int kTags = 32767;               // that every MPI has, and all_to_all leaves

std::string describe_action(const void* subject) {
  const auto& action = *static_cast<const PipelineAction*>(subject);
  return str("in stage ", action.stage, " of a pipeline, micro-batch ", action.micro_batch);
}

const distributed::Group& group_of(const std::vector<PipelineStage>& stages) {
  RUSH_CHECK_VALUE(!stages.empty(), "PipelineSchedule: expected a stage, got none");
  return stages[0].group();
}

std::vector<Tensor> micro_batches_of(const char* what, const Tensor& batch, int64_t count) {
  RUSH_CHECK_VALUE(batch.defined() && batch.dim() > 0, "PipelineSchedule: this process needs the ", what,
                   ", a tensor of rows for the micro-batches");
  RUSH_CHECK_VALUE(batch.size(0) > 0 && batch.size(0) % count == 0, "PipelineSchedule: the ", batch.size(0),
                   " rows of the ", what, " cannot be ", count, " micro-batches of equally many");
  return batch.chunk(count);
}

}  // namespace

// One step or evaluation.
class PipelineSchedule::Run {
 public:
  Run(PipelineSchedule& schedule, Program& program, const Tensor& input, const Tensor& target)
      : schedule_(schedule),
        order_(schedule.order_),
        program_(program),
        trains_(&program == &schedule.training_),
        micro_batches_(schedule.stages_.size() * static_cast<size_t>(order_.micro_batches)) {
    if (schedule.stages_.front().is_first()) inputs_ = micro_batches_of("input", input, order_.micro_batches);
    if (!schedule.stages_.back().is_last()) return;
    results_.resize(static_cast<size_t>(order_.micro_batches));
    if (!trains_) return;
    targets_ = micro_batches_of("target", target, order_.micro_batches);
    RUSH_CHECK_VALUE(schedule.loss_, "PipelineSchedule: the process of the last stage has no loss function");
  }

  // What the last stage made of each micro-batch: losses or outputs; nothing on other processes.
  std::vector<Tensor> execute() {
    for (const PipelineAction& action : program_.actions) {
      const ErrorContext context(&describe_action, &action);
      perform(action);
    }
    for (const distributed::WorkPtr& send : sends_) send->wait();
    return std::move(results_);
  }

 private:
  // On one stage of this process.
  struct MicroBatch {
    Arriving activation, gradient;  // from its neighbours
    Tensor input, root;             // from the forward to the backward pass, which begins at the output or the loss
  };

  void perform(const PipelineAction& action) {
    switch (action.kind) {
      case Kind::FORWARD: return forward(action);
      case Kind::BACKWARD: return backward(action);
      case Kind::SEND_FORWARD:
      case Kind::SEND_BACKWARD: return send_made(action);
      case Kind::RECV_FORWARD: at(action).activation = receive(received_input(action), action); return;
      case Kind::RECV_BACKWARD:
        if (output_of(action).requires_grad) at(action).gradient = receive(output_of(action), action);
        return;
    }
  }

  void forward(const PipelineAction& action) {
    const PipelineStage& stage = stage_of(action.stage);
    MicroBatch& own = at(action);
    Tensor input;
    if (stage.is_first()) {
      input = inputs_[static_cast<size_t>(action.micro_batch)];
    } else {
      input = own.activation.take();
      if (input_of(action).requires_grad) input.requires_grad_();
    }
    Tensor output = stage(input);
    RUSH_CHECK_TYPE(output.defined(), "PipelineStage: stage ", action.stage, " returned an undefined tensor");
    if (stage.is_last()) {
      if (trains_) output = loss_of(output, action);
      results_[static_cast<size_t>(action.micro_batch)] = output.detach();
    } else {
      note_output(action, output);
      leave(output.detach(), {action.kind, action.stage + 1, action.micro_batch});
    }
    if (!trains_) return;
    own.input = std::move(input);
    own.root = std::move(output);
  }

  Tensor loss_of(const Tensor& output, const PipelineAction& action) const {
    Tensor loss = schedule_.loss_(output, targets_[static_cast<size_t>(action.micro_batch)]);
    RUSH_CHECK_VALUE(loss.defined() && loss.numel() == 1, "PipelineSchedule: the loss of a micro-batch is ",
                     loss.defined() ? str("of shape ", loss.sizes()) : "undefined", ", expected one number");
    return loss.reshape({});
  }

  // All activations of a stage are alike.
  void note_output(const PipelineAction& action, const Tensor& output) {
    const Boundary now{output.scalar_type(), output.sizes().vec(), output.requires_grad()};
    std::optional<Boundary>& known = program_.outputs[static_cast<size_t>(action.stage)];
    is_announced_ = known.has_value();
    if (!known) known = now;
    RUSH_CHECK_VALUE(*known == now, "PipelineStage: stage ", action.stage, " made a tensor of ", now.dtype,
                     " and shape ", now.sizes, now.requires_grad ? ", with" : ", without", " gradient; stage ",
                     action.stage + 1, " expects ", known->dtype, " and shape ", known->sizes,
                     known->requires_grad ? ", with" : ", without", " gradient, as in the first step");
  }

  void backward(const PipelineAction& action) {
    Tensor gradient;
    if (stage_of(action.stage).is_last()) {
      gradient = full_like(at(action).root, 1.0 / order_.micro_batches);
    } else if (output_of(action).requires_grad) {
      gradient = at(action).gradient.take().to(at(action).root.device());
    }
    const MicroBatch own = std::exchange(at(action), {});
    if (gradient.defined()) autograd::backward({own.root}, {gradient});
    if (stage_of(action.stage).is_first() || !own.input.requires_grad()) return;
    const Tensor& back = own.input.grad();  // undefined where the stage does not use its input
    leave(back.defined() ? back : zeros_like(own.input), {action.kind, action.stage - 1, action.micro_batch});
  }

  // What a pass made is for that action: of this process, or one that the next action sends it to.
  void leave(Tensor made, const PipelineAction& user) {
    if (order_.process_of(user.stage) != rank()) {
      leaving_ = std::move(made);
    } else if (user.kind == Kind::BACKWARD) {
      at(user).gradient = {std::move(made), nullptr};
    } else {
      at(user).activation = {std::move(made), nullptr};
    }
  }

  // What comes into a stage, which the first message says.
  const Boundary& received_input(const PipelineAction& action) {
    std::optional<Boundary>& known = program_.outputs[static_cast<size_t>(action.stage - 1)];
    if (!known) {
      const Tensor header = empty({kHeader}, TensorOptions(kInt64).device(kCPU));
      distributed::recv(header, peer(action), messages(), tag(action));
      const int64_t* numbers = header.data_ptr<int64_t>();
      known = Boundary{static_cast<ScalarType>(numbers[0]), {numbers + 3, numbers + 3 + numbers[2]}, numbers[1] != 0};
    }
    return *known;
  }

  void send_made(const PipelineAction& action) {
    if (action.kind == Kind::SEND_FORWARD && !is_announced_) send(header_of(action), action);
    if (action.kind == Kind::SEND_FORWARD || input_of(action).requires_grad) {
      send(std::exchange(leaving_, {}), action);
    }
  }

  Tensor header_of(const PipelineAction& action) const {
    const auto& [dtype, sizes, requires_grad] = output_of(action);
    RUSH_CHECK_NOT_IMPLEMENTED(sizes.size() <= kMostDims, "PipelineStage: stage ", action.stage, " made a tensor of ",
                               sizes.size(), " dimensions, more than ", kMostDims);
    std::vector<int64_t> header{static_cast<int64_t>(dtype), requires_grad, static_cast<int64_t>(sizes.size())};
    header.insert(header.end(), sizes.begin(), sizes.end());
    header.resize(kHeader);
    return tensor(header, TensorOptions(kInt64).device(kCPU));
  }

  void send(const Tensor& sent, const PipelineAction& action) {
    std::erase_if(sends_, [](const distributed::WorkPtr& earlier) {
      const bool is_done = earlier->is_completed();
      if (is_done) earlier->wait();  // throws what went wrong
      return is_done;
    });
    sends_.push_back(distributed::isend(sent, peer(action), messages(), tag(action)));
  }
  Arriving receive(const Boundary& boundary, const PipelineAction& action) {
    const Tensor memory = empty(boundary.sizes, TensorOptions(boundary.dtype).device(stage_of(action.stage).device()));
    return {memory, distributed::irecv(memory, peer(action), messages(), tag(action))};
  }

  // The stage at the other end of a message, and its process among all.
  static int peer_stage(const PipelineAction& action) {
    return action.stage + (action.kind == Kind::SEND_FORWARD || action.kind == Kind::RECV_BACKWARD ? 1 : -1);
  }
  int peer(const PipelineAction& action) const {
    return messages()->ranks()[static_cast<size_t>(order_.process_of(peer_stage(action)))];
  }
  // Names both stages, the direction and the micro-batch; where there are not so many tags, messages of the same tag
  // are received in the order in which they are sent.
  int tag(const PipelineAction& action) const {
    const bool is_forward = action.kind == Kind::SEND_FORWARD || action.kind == Kind::RECV_FORWARD;
    const int64_t below = std::min(action.stage, peer_stage(action));
    return static_cast<int>(((below * order_.micro_batches + action.micro_batch) * 2 + is_forward) % kTags);
  }

  const distributed::Group& messages() const { return schedule_.messages_; }
  int rank() const { return messages()->rank(); }
  const PipelineStage& stage_of(int stage) const { return schedule_.stages_[local(stage)]; }
  size_t local(int stage) const { return static_cast<size_t>(stage / order_.processes()); }
  MicroBatch& at(const PipelineAction& action) {
    return micro_batches_[local(action.stage) * static_cast<size_t>(order_.micro_batches) +
                          static_cast<size_t>(action.micro_batch)];
  }
  const Boundary& input_of(const PipelineAction& action) const {
    return *program_.outputs[static_cast<size_t>(action.stage - 1)];
  }
  const Boundary& output_of(const PipelineAction& action) const {
    return *program_.outputs[static_cast<size_t>(action.stage)];
  }

  PipelineSchedule& schedule_;
  const PipelineOrder& order_;
  Program& program_;
  const bool trains_;
  std::vector<Tensor> inputs_, targets_, results_;  // of each micro-batch; empty where they are not this process's
  std::vector<MicroBatch> micro_batches_;           // stage by stage
  Tensor leaving_;                                  // what the next action sends,
  bool is_announced_ = false;                       // and whether its receiver knows the shape
  std::vector<distributed::WorkPtr> sends_;
};

// The order, for which the stages are right.
static const PipelineOrder& checked(const PipelineOrder& order, const std::vector<PipelineStage>& stages) {
  const distributed::Group& group = group_of(stages);
  const int processes = group->size(), count = static_cast<int>(stages.size());
  RUSH_CHECK_VALUE(order.processes() == processes, "PipelineSchedule: the order is for ", order.processes(),
                   " processes, the group '", group->name(), "' has ", processes);
  RUSH_CHECK_VALUE(order.stages == count * processes, "PipelineSchedule: the order has ", order.stages,
                   " stages; this process has ", count, ", so ", processes, " processes have ", count * processes);
  for (int i = 0; i < count; ++i) {
    const PipelineStage& stage = stages[static_cast<size_t>(i)];
    const int index = group->rank() + i * processes;
    RUSH_CHECK_VALUE(stage.group() == group && stage.index() == index && stage.count() == order.stages,
                     "PipelineSchedule: expected stage ", index, " of ", order.stages, " in the group '", group->name(),
                     "' as number ", i, " of process ", group->rank(), ", got stage ", stage.index(), " of ",
                     stage.count(), " in '", stage.group()->name(), "'");
  }
  return order;
}

PipelineSchedule::PipelineSchedule(std::vector<PipelineStage> stages, const PipelineOrder& order, LossFunction loss)
    : stages_(std::move(stages)),
      messages_(group_of(stages_)->for_messages()),
      order_(checked(order, stages_)),
      loss_(std::move(loss)),
      training_(program_of(order_)),
      evaluation_(program_of(forward_only(order_))) {
  if (!messages_) messages_ = group_of(stages_);
}

PipelineSchedule::Program PipelineSchedule::program_of(const PipelineOrder& order) const {
  Program program;
  program.actions = with_messages(order).actions[static_cast<size_t>(group_of(stages_)->rank())];
  program.outputs.resize(static_cast<size_t>(order.stages));
  return program;
}

Tensor PipelineSchedule::step(const Tensor& input, const Tensor& target) {
  const std::vector<Tensor> losses = Run(*this, training_, input, target).execute();
  return losses.empty() ? Tensor() : stack(losses).mean();
}

Tensor PipelineSchedule::eval(const Tensor& input) {
  const NoGradGuard no_grad;
  const std::vector<Tensor> outputs = Run(*this, evaluation_, input, {}).execute();
  return outputs.empty() ? Tensor() : cat(outputs, 0);
}

void PipelineSchedule::expect_activations(ScalarType dtype, IntArrayRef sizes) {
  std::fill(training_.outputs.begin(), training_.outputs.end() - 1, Boundary{dtype, sizes.vec(), true});
}

std::vector<Tensor> PipelineSchedule::parameters() const {
  std::vector<Tensor> all;
  for (const PipelineStage& stage : stages_) {
    if (!stage.module()) continue;
    for (const Tensor& parameter : stage.module()->parameters()) all.push_back(parameter);
  }
  return all;
}

ScheduleGPipe::ScheduleGPipe(PipelineStage stage, int micro_batches, LossFunction loss)
    : PipelineSchedule({stage}, gpipe_order(stage.group()->size(), micro_batches), std::move(loss)) {}

Schedule1F1B::Schedule1F1B(PipelineStage stage, int micro_batches, LossFunction loss)
    : PipelineSchedule({stage}, one_f_one_b_order(stage.group()->size(), micro_batches), std::move(loss)) {}

ScheduleInterleaved1F1B::ScheduleInterleaved1F1B(std::vector<PipelineStage> stages, int micro_batches,
                                                 LossFunction loss)
    : PipelineSchedule(stages,
                       interleaved_1f1b_order(group_of(stages)->size(), static_cast<int>(stages.size()), micro_batches),
                       std::move(loss)) {}

}  // namespace rush::nn::parallel
