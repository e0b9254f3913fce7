// A transformer that learns to write a sequence backwards: encoder and decoder, positions, causal and padding masks,
// and greedy decoding.
#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <limits>

using torch::Tensor;
namespace F = torch::nn::functional;

class PositionalEncodingImpl : public torch::nn::Module {
 public:
  PositionalEncodingImpl(int64_t d_model, double dropout_p, int64_t max_len = 16) : dropout(dropout_p) {
    register_module("dropout", dropout);
    Tensor position = torch::arange(0, max_len, torch::kFloat).unsqueeze(1);
    Tensor div_term = torch::exp(torch::arange(0, d_model, 2) * (-std::log(10000.0) / static_cast<double>(d_model)));
    pe = torch::zeros({max_len, 1, d_model});
    using torch::indexing::None;
    using torch::indexing::Slice;
    pe.index_put_({Slice(), 0, Slice(0, None, 2)}, torch::sin(position * div_term));
    pe.index_put_({Slice(), 0, Slice(1, None, 2)}, torch::cos(position * div_term));
    pe = register_buffer("pe", pe);
  }
  Tensor forward(Tensor x) { return dropout(x + pe.slice(0, 0, x.size(0))); }

  torch::nn::Dropout dropout;
  Tensor pe;
};
TORCH_MODULE(PositionalEncoding);

class TranslatorImpl : public torch::nn::Module {
 public:
  TranslatorImpl(int64_t vocab, int64_t d_model)
      : width(d_model),
        embed(vocab, d_model),
        position(d_model, 0.1),
        transformer(torch::nn::TransformerOptions(d_model, 2)
                        .num_encoder_layers(2)
                        .num_decoder_layers(1)
                        .dim_feedforward(24)
                        .dropout(0.1)
                        .activation(torch::kGELU)),
        generator(d_model, vocab) {
    register_module("embed", embed);
    register_module("position", position);
    register_module("transformer", transformer);
    register_module("generator", generator);
    for (auto& p : parameters()) {
      if (p.dim() > 1) torch::nn::init::xavier_uniform_(p);
    }
  }
  Tensor embedded(const Tensor& tokens) { return position(embed(tokens) * std::sqrt(static_cast<double>(width))); }
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_padding) {
    auto mask = torch::nn::TransformerImpl::generate_square_subsequent_mask(tgt.size(0));
    auto out = transformer->forward(embedded(src), embedded(tgt), /*src_mask=*/{}, /*tgt_mask=*/mask, {}, src_padding,
                                    {}, src_padding);
    return generator(out);
  }
  Tensor encode(const Tensor& src, const Tensor& src_padding) {
    return transformer->encoder.forward(embedded(src), Tensor(), src_padding);
  }
  Tensor decode(const Tensor& tgt, const Tensor& memory, const Tensor& src_padding) {
    auto mask = transformer->generate_square_subsequent_mask(tgt.size(0));
    return generator(transformer->decoder.forward(embedded(tgt), memory, mask, Tensor(), Tensor(), src_padding));
  }

  int64_t width;
  torch::nn::Embedding embed;
  PositionalEncoding position;
  torch::nn::Transformer transformer;
  torch::nn::Linear generator;
};
TORCH_MODULE(Translator);

constexpr int64_t kPad = 0, kBegin = 1, kVocab = 9, kLength = 6;

// (source, target) of shape (T, N); the last two words of every other source are padding.
static std::pair<Tensor, Tensor> make_batch(int64_t n) {
  auto source = torch::randint(2, kVocab, {kLength, n}, torch::kLong);
  auto target = torch::cat({torch::full({1, n}, kBegin, torch::kLong), source.flip(0)});
  source.index_put_(
      {torch::indexing::Slice(-2, torch::indexing::None), torch::indexing::Slice(0, torch::indexing::None, 2)}, kPad);
  return {source, target};
}

int main() {
  torch::manual_seed(2);
  Translator model(kVocab, 16);
  std::cout << model->transformer << "\n";
  std::cout << torch::nn::TransformerImpl::generate_square_subsequent_mask(3) << "\n";
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3).betas({0.9, 0.98}).eps(1e-9));
  for (int step = 1; step <= 8; ++step) {
    auto [source, target] = make_batch(4);
    auto logits = model(source, target.slice(0, 0, -1), (source == kPad).transpose(0, 1));
    auto loss = F::cross_entropy(logits.reshape({-1, logits.size(-1)}), target.slice(0, 1).reshape({-1}),
                                 F::CrossEntropyFuncOptions().ignore_index(kPad));
    optimizer.zero_grad();
    loss.backward();
    double norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    std::printf("%d %.3f %.2f\n", step, loss.item<double>(), norm);
  }

  model->eval();
  torch::NoGradGuard no_grad;
  auto [source, target] = make_batch(2);
  auto padding = source.eq(kPad).t();
  auto memory = model->encode(source, padding);
  auto written = torch::full({1, 2}, kBegin, torch::kLong);
  for (int i = 0; i < 4; ++i) {
    auto next = model->decode(written, memory, padding)[-1].argmax(-1);
    written = torch::cat({written, next.unsqueeze(0)});
  }
  std::cout << memory.sizes() << written << "\n";
  auto full = model(source, written, padding);
  auto step = model->decode(written, memory, padding);
  std::cout << torch::allclose(full, step, 1e-4, 1e-5) << "\n";

  // Rows that may look at nothing at all.
  torch::nn::MultiheadAttention attention(torch::nn::MultiheadAttentionOptions(4, 2));
  auto x = torch::randn({3, 1, 4});
  auto blocked = torch::ones({1, 3}, torch::kBool);
  auto [output, weights] = attention(x, x, x, blocked);
  std::cout << output.isnan().all().item<bool>() << weights.isnan().all().item<bool>() << "\n";
  return 0;
}
