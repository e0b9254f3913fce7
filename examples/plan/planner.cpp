#include "examples/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error/error.h"
#include "core/size_arithmetic.h"
#include "nn/parallel/pipeline_stage.h"

namespace examples {

using rush::add_sizes;
using rush::multiply_sizes;
using rush::str;

namespace {

constexpr int64_t kMost = 1 << 20;    // of any size, and of processes
constexpr double kBytes = 4;          // of an element
constexpr double kCallsOfUnit = 60;   // of fsdp's, as many as operators take as long
constexpr double kStepBytes = 7 * 4;  // AdamW reads four numbers for a parameter and writes three

double as_double(int64_t n) { return static_cast<double>(n); }

// A module in one micro-batch on one process. Elements for parameters, bytes for what is not said.
struct Cost {
  double parameters = 0;
  double activations = 0, temporaries = 0;  // what its graph keeps, and what its passes need beside that at most
  double products = 0, attention = 0;       // FLOP of the forward pass
  double traffic = 0;                       // of element-wise operators
  double copied = 0;                        // bytes that copies for collectives read and write
  double exposed = 0, hidden = 0;           // tensor parallelism: received while nothing, or a product, is computed
  double collectives = 0;                   // of it
  double ring = 0, messages = 0;            // context parallelism's, beside attention
  double calls = 0;
};

// What a process of a pipeline has.
struct Share {
  bool has_embedding = false, has_head = false;
  std::vector<int64_t> blocks;  // of each of its stages
  double all_blocks() const { return as_double(std::accumulate(blocks.begin(), blocks.end(), int64_t{0})); }
};

// The sizes of Note [Cost of a step], and what they come to.
class Step {
 public:
  Step(const TransformerShape& shape, const TrainingMesh& mesh)
      : mesh(mesh),
        L_(shape.layers),
        C_(as_double(shape.width)),
        V_(as_double(shape.vocabulary)),
        T_(as_double(shape.sequence)),
        heads_(as_double(shape.heads)),
        tp_(as_double(mesh.tp)),
        cp_(as_double(mesh.cp)),
        b_(as_double(shape.batch / (mesh.dp * mesh.fsdp * mesh.micro_batches))),
        t_(T_ / cp_),
        s_(mesh.sequence_parallel ? t_ / tp_ : t_) {
    const std::string reason = obstacle(shape, mesh);
    RUSH_CHECK_VALUE(reason.empty(), "a transformer on a mesh: ", reason);
    cut();
  }

  const std::vector<Share>& shares() const { return shares_; }
  double parameters(const Share& share) const {
    return (share.has_embedding ? embedding().parameters : 0) + share.all_blocks() * block().parameters +
           (share.has_head ? head().parameters : 0);
  }
  double message() const { return kBytes * b_ * s_ * C_; }  // between stages

  const TrainingMesh& mesh;

  Cost embedding() const {
    Cost m;
    m.parameters = (V_ / tp_ + T_) * C_;
    m.activations = 20 * b_ * t_;  // ids, and which are this process's
    m.temporaries = 3 * whole() + kBytes * m.parameters;
    m.traffic = 14 * whole() + 3 * kBytes * m.parameters;
    m.exposed = others() * whole() * (mesh.sequence_parallel ? 3 : 2);
    m.collectives = mesh.sequence_parallel ? 2 : 1;
    m.calls = 30 + calls_of_unit();
    return m;
  }

  Cost block() const {
    const double features = t_ / tp_;
    Cost m;
    m.parameters = (12 * C_ * C_ + 7 * C_) / tp_ + 6 * C_;
    m.activations = kBytes * b_ * (C_ * (4 * s_ + 12 * features) + 4 * s_ + heads_ / tp_ * t_);
    const double gathered = mesh.sequence_parallel ? 3 * t_ : 0;
    m.temporaries = kBytes * (b_ * C_ * (2 * s_ + 4 * features + gathered) + 4 * C_ * C_ / tp_);
    m.products = 24 * b_ * t_ * C_ * C_ / tp_;
    m.attention = 2 * b_ * t_ * T_ * C_ / tp_;
    m.traffic =
        kBytes * b_ * C_ * (30 * s_ + (mesh.sequence_parallel ? 0 : 12) * t_ + (38 + 24 * (cp_ - 1)) * features);
    m.copied = mesh.sequence_parallel ? 30 * whole() : 0;
    m.exposed = others() * whole() * (mesh.sequence_parallel ? 6 : 4);
    m.hidden = others() * whole() * 4;
    m.collectives = mesh.sequence_parallel ? 10 : 4;
    m.ring = cp_ > 1 ? (6 * cp_ - 4) * whole() / tp_ : 0;
    m.messages = 2 * (cp_ - 1);
    m.calls = kCallsOfBlock + 40 * (cp_ - 1) + calls_of_unit();
    return m;
  }

