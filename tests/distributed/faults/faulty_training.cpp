// A training on several processes, one of which has a fault: faulty_training FOLDER, where RUSH_FAULT may be
// "KIND RANK STEP". The first attempt alone has it; the next, which RUSH_RESTART marks, goes on from the last
// checkpoint.
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/distributed/collectives.h"
#include "core/ops/nn/loss.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "nn/parallel/distributed_data_parallel.h"
#include "nn/state/archive.h"
#include "optim/optim.h"

namespace {

using namespace rush;
using namespace rush::distributed;

constexpr int64_t kSteps = 40, kRows = 8;

struct Fault {
  std::string kind;
  int64_t rank = -1, step = -1;
};

Fault planned_fault() {
  Fault fault;
  const char *text = std::getenv("RUSH_FAULT"), *restart = std::getenv("RUSH_RESTART");
  if (text && (!restart || std::string(restart) == "0")) {
    std::istringstream(text) >> fault.kind >> fault.rank >> fault.step;
  }
  return fault;
}

void have(const Fault& fault) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::fprintf(stderr, "fault at %lld ms\n",
               static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  if (fault.kind == "kill") std::raise(SIGKILL);
  if (fault.kind == "stop") std::raise(SIGSTOP);
  if (fault.kind == "exception") RUSH_THROW(Error, "no data for step ", fault.step);
  if (fault.kind == "divergent") broadcast(ones({3}), 0);
  if (fault.kind == "full") {  // as full as a disk can be made without being root: no file may have a thousand bytes
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    RUSH_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit has failed");
  }
}

void train(const std::string& folder) {
  InitOptions options;
  options.timeout = std::chrono::seconds(1);
  options.debug = true;
  init_process_group("mpi", options);
  const Fault fault = planned_fault();
  const std::string path = folder + "/checkpoint.pt";

  manual_seed(3);
  nn::Sequential layers(nn::Linear(8, 32), nn::Tanh(), nn::Linear(32, 1));
  optim::SGD optimizer(layers->parameters(), optim::SGDOptions(0.05).momentum(0.9));
  Tensor next_step = zeros({1}, kInt64);
  if (std::filesystem::exists(path)) {
    serialize::InputArchive archive, net, state;
    archive.load_from(path);
    archive.read("step", next_step);
    archive.read("net", net);
    archive.read("optimizer", state);
    layers->load(net);
    optimizer.load(state);
  }
  nn::DistributedDataParallel net(layers);
  for (int64_t step = next_step.item<int64_t>(); step < kSteps; ++step) {
    if (step == fault.step && get_rank() == fault.rank) have(fault);
    Generator generator = make_generator<CPUGeneratorImpl>(static_cast<uint64_t>(step));
    const Tensor batch = randn({kRows * get_world_size(), 8}, generator);
    const Tensor x = batch.narrow(0, kRows * get_rank(), kRows);
    optimizer.zero_grad();
    nn::functional::mse_loss(net(x), x.sum(1, true).sin()).backward();
    optimizer.step();
    if (get_rank() != 0) continue;
    serialize::OutputArchive archive, weights, state;
    layers->save(weights);
    optimizer.save(state);
    archive.write("step", full({1}, step + 1, kInt64));
    archive.write("net", weights);
    archive.write("optimizer", state);
    archive.save_to(path);
  }
  destroy_process_group();
}

}  // namespace

int main(int, char** argv) {
  try {
    train(argv[1]);
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", is_initialized() ? get_rank() : -1, error.what_without_backtrace());
    return 1;
  }
}
