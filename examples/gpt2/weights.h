// GPT-2's weights in the files of Hugging Face's transformers: https://huggingface.co/openai-community/gpt2.
#pragma once

#include <string>

#include "examples/gpt/gpt.h"

namespace examples {

// Note [GPT-2's weights in files]
// A file `model.safetensors` holds GPT-2's parameters under the names that they have here, with or without
// "transformer." before them, except that
// - the matrices of a block are stored (in, out), the transpose of Linear's;
// - there is no padding of the vocabulary;
// - the head, being the token embedding again, is left out, or stands there as "lm_head.weight";
// - older files also hold the causal masks, "h.0.attn.bias" and "h.0.attn.masked_bias".

/// The sizes of the model that the file is of. What is not in the file, n_head, dropout and vocab_padding, stays that
/// of `given`. Throws rush::IOError if the file cannot be read, and rush::ValueError, one line that starts with `path`,
/// if it is not of a GPT-2.
GPTConfig read_gpt2_config(const std::string& path, GPTConfig given);

/// Sets the parameters of `model`, on whatever device. Throws as read_gpt2_config does, also where the shapes are of
/// other sizes than the model's; it is unchanged then.
void load_gpt2_weights(GPTImpl& model, const std::string& path);

/// Writes `folder`/model.safetensors and config.json, which GPT2LMHeadModel.from_pretrained(folder) reads. Throws
/// rush::IOError.
void save_gpt2_weights(const GPTImpl& model, const std::string& folder);

}  // namespace examples