  Cost head() const {
    Cost m;
    m.parameters = V_ / tp_ * C_ + 2 * C_;
    m.activations = kBytes * b_ * C_ * (s_ + t_) + scores();
    m.temporaries = std::max(2 * scores(), (mesh.fsdp > 1 ? 2 : 1) * kBytes * m.parameters);
    m.products = 2 * b_ * t_ * C_ * V_ / tp_;
    m.traffic = 16 * scores() + 12 * whole();
    m.exposed = others() * whole() * (mesh.sequence_parallel ? 1 : 0) + 6 * others() * kBytes * b_ * t_;
    m.hidden = others() * whole() * 2;
    m.collectives = mesh.sequence_parallel ? 4 : 3;
    m.calls = 50 + calls_of_unit();
    return m;
  }

 private:
  double whole() const { return kBytes * b_ * t_ * C_; }  // a tensor of all features and this process's positions
  double others() const { return (tp_ - 1) / tp_; }       // what a process of tp receives of a whole tensor
  double scores() const { return kBytes * b_ * t_ * V_ / tp_; }
  double calls_of_unit() const { return mesh.fsdp > 1 ? kCallsOfUnit : 0; }

  // Into stages, as split_sequential does.
  void cut() {
    std::vector<double> counts(static_cast<size_t>(L_) + 2, block().parameters);
    counts.front() = embedding().parameters;
    counts.back() = head().parameters;
    std::vector<size_t> begins =
        rush::nn::parallel::balanced_begins(counts, static_cast<int>(mesh.pp * mesh.stages_per_process));
    begins.push_back(counts.size());
    shares_.resize(static_cast<size_t>(mesh.pp));
    for (size_t stage = 0; stage + 1 < begins.size(); ++stage) {
      shares_[stage % shares_.size()].blocks.push_back(static_cast<int64_t>(begins[stage + 1] - begins[stage]));
    }
    --shares_.front().blocks.front();
    --shares_.back().blocks.back();
    shares_.front().has_embedding = shares_.back().has_head = true;
  }

  const int64_t L_;
  const double C_, V_, T_, heads_, tp_, cp_, b_, t_, s_;
  std::vector<Share> shares_;
};

// Forward passes of process p of a pipeline before its first backward pass, and how many of them are on each stage.
struct InFlight {
  int64_t passes = 0;
  std::vector<int64_t> on_stage;

