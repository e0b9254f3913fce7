// Values written through a function and read from memory or through one.
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "../show.h"

int main() {
  torch::nn::Linear net(3, 2);
  fill_parameters(*net);
  std::string bytes;
  const auto append = [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  };
  torch::save(net, append);

  torch::nn::Linear from_memory(3, 2);
  from_memory->to(torch::kFloat64);
  torch::load(from_memory, bytes.data(), bytes.size());
  show("from memory", from_memory->weight);

  const auto read = [&](uint64_t position, void* data, size_t size) -> size_t {
    const size_t part = position < bytes.size() ? std::min(size, bytes.size() - static_cast<size_t>(position)) : 0;
    std::memcpy(data, bytes.data() + position, part);
    return part;
  };
  torch::nn::Linear through_a_function(3, 2);
  through_a_function->to(torch::kFloat64);
  torch::load(through_a_function, read, [&] { return bytes.size(); });
  show("through a function", through_a_function->bias);

  torch::serialize::OutputArchive out;
  out.write("wave", wave({2, 2}, 0.4));
  bytes.clear();
  out.save_to(append);
  torch::serialize::InputArchive in;
  in.load_from(read, [&] { return bytes.size(); });
  torch::Tensor back;
  in.read("wave", back);
  show("archive", back);
  try {
    torch::load(net, bytes.data(), bytes.size() / 2);
    std::cout << "read\n";
  } catch (const c10::Error&) {
    std::cout << "half a file is refused\n";
  }
  return 0;
}
