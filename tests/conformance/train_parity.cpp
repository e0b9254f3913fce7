// rush_train_parity DIR: repeats recorded training runs, DIR/{gpt,cnn,lstm}.json, and compares their losses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/read_file.h"
#include "core/io/safetensors.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "rushlight.h"
#include "tests/conformance/parity_models.h"

using namespace conformance;
using nlohmann::json;
using rush::Tensor;
using rush::io::SafetensorsFile;

namespace {

constexpr size_t kComparedSteps = 20;
constexpr double kTolerance = 1e-3;  // relative

struct RunResult {
  enum class Outcome { Passed, Failed, Missing } outcome;
  std::string text;  // what is printed
  double worst = 0;  // relative difference of a loss
  std::vector<double> losses;
};

// Copies "init.*" into the model. Both sides must name the same tensors.
void load_initial_weights(rush::nn::Module& module, const SafetensorsFile& file) {
  const rush::NoGradGuard no_grad;
  auto tensors = module.named_parameters();
  for (const auto& buffer : module.named_buffers()) tensors.insert(buffer.key(), buffer.value());
  const std::string prefix = "init.";
  size_t loaded = 0;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    const Tensor* target = tensors.find(entry.name.substr(prefix.size()));
    RUSH_CHECK_VALUE(target, "the model has no ", entry.name.substr(prefix.size()));
    target->copy_(file.read(entry));
    ++loaded;
  }
  RUSH_CHECK_VALUE(loaded == tensors.size(), "the recording has ", loaded, " of the model's ", tensors.size(),
                   " parameters and buffers");
}

std::unique_ptr<rush::optim::Optimizer> make_optimizer(const json& recording, const std::vector<Tensor>& parameters) {
  using namespace rush::optim;
  const std::string kind = recording.at("optimizer");
  const double lr = recording.at("lr"), weight_decay = recording.at("weight_decay");
  if (kind == "SGD") {
    return std::make_unique<SGD>(parameters, SGDOptions(lr)
                                                 .momentum(recording.at("momentum"))
                                                 .nesterov(recording.at("nesterov"))
                                                 .weight_decay(weight_decay));
  }
  const std::tuple<double, double> betas{recording.at("betas").at(0), recording.at("betas").at(1)};
  const double eps = recording.at("eps");
  if (kind == "Adam") {
    return std::make_unique<Adam>(parameters, AdamOptions(lr).betas(betas).eps(eps).weight_decay(weight_decay));
  }
  RUSH_CHECK_VALUE(kind == "AdamW", "unknown optimizer '", kind, "'");
  return std::make_unique<AdamW>(parameters, AdamWOptions(lr).betas(betas).eps(eps).weight_decay(weight_decay));
}

std::vector<double> train(const json& recording, const SafetensorsFile& file, rush::Device device) {
  const ParityModel model = make_parity_model(recording);
  load_initial_weights(*model.module, file);
  model.module->to(device);
  const std::vector<Tensor> parameters = model.module->parameters();
  const auto optimizer = make_optimizer(recording, parameters);
  const json& clip = recording.at("clip_grad_norm");

  std::vector<double> losses;
  const size_t steps = std::min(kComparedSteps, recording.at("losses").size());
  for (size_t step = 0; step < steps; ++step) {
    const Tensor x = file.read(rush::str("x.", step)).to(device), y = file.read(rush::str("y.", step)).to(device);
    const Tensor loss = model.loss(x, y);
    optimizer->zero_grad();
    loss.backward();
    if (!clip.is_null()) rush::nn::utils::clip_grad_norm_(parameters, clip.get<double>());
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

RunResult compare(const std::vector<double>& losses, const std::vector<double>& recorded) {
  RunResult result{RunResult::Outcome::Passed, "", 0, losses};
  size_t worst_step = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double error = std::abs(losses[i] - recorded[i]) / std::abs(recorded[i]);
    if (!(error <= result.worst)) result.worst = error, worst_step = i;  // NaN is worst
  }
  if (!(result.worst <= kTolerance)) result.outcome = RunResult::Outcome::Failed;
  result.text = rush::str("worst relative difference ", static_cast<float>(result.worst), " at step ", worst_step,
                          " (loss ", losses[worst_step], ", recorded ", recorded[worst_step], ")");
  return result;
}

// On CUDA as on the CPU: with all bits of float32.
RunResult repeat(const std::string& folder, const std::string& name, rush::Device device) {
  rush::globalContext().setAllowTF32CuDNN(false);
  try {
    const std::vector<uint8_t> text = rush::io::read_file(folder + "/" + name + ".json");
    const json recording = json::parse(text);
    const SafetensorsFile file(folder + "/" + name + ".safetensors");
    return compare(train(recording, file, device), recording.at("losses").get<std::vector<double>>());
  } catch (const rush::NotImplementedError& error) {
    return {RunResult::Outcome::Missing, error.what(), 0, {}};
  } catch (const std::exception& error) {
    return {RunResult::Outcome::Failed, error.what(), 0, {}};
  }
}

const char* name(RunResult::Outcome outcome) {
  constexpr const char* names[] = {"passed", "failed", "missing"};
  return names[static_cast<size_t>(outcome)];
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder, device_name = "cpu", json_file;
  examples::Options options("rush_train_parity", "Repeats recorded training runs and compares their losses.");
  options.add_argument("DIR", &folder, "holds gpt, cnn and lstm as .json and .safetensors");
  options.add("--device", &device_name, "where to train: cpu or cuda");
  options.add("--json", &json_file, "write the results to this file");
  options.parse_or_exit(argc, argv, [&] {
    examples::check_device(device_name);
    examples::check_json_file(json_file);
  });

  try {
    const rush::Device device(device_name);
    int counts[3] = {};
    json report;
    for (const char* run : {"gpt", "cnn", "lstm"}) {
      const RunResult result = repeat(folder, run, device);
      std::printf("%s: %s, %s\n", run, name(result.outcome), result.text.c_str());
      ++counts[static_cast<size_t>(result.outcome)];
      report[run] = {{"outcome", name(result.outcome)}, {"worst", result.worst}, {"losses", result.losses}};
    }
    if (!json_file.empty()) rush::io::write_file_atomically(json_file, report.dump(1) + "\n");
    std::printf("passed %d, failed %d, missing %d\n", counts[0], counts[1], counts[2]);
    return counts[1] == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rush_train_parity: %s\n", error.what());
    return 2;
  }
}