  InFlight(const TrainingMesh& mesh, int64_t p) {
    const int64_t all = mesh.micro_batches, own = mesh.stages_per_process;
    const int64_t in_round = own == 1 ? all : all / (all / mesh.pp);
    passes = mesh.gpipe ? all : own == 1 ? mesh.pp - p : (own - 1) * in_round + 2 * (mesh.pp - 1 - p) + 1;
    passes = std::min(passes, own * all);
    const int64_t rounds = passes / (own * in_round), rest = passes % (own * in_round);
    for (int64_t stage = 0; stage < own; ++stage) {
      on_stage.push_back(rounds * in_round + std::clamp(rest - stage * in_round, int64_t{0}, in_round));
    }
  }
};

// On process p of a pipeline: the largest of the moments of Note [Cost of a step].
StepMemory memory_of(const Step& step, int64_t p) {
  const TrainingMesh& mesh = step.mesh;
  const Share& share = step.shares()[static_cast<size_t>(p)];
  const Cost block = step.block(), head = share.has_head ? step.head() : Cost();
  const Cost embedding = share.has_embedding ? step.embedding() : Cost();
  const InFlight in_flight(mesh, p);
  const double passes = as_double(in_flight.passes);
  const double own = kBytes * step.parameters(share) / as_double(mesh.fsdp);
  double held = as_double(in_flight.on_stage[0]) * embedding.activations;
  for (size_t i = 0; i < share.blocks.size(); ++i) {
    held += as_double(in_flight.on_stage[i] * share.blocks[i]) * block.activations;
  }
  const double heads = as_double(mesh.gpipe ? mesh.micro_batches : 1) * head.activations;
  // A sharded module that computes, the next one as it is gathered, and gradients as they are reduced.
  const auto units = [&](const Cost& module, double count) {
    return mesh.fsdp > 1 ? count * kBytes * module.parameters : 0;
  };
  // Outputs are kept for the backward pass, and a micro-batch is received ahead.
  const double messages = mesh.pp > 1 ? step.message() * (share.has_head ? 1 : passes + 1) : 0;

  StepMemory most;
  const auto moment = [&](double gradients, double activations, double temporaries) {
    const StepMemory now{own, 2 * own, gradients, activations, temporaries + messages};
    if (now.peak() > most.peak()) most = now;
  };
  const double of_block = block.temporaries + units(block, 3);
  const double of_embedding = embedding.temporaries + units(embedding, 2);
  const bool is_first_backward = in_flight.passes == mesh.stages_per_process * mesh.micro_batches;
  const double earlier = is_first_backward ? 0 : own;
  moment(earlier, held + heads, head.temporaries);
  moment(earlier, held + heads - head.activations, of_block);
  // Accumulators run as the backward pass of a stage ends, unless shards are reduced as they arrive.
  const double added = mesh.micro_batches > 1 && mesh.fsdp == 1 ? own / as_double(mesh.stages_per_process) : 0;
  moment(own, held * (1 - 1 / passes), added + std::max(of_block, of_embedding));
  moment(own, 0, mesh.dp * mesh.cp > 1 ? own : 0);
  return most;
}

// Whether `size` processes whose ranks are `stride` apart are on one machine.
const Link& link_of(const DeviceRates& rates, int64_t stride, int64_t size) {
  return stride * size <= rates.per_machine ? rates.near : rates.far;
}

// So many collectives or messages among so many processes, with so many bytes in all.
double collectives(const DeviceRates& rates, const Link& link, int64_t processes, double bytes, double count = 1) {
  if (processes == 1) return 0;
  return count * (link.latency * std::log2(as_double(processes)) + rates.waiting) + bytes / link.bytes_per_second;
}

// Of both passes of modules; the rest of a step comes later.
void add(StepTime& sum, const StepTime& passes, double count) {
  sum.computing += count * passes.computing;
  sum.tp += count * passes.tp;
  sum.cp += count * passes.cp;
  sum.fsdp += count * passes.fsdp;
}

// What a module takes in both passes of a micro-batch.
StepTime pass_time(const Cost& m, const TrainingMesh& mesh, const DeviceRates& rates) {
  const auto beyond = [&](double communication, double computation) {
    return rates.overlaps ? std::max(communication - computation, 0.0) : communication;
  };
  const double attention = 3.5 * m.attention / rates.products;
  const double copying = (m.copied + (mesh.fsdp > 1 ? 6 * kBytes * m.parameters : 0)) / rates.copies;
  StepTime time;
  const double work = 3 * m.products / rates.products + attention + m.traffic / rates.element_wise + copying;
  const double calls = m.calls * rates.call;
  time.computing = rates.overlaps ? std::max(work, calls) : work + calls;
  const Link& tp = link_of(rates, 1, mesh.tp);
  time.tp = collectives(rates, tp, mesh.tp, m.exposed, m.collectives) +
            beyond(collectives(rates, tp, mesh.tp, m.hidden, 0), m.products / rates.products);
  const Link& cp = link_of(rates, mesh.tp, mesh.cp);
  time.cp = beyond(collectives(rates, cp, mesh.cp, m.ring, m.messages), attention);
  const Link& fsdp = link_of(rates, mesh.tp * mesh.cp, mesh.fsdp);
  const double bytes = 3 * kBytes * m.parameters * as_double(mesh.fsdp - 1) / as_double(mesh.fsdp);
  time.fsdp = beyond(collectives(rates, fsdp, mesh.fsdp, bytes, 3), time.computing);
  return time;
}

// Of a process's share, of a pipeline's.
StepTime pass_time(const Step& step, const Share& share, const DeviceRates& rates) {
  StepTime sum;
  if (share.has_embedding) add(sum, pass_time(step.embedding(), step.mesh, rates), 1);
  add(sum, pass_time(step.block(), step.mesh, rates), share.all_blocks());
  if (share.has_head) add(sum, pass_time(step.head(), step.mesh, rates), 1);
  return sum;
}

bool divides(int64_t factor, int64_t n) { return factor >= 1 && n % factor == 0; }

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= n; ++i) {
    if (n % i == 0) found.push_back(i);
  }
  return found;
}

