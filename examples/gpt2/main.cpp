// Trains GPT-2 on a text and lets it write. The options have nanoGPT's names.
#include <cstdio>
#include <filesystem>
#include <future>

#include "examples/gpt2/pretraining.h"
#include "examples/gpt2/tokenizer.h"
#include "examples/gpt2/weights.h"
#include "examples/options.h"
#include "examples/process_age.h"
#include "examples/run_program.h"

namespace examples {
namespace {

using rush::Tensor;

// The defaults are the 124 million parameters of the smallest GPT-2, and nanoGPT's.
struct Settings {
  std::string data, vocab, merges, init_from = "scratch", device = "cpu", out_dir = "out-gpt2", prompt;
  GPTConfig model;
  PretrainingOptions training;
  int64_t eval_interval = 250, checkpoint_interval = 250, max_new_tokens = 200, top_k = 200;
  double temperature = 0.8, peak_flops = 0;

  void parse(int argc, char** argv) {
    Options options("gpt2", "Trains GPT-2 on a text, or goes on with its published weights, and lets it write.");
    options.add("--data", &data, "text file (default: tiny Shakespeare if it is there, else the project's own texts)");
    options.add("--vocab", &vocab, "tokens with their numbers: encoder.json or vocab.json (default: data/gpt2's)");
    options.add("--merges", &merges, "pairs that tokens are joined of: vocab.bpe or merges.txt (default: data/gpt2's)");
    options.add(
        "--init_from", &init_from,
        "scratch; resume: go on from the checkpoint in out_dir, if there is one; or PATH.safetensors: weights of "
        "Hugging Face's GPT-2, which set all sizes but n_head");
    options.add("--n_layer", &model.n_layer, "blocks", 1);
    options.add("--n_head", &model.n_head, "attention heads of a block", 1);
    options.add("--n_embd", &model.n_embd, "width", 1);
    options.add("--block_size", &model.block_size, "tokens that the model sees", 1, 1 << 20);
    options.add("--dropout", &model.dropout, "part of the activations that is dropped while training", 0, 1);
    options.add("--batch_size", &training.batch_size, "blocks that are in memory at once: a micro-batch", 1, 1 << 20);
    options.add("--total_batch_size", &training.total_batch_size,
                "tokens in a step, a multiple of batch_size x block_size; 0: one micro-batch", 0);
    options.add("--max_iters", &training.max_iters, "steps to train", 0);
    options.add("--learning_rate", &training.learning_rate, "the highest learning rate", 1e-12);
    options.add("--min_lr", &training.min_lr, "the learning rate at the end", 0);
    options.add("--warmup_iters", &training.warmup_iters, "steps over which the learning rate rises", 0);
    options.add("--weight_decay", &training.weight_decay, "AdamW's, for matrices", 0);
    options.add("--beta1", &training.beta1, "AdamW's", 0, 1);
    options.add("--beta2", &training.beta2, "AdamW's", 0, 1);
    options.add("--grad_clip", &training.grad_clip, "the highest norm of the gradient; 0: any", 0);
    options.add("--eval_interval", &eval_interval, "steps between estimates; the weights of the best are kept", 1);
    options.add("--eval_iters", &training.eval_iters, "batches of an estimate; 0: no estimates", 0);
    options.add("--checkpoint_interval", &checkpoint_interval, "steps between checkpoints", 1);
    options.add("--prompt", &prompt, "what the text written at the end begins with");
    options.add("--max_new_tokens", &max_new_tokens, "tokens to write at the end", 0);
    options.add("--temperature", &temperature, "of what is written: lower is safer", 1e-3);
    options.add("--top_k", &top_k, "write only the likeliest tokens", 1);
    options.add("--seed", &training.seed, "of weights, batches and what is written", 0);
    options.add("--device", &device, "cpu or cuda");
    options.add("--dtype", &training.dtype, "the precision: float32, or autocast to 16 bits", Precision::names());
    options.add("--graph", &training.graph, "take the steps as a CUDA graph");
    options.add("--peak_flops", &peak_flops, "of the device in a second, for the utilisation; 0: if it is known", 0);
    options.add("--out_dir", &out_dir, "folder for weights and checkpoint; empty: none");
    options.parse_or_exit(argc, argv);
  }

