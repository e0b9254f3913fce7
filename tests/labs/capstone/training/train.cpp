// quadrants: a convolutional net learns which quadrant of a noisy image is bright, on one process or several.
#include <cstdio>
#include <filesystem>
#include <string>

#include <rushlight.h>

using namespace rush;
namespace F = nn::functional;

struct Options {
  int64_t steps = 60, batch_size = 64;
  std::string out_dir = "out";
  bool resume = false;
};

static Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--resume") {
      options.resume = true;
      continue;
    }
    RUSH_CHECK_VALUE(i + 1 < argc, "there is no value for ", name);
    const std::string value = argv[++i];
    if (name == "--steps") options.steps = std::stoll(value);
    if (name == "--batch_size") options.batch_size = std::stoll(value);
    if (name == "--out_dir") options.out_dir = value;
  }
  return options;
}

static nn::Sequential make_net() {
  manual_seed(1);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(16, 16, 3).padding(1).stride(2)), nn::ReLU(), nn::Flatten(),
                        nn::Linear(16 * 16 * 16, 4));
}

struct Batch {
  Tensor images, targets;  // (B, 1, 32, 32), (B)
};

// That of a step is the same on all processes, and in a run that goes on; each takes its own rows.
static Batch batch_of(int64_t step, int64_t size) {
  Generator generator = make_generator<CPUGeneratorImpl>(100 + static_cast<uint64_t>(step));
  const Tensor targets = randint(0, 4, {size}, generator, kInt64);
  const Tensor bright = F::one_hot(targets, 4).to(kFloat32).view({size, 1, 2, 2});
  const Tensor spread = bright.repeat_interleave(16, 2).repeat_interleave(16, 3);
  return {randn({size, 1, 32, 32}, generator) + 0.2 * spread, targets};
}

static Batch rows_of_process(const Batch& batch) {
  const int64_t rows = batch.targets.size(0) / distributed::get_world_size();
  const int64_t first = distributed::get_rank() * rows;
  return {batch.images.narrow(0, first, rows), batch.targets.narrow(0, first, rows)};
}

static void train(const Options& options) {
  RUSH_CHECK_VALUE(options.batch_size % distributed::get_world_size() == 0, "batch_size ", options.batch_size,
                   " cannot be divided among ", distributed::get_world_size(), " processes");
  const bool is_first = distributed::get_rank() == 0;
  const std::string checkpoint_file = options.out_dir + "/checkpoint.safetensors";
  nn::Sequential net = make_net();
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.02).momentum(0.9));
  int64_t step = 0;
  Checkpoint checkpoint;
  checkpoint.add("net", net).add("optimizer", optimizer).add("step", step);
  if (options.resume && std::filesystem::exists(checkpoint_file)) checkpoint.load(checkpoint_file);
  std::filesystem::create_directories(options.out_dir);
  nn::DistributedDataParallel parallel(net);
  while (step < options.steps) {
    const Batch batch = rows_of_process(batch_of(step, options.batch_size));
    optimizer.zero_grad();
    const Tensor loss = F::cross_entropy(parallel(batch.images), batch.targets);
    loss.backward();
    optimizer.step();
    ++step;
    const Tensor mean = loss.detach().clone();
    distributed::all_reduce(mean, distributed::ReduceOp::AVG);
    if (!is_first) continue;
    std::printf("step %lld loss %.7f\n", static_cast<long long>(step), mean.item<double>());
    std::fflush(stdout);
    if (step % 10 == 0) checkpoint.save(checkpoint_file);
  }
  if (is_first) save(net, options.out_dir + "/weights.safetensors");
}

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    distributed::init_process_group(distributed::read_environment().started_by_mpi ? "mpi" : "fake");
    train(options);
    distributed::destroy_process_group();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
