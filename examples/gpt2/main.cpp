// Trains GPT-2 on a text and lets it write. The options have nanoGPT's names.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/io/atomic_file.h"
#include "examples/gpt2/pretraining.h"
#include "examples/gpt2/tokenizer.h"
#include "examples/gpt2/weights.h"
#include "examples/memory_options.h"
#include "examples/mesh_gpt/mesh_run.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/process_age.h"
#include "examples/processes/processes.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "examples/stop_request.h"
#include "examples/utf8.h"

namespace examples {
namespace {

using rush::Tensor;

// The defaults are the 124 million parameters of the smallest GPT-2, and nanoGPT's.
struct Settings {
  std::string data, vocab, merges, init_from = "scratch", device = "cpu", out_dir = "out-gpt2", json_file, prompt;
  GPTConfig model;
  PretrainingOptions training;
  int64_t checkpoint_interval = 250, max_new_tokens = 200, top_k = 200;
  double temperature = 0.8, peak_flops = 0;
  MemoryOptions memory;
  Beginning beginning;
  LogOptions log;
  std::string resume_command;

  void parse(int argc, char** argv) {
    Options options("gpt2", "Trains GPT-2 on a text, or goes on with its published weights, and lets it write.");
    options.add("--data", &data, "text file (default: tiny Shakespeare if it is there, else the project's own texts)");
    options.add("--vocab", &vocab, "tokens with their numbers: encoder.json or vocab.json (default: data/gpt2's)");
    options.add("--merges", &merges, "pairs that tokens are joined of: vocab.bpe or merges.txt (default: data/gpt2's)");
    options.add(
        "--init_from", &init_from,
        "scratch; resume: nanoGPT's spelling of --resume; or PATH.safetensors: weights of Hugging Face's GPT-2, which "
        "set all sizes but n_head");
    beginning.add_to(options);
    options.add("--n_layer", &model.n_layer, "blocks", 1, 1 << 10);
    options.add("--n_head", &model.n_head, "attention heads of a block", 1, 1 << 10);
    options.add("--n_embd", &model.n_embd, "width", 1, 1 << 16);
    options.add("--block_size", &model.block_size, "tokens that the model sees", 1, 1 << 20);
    options.add("--dropout", &model.dropout, "part of the activations that is dropped while training", 0, 0.999999);
    options.add("--batch_size", &training.batch_size, "blocks that are in memory at once: a micro-batch", 1, 1 << 20);
    options.add("--total_batch_size", &training.total_batch_size,
                "tokens in a step, a multiple of batch_size x block_size; 0: one micro-batch", 0, int64_t{1} << 40);
    options.add("--max_iters", &training.max_iters, "steps to train", 0, 1 << 30);
    options.add("--learning_rate,--lr", &training.learning_rate, "the highest learning rate", 1e-12, 1e3);
    options.add("--min_lr", &training.min_lr, "the learning rate at the end", 0, 1e3);
    options.add("--warmup_iters", &training.warmup_iters, "steps over which the learning rate rises", 0, 1 << 30);
    options.add("--weight_decay", &training.weight_decay, "AdamW's, for matrices", 0, 1e3);
    options.add("--beta1", &training.beta1, "AdamW's", 0, 0.999999);
    options.add("--beta2", &training.beta2, "AdamW's", 0, 0.999999);
    options.add("--grad_clip", &training.grad_clip, "the highest norm of the gradient; 0: any", 0);
    options.add("--eval_interval", &training.eval_interval, "steps between estimates; the weights of the best are kept",
                1, 1 << 30);
    options.add("--eval_iters", &training.eval_iters, "batches of an estimate; 0: no estimates", 0, 1 << 20);
    options.add("--checkpoint_interval", &checkpoint_interval, "steps between checkpoints", 1, 1 << 30);
    options.add("--prompt", &prompt, "what the text written at the end begins with");
    options.add("--max_new_tokens", &max_new_tokens, "tokens to write at the end", 0, 1 << 30);
    options.add("--temperature", &temperature, "of what is written: lower is safer", 1e-3, 1e3);
    options.add("--top_k", &top_k, "write only the likeliest tokens", 1, 1 << 20);
    options.add("--seed", &training.seed, "of weights, batches and what is written", 0);
    options.add("--device", &device, "cpu or cuda");
    options.add("--dtype", &training.dtype, "the precision: float32, or autocast to 16 bits", Precision::names());
    options.add("--graph", &training.graph, "take the steps as a CUDA graph");
    training.mesh.add_to(options);
    memory.add_to(options, /*has_blocks=*/true);
    options.add("--peak_flops", &peak_flops, "of the device in a second, for the utilisation; 0: if it is known", 0);
    options.add("--out_dir", &out_dir, "folder for weights, checkpoint and report; empty: none");
    options.add("--json", &json_file, "file for the results");
    log.add_to(options);
    options.parse_or_exit(argc, argv, [this] {
      beginning.resume = beginning.resume || init_from == "resume";
      check();
    });
    log.settings = options.values();
    resume_command = examples::resume_command(argc, argv);
  }

