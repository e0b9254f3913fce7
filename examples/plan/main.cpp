// Proposes how to train a GPT on many processes: which mesh is fastest within a memory, what a step takes there, and
// how much memory; or says so of one mesh. Measures what this machine's devices do.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/memory/byte_text.h"
#include "examples/mesh_gpt/training.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/plan/rates.h"
#include "examples/processes/processes.h"
#include "examples/run_program.h"

namespace examples {
namespace {

constexpr double kGiB = 1 << 30;

// Sizes of known models; the batch is of one step.
const std::map<std::string, TransformerShape>& known_models() {
  static const std::map<std::string, TransformerShape> models = {{"mesh_gpt", {4, 4, 128, 64, 64, 16}},
                                                                 {"gpt2", {12, 12, 768, 50304, 1024, 512}},
                                                                 {"gpt2-xl", {48, 25, 1600, 50304, 1024, 512}},
                                                                 {"gpt3", {96, 96, 12288, 50304, 2048, 1536}}};
  return models;
}

struct Settings {
  std::string model = "mesh_gpt", rates = "h200", measured_file, json_file;
  MeshTrainingOptions training;
  int64_t gpus = 0, best = 5;
  double memory_gib = 80;

  void parse(int argc, char** argv) {
    if (argc > 1 && known_models().count(argv[1])) {
      model = argv[1];
      --argc, ++argv;
    }
    training.set_shape(known_models().at(model));
    training.dp = 1;
    Options options("plan",
                    "Says what a step of a GPT takes on many processes, and which mesh is best. The first "
                    "argument is a model, mesh_gpt, gpt2, gpt2-xl or gpt3, whose sizes are then the defaults.");
    options.add("--gpus", &gpus, "how many processes to propose meshes for; 0: the mesh of the options below", 0,
                1 << 16);
    options.add("--memory", &memory_gib, "of each, for tensors, in GiB", 0.001, 1e6);
    options.add("--rates", &rates, "h200, or a file of --measure");
    options.add("--best", &best, "meshes to print", 1, 1000);
    options.add("--measure", &measured_file, "measure this machine with the model's sizes, and write its rates here");
    training.add_to(options);
    options.add("--vocab_size", &training.model.vocab_size, "tokens", 1, 1 << 24);
    options.add("--device", &training.device, "cpu or cuda: what is measured, and whose allocator counts");
    options.add("--json", &json_file, "file for the plans");
    options.parse_or_exit(argc, argv, [this] { check_device(training.device, /*graph=*/false); });
  }
};

int64_t dry_run(MeshTrainingOptions options, const TrainingMesh& mesh) {
  const rush::Device device(options.device);
  options.set_mesh(mesh);
  return most_memory_of_mesh(options, device);
}

// What a step's time goes to.
std::vector<std::pair<std::string, double>> parts_of(const StepTime& t) {
  return {{"computing", t.computing}, {"tp", t.tp}, {"cp", t.cp},
          {"fsdp", t.fsdp},           {"dp", t.dp}, {"pipeline", t.pipeline},
          {"optimizer", t.optimizer}};
}

void print(const Settings& settings, const std::vector<Plan>& plans) {
  nlohmann::json json = nlohmann::json::array();
  std::printf("%12s  %10s  %10s  %-10s %s\n", "step", "memory", "dry run", "bound by", "mesh");
  for (const Plan& plan : plans) {
    const int64_t peak = static_cast<int64_t>(plan.memory.peak()), dry = dry_run(settings.training, plan.mesh);
    const double seconds = plan.time.total();
    const auto parts = parts_of(plan.time);
    const auto most =
        std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string mesh = options_text(plan.mesh);
    std::printf("%9.2f ms  %10s  %10s  %-10s %s\n", 1e3 * seconds, rush::byte_text(peak).c_str(),
                rush::byte_text(dry).c_str(), most->first.c_str(), mesh.empty() ? "one process" : mesh.c_str());
    json.push_back({{"mesh", mesh}, {"step_seconds", seconds}, {"peak_bytes", peak}, {"dry_run_bytes", dry}});
    for (const auto& [name, part] : parts) json.back()["parts"][name] = part;
  }
  if (!settings.json_file.empty()) rush::io::write_file_atomically(settings.json_file, json.dump(2) + "\n");
}

void propose(const Settings& settings, const DeviceRates& rates) {
  const TransformerShape shape = settings.training.shape();
  const double bytes = settings.memory_gib * kGiB;
  std::vector<Plan> plans = examples::propose(shape, settings.gpus, bytes, rates);
  RUSH_CHECK_VALUE(!plans.empty(), "no mesh of ", settings.gpus, " processes can split the model and its batch of ",
                   shape.batch);
  const bool fits = plans[0].memory.peak() <= bytes;
  if (fits) {
    std::printf("%zu meshes of %lld processes fit into %.4g GiB each; the fastest:\n", plans.size(),
                static_cast<long long>(settings.gpus), settings.memory_gib);
  } else {
    std::printf("no mesh of %lld processes fits into %.4g GiB each; what needs least:\n",
                static_cast<long long>(settings.gpus), settings.memory_gib);
  }
  plans.resize(std::min(plans.size(), static_cast<size_t>(settings.best)));
  print(settings, plans);
}

void measure(const Settings& settings) {
  const rush::Device device(settings.training.device);
  const Processes processes(device);
  RUSH_CHECK_VALUE(processes.count() > 1, "--measure is for several processes: ./rush launch -n N plan");
  const DeviceRates rates = measure_rates(settings.training.shape(), device);
  if (processes.is_first()) write_rates(settings.measured_file, rates);
  std::printf(
      "%lld processes at once, each: products %.4g GFLOP/s, element-wise %.4g GB/s, AdamW %.4g GB/s, a call %.3g "
      "us; all_reduce: %.3g us, %.4g GB/s\n",
      static_cast<long long>(processes.count()), rates.products * 1e-9, rates.element_wise * 1e-9, rates.copies * 1e-9,
      rates.call * 1e6, rates.near.latency * 1e6, rates.near.bytes_per_second * 1e-9);
}

void plan(const Settings& settings) {
  if (!settings.measured_file.empty()) return measure(settings);
  const DeviceRates rates = settings.rates == "h200" ? h200_rates() : read_rates(settings.rates);
  const TransformerShape shape = settings.training.shape();
  std::printf("%s: %.1f million parameters, batches of %lld sequences of %lld tokens\n", settings.model.c_str(),
              static_cast<double>(shape.parameters()) * 1e-6, static_cast<long long>(shape.batch),
              static_cast<long long>(shape.sequence));
  if (settings.gpus > 0) return propose(settings, rates);
  const TrainingMesh mesh = settings.training.mesh();
  print(settings, {{mesh, predict_memory(shape, mesh), predict_time(shape, mesh, rates)}});
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("plan", [&] { examples::plan(settings); });
}
