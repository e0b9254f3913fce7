// GPT-2's weights in Hugging Face's files, and logits against PyTorch's.
#include "examples/gpt2/weights.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using examples::GPT;
using examples::GPTConfig;
using rush::testing::TemporaryFolder;

// The file that the fixture describes: the values follow from their place, as in make_gpt2_weights_fixtures.py.
io::NamedTensors stored_tensors(const nlohmann::ordered_json& fixture, const std::string& prefix = "") {
  io::NamedTensors tensors;
  int index = 0;
  for (const auto& [name, shape] : fixture["tensors"].items()) {
    const Tensor value = empty(shape.get<std::vector<int64_t>>(), kFloat32);
    const bool scale = name.find("ln_") != name.npos && name.ends_with("weight");
    for (int64_t k = 0; k < value.numel(); ++k) {
      value.data_ptr<float>()[k] =
          static_cast<float>(std::sin(1 + index + 0.37 * static_cast<double>(k)) / 2 + (scale ? 1 : 0));
    }
    tensors.emplace_back(prefix + name, value);
    ++index;
  }
  return tensors;
}

nlohmann::ordered_json fixture_in_order() {
  const char* root = std::getenv("RUSH_ROOT");
  std::ifstream file(std::string(root ? root : ".") + "/tests/examples/gpt2_weights.json");
  return nlohmann::ordered_json::parse(file);
}

GPT loaded(const std::string& path, int64_t padding) {
  GPTConfig given;
  given.n_head = 2;
  given.vocab_padding = padding;
  GPT model(read_gpt2_config(path, given));
  load_gpt2_weights(*model, path);
  model->eval();
  return model;
}

TEST_CASE("weights of Hugging Face's give PyTorch's logits, padded or not") {
  const auto fixture = fixture_in_order();
  const TemporaryFolder folder;
  const std::string plain = folder / "model.safetensors", prefixed = folder / "prefixed.safetensors";
  io::save_safetensors(plain, stored_tensors(fixture));
  auto more = stored_tensors(fixture, "transformer.");
  more.emplace_back("lm_head.weight", more[0].second);
  more.emplace_back("transformer.h.0.attn.bias", ones({1, 1, 12, 12}));
  more.emplace_back("transformer.h.0.attn.masked_bias", zeros({}));
  io::save_safetensors(prefixed, more);

  const auto numbers = fixture["tokens"].get<std::vector<int64_t>>();
  const Tensor tokens = tensor(ArrayRef<int64_t>(numbers)).view({1, -1});
  const Tensor targets = tokens.roll(-1, 1);
  for (const std::string& path : {plain, prefixed}) {
    for (const int64_t padding : {0, 3}) {
      CAPTURE(path);
      CAPTURE(padding);
      GPT model = loaded(path, padding);
      CHECK(model->config().n_layer == 2);
      CHECK(model->config().vocab_size == 29);
      CHECK(model->config().block_size == 12);
      const Tensor logits = model->forward(tokens)[0];
      REQUIRE(logits.size(1) == 29 + padding);
      double largest = 0;
      for (int64_t t = 0; t < tokens.size(1); ++t) {
        for (int64_t v = 0; v < 29; ++v) {
          const double expected = fixture["logits"][static_cast<size_t>(t)][static_cast<size_t>(v)];
          largest = std::max(largest, std::abs(logits[t][v].item<double>() - expected));
        }
      }
      CHECK(largest < 1e-5);
      CHECK(model->loss(tokens, targets).item<double>() ==
            doctest::Approx(fixture["loss"].get<double>()).epsilon(1e-6));
    }
  }
}