// Calls visit(mesh) for each mesh of so many processes that can train the model.
template <class Visit>
void for_each_mesh(const TransformerShape& shape, int64_t processes, int64_t most_tp, const Visit& visit) {
  const auto with_micro_batches = [&](TrainingMesh m) {
    if (!divides(m.dp * m.fsdp, shape.batch)) return;
    for (m.stages_per_process = 1; m.stages_per_process <= (m.pp > 1 ? 4 : 1); m.stages_per_process *= 2) {
      for (const int64_t micro_batches : divisors(shape.batch / (m.dp * m.fsdp))) {
        m.micro_batches = micro_batches;
        if (obstacle(shape, m).empty()) visit(m);
      }
    }
  };
  TrainingMesh m;
  for (const int64_t of_tp_cp : divisors(processes)) {
    for (const int64_t rest : divisors(processes / of_tp_cp)) {
      for (m.tp = 1; m.tp <= std::min(most_tp, of_tp_cp); ++m.tp) {
        if (!divides(m.tp, of_tp_cp) || !divides(m.tp, shape.heads)) continue;
        m.cp = of_tp_cp / m.tp;
        m.pp = processes / of_tp_cp / rest;
        m.sequence_parallel = m.tp > 1 && divides(m.tp, shape.sequence / m.cp);
        for (const int64_t fsdp : divisors(rest)) {
          m.fsdp = fsdp;
          m.dp = rest / fsdp;
          with_micro_batches(m);
        }
      }
    }
  }
}

}  // namespace

int64_t TransformerShape::parameters() const {
  const auto plus = [](int64_t a, int64_t b) { return add_sizes("TransformerShape", a, b); };
  const auto times = [](int64_t a, int64_t b) { return multiply_sizes("TransformerShape", a, b); };
  const int64_t of_block = times(width, plus(times(12, width), 13));
  return plus(times(layers, of_block), times(width, plus(times(2, vocabulary), plus(sequence, 2))));
}

std::string obstacle(const TransformerShape& shape, const TrainingMesh& mesh) {
  for (const int64_t n : {shape.layers, shape.heads, shape.width, shape.vocabulary, shape.sequence, shape.batch,
                          mesh.dp, mesh.fsdp, mesh.tp, mesh.cp, mesh.pp, mesh.stages_per_process, mesh.micro_batches}) {
    if (n < 1 || n > kMost) return str("a size is ", n, ", expected 1 to ", kMost);
  }
  double processes = 1;
  for (const int64_t n : {mesh.dp, mesh.fsdp, mesh.tp, mesh.cp, mesh.pp}) processes *= as_double(n);
  if (processes > kMost) return str("there are more than ", kMost, " processes");
  const int64_t replicas = mesh.dp * mesh.fsdp, stages = mesh.pp * mesh.stages_per_process, all = mesh.micro_batches;
  const int64_t parts = mesh.sequence_parallel ? mesh.cp * mesh.tp : 1;
  struct Split {
    const char* what;
    int64_t size;
    const char* parts;
    int64_t count;
  };
  for (const Split& split : {Split{"a width of", shape.width, "heads", shape.heads},
                             {"heads:", shape.heads, "processes of tp", mesh.tp},
                             {"a vocabulary of", shape.vocabulary, "processes of tp", mesh.tp},
                             {"a sequence of", shape.sequence, "chunks for cp", mesh.cp > 1 ? 2 * mesh.cp : 1},
                             {"a sequence of", shape.sequence, "parts for cp and tp", parts},
                             {"a batch of", shape.batch, "processes of dp and fsdp", replicas},
                             {"a replica's sequences:", shape.batch / replicas, "micro-batches", all}}) {
    if (divides(split.count, split.size)) continue;
    return str(split.what, ' ', split.size, " cannot be split into ", split.count, ' ', split.parts);
  }
  if (stages > shape.layers + 2) return str(shape.layers + 2, " modules cannot be split into ", stages, " stages");
  if (mesh.stages_per_process == 1) return "";
  if (mesh.gpipe) return "GPipe has one stage on each process";
  if (all >= mesh.pp && all % (all / mesh.pp) == 0) return "";
  return str(all, " micro-batches cannot go in equal rounds of at least ", mesh.pp);
}