  bool has_weights() const { return init_from.ends_with(".safetensors"); }
  std::string checkpoint() const { return out_dir + "/checkpoint.safetensors"; }
};

Tokenizer read_tokenizer(const Settings& s) {
  const auto path = [](const std::string& given, const char* file, const char* option) {
    const std::string found = given.empty() ? find_data_file(file) : given;
    RUSH_CHECK_IO(!found.empty(), "there is no ", file, " in RUSH_DATA or data/: name GPT-2's with ", option);
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

GPTConfig make_config(const Settings& s, const Tokenizer& tokenizer) {
  GPTConfig config = s.model;
  config.vocab_size = tokenizer.size();
  if (s.has_weights()) config = read_gpt2_config(s.init_from, config);
  RUSH_CHECK_VALUE(config.vocab_size == tokenizer.size(), s.init_from, ": the model has ", config.vocab_size,
                   " tokens, the vocabulary ", tokenizer.size());
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

// Makes the context of a GPU, and the handle of its library for products, in a thread: it takes as long as reading
// data.
std::future<void> wake(rush::Device device) {
  return std::async(device.is_cuda() ? std::launch::async : std::launch::deferred, [device] {
    if (!device.is_cuda()) return;
    const Tensor x = rush::ones({8, 8}, rush::TensorOptions(rush::kBFloat16).device(device));
    rush::mm(x, x);
  });
}

void save_checkpoint(Pretraining& run, const Settings& s) {
  if (!s.out_dir.empty()) run.checkpoint().save(s.checkpoint());
}

// A new run begins with a checkpoint of its own, so that nobody goes on from that of an earlier one.
void begin(Pretraining& run, const Settings& s) {
  if (s.init_from != "resume") return save_checkpoint(run, s);
  RUSH_CHECK_VALUE(!s.out_dir.empty(), "--init_from resume needs the --out_dir of the run");
  if (!std::filesystem::exists(s.checkpoint())) {
    std::printf("no checkpoint %s: starting anew\n", s.checkpoint().c_str());
    return;
  }
  run.checkpoint().load(s.checkpoint());
  std::printf("going on from %s, step %lld\n", s.checkpoint().c_str(), static_cast<long long>(run.iteration()));
}

// Estimates the losses, and keeps the weights if they are the best so far.
void report(Pretraining& run, const Settings& s) {
  if (s.training.eval_iters == 0) return;
  const double train = run.estimate(TextData::Train), validation = run.estimate(TextData::Validation);
  std::printf("step %lld: train loss %.4f, val loss %.4f\n", static_cast<long long>(run.iteration()), train,
              validation);
  if (!(validation < run.best_loss())) return;
  run.best_loss() = validation;
  if (!s.out_dir.empty()) save_gpt2_weights(run.model(), s.out_dir);
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

void train(Pretraining& run, const Settings& s) {
  std::printf("%lld tokens to train on, %lld to validate; %.2f million parameters; %lld tokens in a step\n",
              static_cast<long long>(run.data().size(TextData::Train)),
              static_cast<long long>(run.data().size(TextData::Validation)),
              static_cast<double>(run.model().parameter_count()) / 1e6, static_cast<long long>(run.tokens_in_step()));
  const double peak_flops = s.peak_flops > 0 ? s.peak_flops : known_peak_flops(run.device());
  const int64_t first = run.iteration();
  while (run.iteration() < s.training.max_iters) {
    if (run.iteration() % s.eval_interval == 0) report(run, s);
    print_step(run, run.step(), peak_flops);
    if (run.iteration() == first + 1) std::printf("the first step was done %.2f s after the start\n", process_age());
    if (run.iteration() % s.checkpoint_interval == 0 || run.iteration() == s.training.max_iters)
      save_checkpoint(run, s);
  }
  report(run, s);
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
std::future<void> plan_attention(const Settings& s, const GPTConfig& config, rush::Device device) {
  const bool has_plans = device.is_cuda() && s.training.max_iters > 0 && s.training.dtype != "float32";
  return std::async(has_plans ? std::launch::async : std::launch::deferred, [=, options = s.training] {
    if (!has_plans) return;
    const rush::ScalarType dtype = options.dtype == "float16" ? rush::kFloat16 : rush::kBFloat16;
    const Tensor packed = rush::empty({options.batch_size, config.block_size, 3 * config.n_embd},
                                      rush::TensorOptions(dtype).device(device).requires_grad(true));
    std::vector<Tensor> parts = packed.split(config.n_embd, 2);
    for (Tensor& part : parts) {
      part = part.view({options.batch_size, config.block_size, config.n_head, -1}).transpose(1, 2);
    }
    rush::fused_sdp_choice(parts[0], parts[1], parts[2], {}, config.dropout, /*is_causal=*/true);
  });
}

// What takes long before the first step happens side by side.
void run(Settings settings) {
  const rush::Device device(settings.device);
  settings.training.device = device;
  std::future<void> awake = wake(device);
  const Tokenizer tokenizer = read_tokenizer(settings);
  const GPTConfig config = make_config(settings, tokenizer);
  std::future<TextData> data;
  if (settings.training.max_iters > 0) {
    const std::string path = find_text(settings.data);
    std::printf("training on %s\n", path.empty() ? "the project's own texts" : path.c_str());
    data =
        std::async(std::launch::async, [&, path] { return tokenize(read_text(path), tokenizer, config.block_size); });
  }
  awake.get();
  std::future<void> planned = plan_attention(settings, config, device);
  rush::manual_seed(static_cast<uint64_t>(settings.training.seed));
  GPT model = make_model(settings, config, device);
  if (data.valid()) {
    if (!settings.out_dir.empty()) std::filesystem::create_directories(settings.out_dir);
    Pretraining run(model, data.get(), settings.training);
    begin(run, settings);
    planned.get();
    train(run, settings);
  }
  if (settings.max_new_tokens > 0) std::printf("----\n%s\n----\n", write(*model, tokenizer, settings).c_str());
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("gpt2", [&] { examples::run(settings); });
}