  void check() const {
    const bool there = has_weights() && std::filesystem::exists(init_from);
    RUSH_CHECK_VALUE(init_from == "scratch" || init_from == "resume" || there,
                     "--init_from: expected scratch, resume or a file PATH.safetensors, ",
                     has_weights() ? "and there is no file" : "got", " '", init_from,
                     "' (`./rush fetch gpt2` downloads data/gpt2/model.safetensors)");
    beginning.check(out_dir);
    check_device(device, training.graph);
    check_mesh(training.mesh, training.graph, training.dtype, model.dropout, memory);
    if (has_weights() || memory.estimate) return;  // which bring their sizes
    constexpr int64_t kWeight = 4, kTrained = 16;  // bytes of a parameter; with its gradient and AdamW's two moments
    check_transformer({model.n_layer, model.n_head, model.n_embd}, training.max_iters > 0 ? kTrained : kWeight, device);
    micro_batches(training.total_batch_size, training.batch_size, model.block_size);
  }

  bool has_weights() const { return init_from.ends_with(".safetensors"); }
};

Tokenizer read_tokenizer(const Settings& s) {
  const auto path = [](const std::string& given, const char* file, const char* option) {
    const std::string found = given.empty() ? find_data_file(file) : given;
    RUSH_CHECK_IO(!found.empty(), "there is no ", file,
                  " in RUSH_DATA or data/: `./rush fetch gpt2` downloads it, or name GPT-2's with ", option);
    return found;
  };
  return Tokenizer(path(s.vocab, "gpt2/encoder.json", "--vocab"), path(s.merges, "gpt2/vocab.bpe", "--merges"));
}

// The first nine tenths of the text to train on, the rest to validate.
TextData tokenize(const std::string& text, const Tokenizer& tokenizer, int64_t block_size) {
  size_t part = train_part(text.size());
  while (part < text.size() && part > 0 && utf8_character(std::string_view(text).substr(part)) == 0) --part;
  return TextData(tokenizer.encode(std::string_view(text).substr(0, part)),
                  tokenizer.encode(std::string_view(text).substr(part)), block_size);
}

// How many tokens there are, for an estimate: without the vocabulary's files, as many as GPT-2 has.
int64_t count_tokens(const Settings& s) {
  const bool have = !s.vocab.empty() || !s.merges.empty() || !find_data_file("gpt2/encoder.json").empty();
  return have ? read_tokenizer(s).size() : 50257;
}

GPTConfig make_config(const Settings& s, int64_t tokens) {
  GPTConfig config = s.model;
  config.vocab_size = tokens;
  if (s.has_weights()) config = read_gpt2_config(s.init_from, config);
  RUSH_CHECK_VALUE(config.vocab_size == tokens, s.init_from, ": the model has ", config.vocab_size,
                   " tokens, the vocabulary ", tokens);
  constexpr int64_t kAlignment = 64;  // 50257 -> 50304
  config.vocab_padding = (config.vocab_size + kAlignment - 1) / kAlignment * kAlignment - config.vocab_size;
  return config;
}

// Made where it will be trained: a GPU draws a hundred million random numbers in no time.
GPT make_model(const Settings& s, const GPTConfig& config, rush::Device device) {
  const rush::Device before = rush::get_default_device();
  rush::set_default_device(device);
  GPT model(config);
  rush::set_default_device(before);
  if (s.has_weights()) load_gpt2_weights(*model, s.init_from);
  return model;
}

void begin(Pretraining& run, RunFolder& folder) {
  const std::string& path = folder.checkpoint();
  if (!folder.begin([&] { run.load(path, folder.changes()); }, [&] { run.save(path); })) return;
  std::printf("going on from %s, step %lld\n", path.c_str(), static_cast<long long>(run.iteration()));
}

void try_to_save(const std::function<void()>& save) {
  const std::string warning = examples::try_to_save(save);
  if (!warning.empty()) std::fprintf(stderr, "gpt2: %s\n", warning.c_str());
}

[[noreturn]] void stop(Pretraining& run, const Settings& s, const RunFolder& folder, const StopRequest& request) {
  const bool has_checkpoint = !folder.checkpoint().empty();
  request.end(rush::str("after step ", run.iteration()), has_checkpoint ? s.resume_command : "", [&] {
    if (has_checkpoint) run.save(folder.checkpoint());
  });
}

// Estimates the losses, and keeps the weights if they are the best that were kept so far. Throws rush::IOError.
void report(Pretraining& run, const Settings& s) {
  if (s.training.eval_iters == 0) return;
  const double train = run.estimate(TextData::Train), validation = run.estimate(TextData::Validation);
  std::printf("step %lld: train loss %.4f, val loss %.4f\n", static_cast<long long>(run.iteration()), train,
              validation);
  run.log().add(run.iteration(), "loss/train", train);
  run.log().add(run.iteration(), "loss/validation", validation);
  if (!(validation < run.best_loss())) return;
  run.gather();
  if (!s.out_dir.empty()) save_gpt2_weights(run.model(), s.out_dir);
  run.best_loss() = validation;
}

void print_step(Pretraining& run, const StepReport& step, double peak_flops) {
  const double rate = static_cast<double>(run.tokens_in_step()) / step.seconds;
  std::printf("step %lld: loss %.4f, lr %.3e, norm %.3f, %.1f ms, %.0f tokens/s",
              static_cast<long long>(run.iteration()), step.loss, step.learning_rate, step.grad_norm,
              step.seconds * 1e3, rate);
  if (peak_flops > 0) std::printf(", %.1f %% MFU", 100 * flops_per_token(run.model()) * rate / peak_flops);
  const rush::AllocatorStats memory = rush::allocator(run.device().type).stats();
  std::printf(", %.2f GiB\n", static_cast<double>(memory.max_allocated) / (1 << 30));
  std::fflush(stdout);
}

void train(Pretraining& run, const Settings& s, const RunFolder& folder, const Processes& processes) {
  std::printf("%lld tokens to train on, %lld to validate; %.2f million parameters; %lld tokens in a step\n",
              static_cast<long long>(run.data().size(TextData::Train)),
              static_cast<long long>(run.data().size(TextData::Validation)),
              static_cast<double>(run.model().parameter_count()) / 1e6, static_cast<long long>(run.tokens_in_step()));
  const double peak_flops = s.peak_flops > 0 ? s.peak_flops : known_peak_flops(run.device());
  const bool saves = !folder.checkpoint().empty();
  const int64_t first = run.iteration();
  const StopRequest request;
  while (run.iteration() < s.training.max_iters) {
    if (run.iteration() % s.training.eval_interval == 0) try_to_save([&] { report(run, s); });
    print_step(run, run.step(), peak_flops);
    if (run.iteration() == first + 1) std::printf("the first step was done %.2f s after the start\n", process_age());
    if (processes.any(request.pending())) stop(run, s, folder, request);
    if (run.iteration() % s.checkpoint_interval == 0 && saves) {
      try_to_save([&] { run.save(folder.checkpoint()); });
    }
  }
  if (saves) run.save(folder.checkpoint());
  report(run, s);
}

void write_results(Pretraining& run, const std::string& path) {
  nlohmann::json results{{"steps", run.iteration()}, {"loss", run.last_loss()}};
  if (std::isfinite(run.best_loss())) results["best_val_loss"] = run.best_loss();
  rush::io::write_file_atomically(path, results.dump(2) + "\n");
}

std::string write(GPTImpl& model, const Tokenizer& tokenizer, const Settings& s) {
  std::vector<int32_t> tokens = tokenizer.encode(s.prompt);
  if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());  // what texts begin after
  const rush::Device device(s.device);
  const Precision precision(s.training.dtype, device);
  const auto scope = precision.scope();
  model.eval();
  const Tensor start = rush::tensor(rush::ArrayRef<int32_t>(tokens)).to(rush::kLong).view({1, -1}).to(device);
  const Tensor all = model.generate(start, s.max_new_tokens, s.temperature, s.top_k).cpu().to(rush::kInt).view(-1);
  const auto* first = all.data_ptr<int32_t>();
  return tokenizer.decode({first + (s.prompt.empty() ? 1 : 0), first + all.numel()});
}

// Lets cuDNN make its plans for the model's attention, in a thread, too: it asks for them by shape and layout only.
std::future<void> plan_attention(const Settings& s, const GPTConfig& config, rush::Device device, int64_t rows) {
  const bool has_plans =
      device.is_cuda() && s.training.max_iters > 0 && s.training.dtype != "float32" && !s.training.on_mesh;
  return std::async(has_plans ? std::launch::async : std::launch::deferred, [=, options = s.training] {
    if (!has_plans) return;
    const rush::ScalarType dtype = options.dtype == "float16" ? rush::kFloat16 : rush::kBFloat16;
    const Tensor packed = rush::empty({rows, config.block_size, 3 * config.n_embd},
                                      rush::TensorOptions(dtype).device(device).requires_grad(true));
    std::vector<Tensor> parts = packed.split(config.n_embd, 2);
    for (Tensor& part : parts) {
      part = part.view({rows, config.block_size, config.n_head, -1}).transpose(1, 2);
    }
    rush::fused_sdp_choice(parts[0], parts[1], parts[2], {}, config.dropout, /*is_causal=*/true);
  });
}

void print_estimate(const Settings& settings) {
  const GPTConfig config = make_config(settings, count_tokens(settings));
  const PretrainingOptions& training = settings.training;
  const bool accumulates = training.total_batch_size > training.batch_size * config.block_size;
  print_memory_estimate(rush::Device(settings.device), training.batch_size, [&](int64_t batch_size) {
    PretrainingOptions options = training;
    options.batch_size = batch_size;
    options.total_batch_size = accumulates ? 2 * batch_size * config.block_size : 0;  // a third needs no more
    rehearse_pretraining(config, options, settings.memory.known_blocks(config.n_layer));
  });
  const Precision precision(training.dtype, rush::Device(settings.device));
  print_key_value_cache(KeyValueCache::bytes(config, precision.dtype()));
}

// What takes long before the first step happens side by side.
void run(Settings settings) {
  const rush::Device device(settings.device);
  settings.training.device = device;
  if (settings.memory.estimate) return print_estimate(settings);
  const Processes processes(device);
  const std::string out_dir = settings.out_dir;
  processes.leave_files_to_the_first(settings);
  std::optional<RunFolder> folder;
  RunLog log("gpt2", settings.log, settings.out_dir, device);
  const bool trains = settings.training.max_iters > 0 || settings.beginning.resume;
  if (trains) folder.emplace(out_dir, settings.beginning, processes.is_first());
  std::optional<rush::DeviceStart> start(device);
  const Tokenizer tokenizer = read_tokenizer(settings);
  const GPTConfig config = make_config(settings, tokenizer.size());
  std::future<TextData> data;
  if (trains) {
    const std::string path = find_text(settings.data);
    std::printf("training on %s\n", path.empty() ? "the project's own texts" : path.c_str());
    data =
        std::async(std::launch::async, [&, path] { return tokenize(read_text(path), tokenizer, config.block_size); });
  }
  const std::string before = settings.beginning.resume ? folder->checkpoint() : "";
  settings.training.mesh.checkpoint_blocks = settings.memory.checkpoint == "every";
  settings.training.on_mesh = runs_on_mesh(settings.training.mesh, processes.count(), before);
  start.reset();
  std::future<void> planned =
      plan_attention(settings, config, device, settings.training.batch_size / processes.count());
  rush::manual_seed(static_cast<uint64_t>(settings.training.seed));
  GPT model = make_model(settings, config, device);
  if (data.valid()) {
    model->checkpoint_blocks(settings.memory.blocks_to_checkpoint(
        config.n_layer, device, [&](int64_t count) { rehearse_pretraining(config, settings.training, count); }));
    Pretraining run(model, data.get(), settings.training, log, &processes);
    processes.begin([&] { begin(run, *folder); });
    planned.get();
    train(run, settings, *folder, processes);
    run.gather();
    if (!settings.json_file.empty()) write_results(run, settings.json_file);
    log.report.headline = rush::str(run.iteration(), " steps");
    log.report.summary =
        rush::str("of ", run.tokens_in_step(), " tokens, with ", model->parameter_count(), " weights.");
  }
  if (settings.max_new_tokens > 0 && processes.is_first()) {
    model->to(device);
    const std::string text = write(*model, tokenizer, settings);
    std::printf("----\n%s\n----\n", text.c_str());
    log.add_text("What it writes", text);
  }
  if (trains) log.finish();
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("gpt2", [&] { examples::run(settings); });
}