TEST_CASE("padding of the vocabulary is neither learned nor written") {
  manual_seed(3);
  GPT model(GPTConfig{/*vocab_size=*/11, /*block_size=*/8, /*n_layer=*/1, /*n_head=*/2, /*n_embd=*/8, /*dropout=*/0,
                      /*vocab_padding=*/5});
  const Tensor tokens = randint(0, 11, {2, 8}, kInt64);
  model->loss(tokens, tokens).backward();
  const Tensor weight = model->named_parameters()["wte.weight"];
  CHECK(weight.narrow(0, 11, 5).abs().sum().item<double>() == 0);
  CHECK(weight.grad().narrow(0, 11, 5).abs().sum().item<double>() == 0);
  CHECK(weight.grad().narrow(0, 0, 11).abs().sum().item<double>() > 0);
  const Tensor written = model->generate(tokens.narrow(1, 0, 1), 60, /*temperature=*/100, /*top_k=*/1000);
  CHECK(written.max().item<int64_t>() < 11);
}

TEST_CASE("weights that are saved and loaded are the same, bit by bit") {
  const auto fixture = fixture_in_order();
  const TemporaryFolder folder;
  const std::string original = folder / "original.safetensors";
  io::save_safetensors(original, stored_tensors(fixture));
  save_gpt2_weights(*loaded(original, 3), folder.path());
  const auto before = io::load_safetensors(original), after = io::load_safetensors(folder / "model.safetensors");
  REQUIRE(before.size() == after.size());
  for (const auto& [name, value] : before) {
    CAPTURE(name);
    const io::SafetensorsFile file(folder / "model.safetensors");
    const auto* entry = file.find(name);
    REQUIRE(entry);
    REQUIRE(entry->shape == std::vector<int64_t>(value.sizes().begin(), value.sizes().end()));
    CHECK((file.read(*entry) - value).abs().max().item<double>() == 0);
  }
  const auto config = nlohmann::json::parse(rush::testing::file_content(folder / "config.json"));
  CHECK(config["n_head"] == 2);
  CHECK(config["vocab_size"] == 29);
}

TEST_CASE("files that do not hold the model's weights are refused, and change nothing") {
  const auto fixture = fixture_in_order();
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const auto tensors = stored_tensors(fixture);
  io::save_safetensors(path, tensors);
  GPT model = loaded(path, 0);
  const Tensor before = model->named_parameters()["h.0.attn.c_attn.weight"].clone();

  const auto refuses = [&](const io::NamedTensors& changed, const std::string& message) {
    CAPTURE(message);
    io::save_safetensors(path, changed);
    try {
      load_gpt2_weights(*model, path);
      FAIL_CHECK("accepted");
    } catch (const ValueError& error) {
      const std::string what = error.what();
      CHECK(what.starts_with(path));
      CHECK(what.find(message) != what.npos);
      CHECK(what.find('\n') == what.npos);
    }
    CHECK((model->named_parameters()["h.0.attn.c_attn.weight"] - before).abs().sum().item<double>() == 0);
  };
  auto changed = tensors;
  changed.pop_back();
  refuses(changed, "there is no tensor ln_f.bias");
  changed = tensors;
  changed.emplace_back("h.2.ln_1.weight", zeros(16));
  refuses(changed, "h.2.ln_1.weight is none of the model's");
  changed = tensors;
  changed[4].second = changed[4].second.t().contiguous();
  refuses(changed, "h.0.attn.c_attn.weight has shape");
  changed = tensors;
  changed[2].second = changed[2].second.to(kInt64);
  refuses(changed, "h.0.ln_1.weight has dtype int64");

  CHECK_THROWS_AS(examples::read_gpt2_config(folder / "missing.safetensors", {}), IOError);
  io::save_safetensors(path, {{"some.weight", zeros({2, 2})}});
  CHECK_THROWS_AS(examples::read_gpt2_config(path, {}), ValueError);
  io::save_safetensors(path, tensors);
  const std::string whole = rush::testing::file_content(path);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    folder.write("model.safetensors", std::string_view(whole).substr(0, size));
    CHECK_THROWS_AS(examples::read_gpt2_config(path, {}), IOError);
    CHECK_THROWS_AS(load_gpt2_weights(*model, path), IOError);
  }
  CHECK((model->named_parameters()["h.0.attn.c_attn.weight"] - before).abs().sum().item<double>() == 0);
}

}  // namespace
