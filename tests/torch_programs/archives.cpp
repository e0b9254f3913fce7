// Archives: a module, an optimiser and values of the program's own in one, through files, streams and memory.
#include "show.h"

#include <sstream>

struct NetImpl : torch::nn::Module {
  NetImpl() : fc(3, 4), norm(4), out(4, 2) {
    register_module("fc", fc);
    register_module("norm", norm);
    register_module("out", out);
    scale = register_parameter("scale", torch::ones({1}));
    steps = register_buffer("steps", torch::zeros({1}, torch::kInt64));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    steps += 1;
    return out(torch::relu(norm(fc(x)))) * scale;
  }
  torch::nn::Linear fc;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear out;
  torch::Tensor scale, steps;
};
TORCH_MODULE(Net);

static double train(Net& net, torch::optim::Optimizer& optimizer, int from, int to) {
  double last = 0;
  for (int i = from; i < to; ++i) {
    optimizer.zero_grad();
    auto loss = net(torch::randn({8, 3})).square().mean();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
  }
  return last;
}

int main(int, char** argv) {
  torch::manual_seed(4);
  Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  show("loss", train(net, optimizer, 0, 5));

  torch::serialize::OutputArchive archive, inner;
  net->save(inner);
  archive.write("net", inner);
  torch::serialize::OutputArchive state;
  optimizer.save(state);
  archive.write("optimizer", state);
  archive.write("epoch", torch::tensor(5));
  archive.write("note", torch::IValue("half way"));
  archive.write("rate", torch::IValue(0.5));
  const std::string file = std::string(argv[0]) + "-archive.pt";
  archive.save_to(file);

  torch::manual_seed(5);
  const double next = train(net, optimizer, 5, 9);
  show("next", next);

  torch::serialize::InputArchive read;
  read.load_from(file);
  std::remove(file.c_str());
  Net other;
  torch::optim::SGD other_optimizer(other->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::serialize::InputArchive part;
  read.read("net", part);
  other->load(part);
  torch::serialize::InputArchive other_state;
  read.read("optimizer", other_state);
  other_optimizer.load(other_state);
  torch::manual_seed(5);
  show("the same", train(other, other_optimizer, 5, 9) - next);
  show("steps", other->steps);

  torch::Tensor epoch;
  read.read("epoch", epoch);
  show("epoch", epoch);
  torch::IValue note, rate;
  read.read("note", note);
  read.read("rate", rate);
  std::printf("%s %.2f\n", note.toStringRef().c_str(), rate.toDouble());
  torch::Tensor missing;
  std::printf("missing: %d\n", read.try_read("missing", missing));
  try {
    read.read("missing", missing);
  } catch (const c10::Error&) {
    std::printf("refused\n");
  }

  // Streams and memory.
  std::ostringstream written;
  torch::save(net->scale, written);
  std::istringstream stream(written.str());
  torch::Tensor scale;
  torch::load(scale, stream);
  show("scale differs", (scale - net->scale).abs().sum().item<double>());
  std::stringstream modules;
  torch::save(net, modules);
  Net third;
  torch::load(third, modules);
  show("weights differ", (third->fc->weight - net->fc->weight).abs().sum().item<double>());
  std::stringstream optimizers;
  torch::save(optimizer, optimizers);
  torch::optim::SGD third_optimizer(third->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::load(third_optimizer, optimizers);
  torch::manual_seed(6);
  const double expected = train(net, optimizer, 0, 3);
  torch::manual_seed(6);
  show("and go on", train(third, third_optimizer, 0, 3) - expected);

  // A value by itself, as Python's torch.load reads it.
  const std::vector<char> bytes = torch::pickle_save(torch::arange(6).view({2, 3}));
  std::cout << bytes[0] << bytes[1] << "\n" << torch::pickle_load(bytes).toTensor() << "\n";
  std::cout << torch::pickle_load(torch::pickle_save(2.5)).toDouble() << "\n";
}