StepMemory predict_memory(const TransformerShape& shape, const TrainingMesh& mesh) {
  const Step step(shape, mesh);
  StepMemory most;
  for (int64_t p = 0; p < mesh.pp; ++p) {
    const StepMemory memory = memory_of(step, p);
    if (memory.peak() > most.peak()) most = memory;
  }
  return most;
}

namespace {

// How many passes of one micro-batch on one process a step of a pipeline takes where processors are shared: while the
// first micro-batches come in, and while the last ones go out, fewer processes are at work, and each has more of the
// processors, up to a whole one.
double slots_of(const TrainingMesh& mesh, double processors) {
  const double processes = as_double(mesh.pp), own = as_double(mesh.stages_per_process);
  const int64_t most = std::min(mesh.micro_batches, mesh.pp);
  const auto slot = [&](int64_t at_work) { return std::max(processors, as_double(at_work) / processes); };
  double ramp = 0;
  for (int64_t at_work = 1; at_work < most; ++at_work) ramp += slot(at_work);
  const double full = as_double(mesh.micro_batches) + (processes - 1 - 2 * as_double(most - 1)) / own;
  return 2 * ramp / own + full * slot(most);
}

}  // namespace

StepTime predict_time(const TransformerShape& shape, const TrainingMesh& mesh, const DeviceRates& rates) {
  const Step step(shape, mesh);
  DeviceRates punctual = rates;
  punctual.waiting = 0;
  StepTime slowest, time;
  double sum = 0, busy = 0, most_parameters = 0;
  for (const Share& share : step.shares()) {
    const StepTime passes = pass_time(step, share, rates);
    sum += passes.total();
    // While a stage's processes wait for each other, those of the other stages have their processors.
    const double without_waiting = pass_time(step, share, punctual).total();
    busy += without_waiting + (passes.total() - without_waiting) / as_double(mesh.pp);
    if (passes.total() > slowest.total()) slowest = passes;
    most_parameters = std::max(most_parameters, step.parameters(share) / as_double(mesh.fsdp));
  }
  const double M = as_double(mesh.micro_batches), own = as_double(mesh.stages_per_process);
  add(time, slowest, M);

  // A process waits until the first micro-batch comes to it, and until the last one's gradient comes back.
  const Link& between = link_of(rates, mesh.processes() / mesh.pp, mesh.pp);
  const double message = mesh.pp > 1 ? 2 * collectives(rates, between, 2, step.message()) : 0;
  const double fill = (sum - slowest.total()) / own + as_double(mesh.pp - 1) * message;
  const double sending = rates.overlaps ? 0 : M * own * message;
  const double work = slots_of(mesh, rates.processors) * busy / as_double(mesh.pp) + sending;
  const double path = rates.processors * (M * slowest.total() + fill + sending);
  time.pipeline = std::max(rates.processors < 1 ? work : 0, path) - M * slowest.total();

  const int64_t replicas = mesh.dp * mesh.cp;
  const double gradients = kBytes * most_parameters;
  if (replicas > 1) {
    const Link& link = link_of(rates, mesh.tp * mesh.cp * mesh.fsdp, mesh.dp);
    time.dp = collectives(rates, link, replicas, 2 * as_double(replicas - 1) / as_double(replicas) * gradients) +
              4 * gradients / rates.copies;
  }
  time.optimizer = (kStepBytes + 12 * (M - 1)) * most_parameters / rates.copies;
  return time;
}

std::vector<Plan> propose(const TransformerShape& shape, int64_t processes, double bytes, const DeviceRates& rates) {
  RUSH_CHECK_VALUE(processes >= 1 && processes <= kMost && bytes >= 1, "propose: expected 1 to ", kMost,
                   " processes and at least a byte, got ", processes, " and ", bytes);
  std::vector<Plan> plans;
  Plan smallest;
  for_each_mesh(shape, processes, rates.per_machine, [&](const TrainingMesh& mesh) {
    Plan plan{mesh, predict_memory(shape, mesh), {}};
    const double peak = plan.memory.peak();
    const bool is_least = smallest.memory.peak() == 0 || peak < smallest.memory.peak();
    if (peak > bytes && !is_least) return;
    plan.time = predict_time(shape, mesh, rates);
    if (is_least) smallest = plan;
    if (peak <= bytes) plans.push_back(plan);
  });
  if (plans.empty() && smallest.memory.peak() > 0) plans.push_back(smallest);
  std::stable_sort(plans.begin(), plans.end(),
                   [](const Plan& a, const Plan& b) { return a.time.total() < b.time.total(); });
  return plans;
}

}  // namespace examples
