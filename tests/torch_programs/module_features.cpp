// torch::nn::Module from the inside: names, buffers, clones, conversions, functions applied to all of it, and its
// errors.
#include <torch/torch.h>

#include <iostream>

struct BlockImpl : torch::nn::Cloneable<BlockImpl> {
  BlockImpl(int64_t in, int64_t out) : in(in), out(out) { reset(); }
  void reset() override {
    linear = register_module("linear", torch::nn::Linear(in, out));
    norm = register_module("norm", torch::nn::BatchNorm1d(out));
    gain = register_parameter("gain", torch::full({out}, 0.5));
    frozen = register_parameter("frozen", torch::ones({1}), /*requires_grad=*/false);
    count = register_buffer("count", torch::zeros({}, torch::kLong));
  }
  torch::Tensor forward(torch::Tensor x) {
    ++calls;
    count += 1;
    return norm(linear(x)) * gain;
  }
  void pretty_print(std::ostream& stream) const override { stream << "Block(" << in << " -> " << out << ")"; }
  int64_t in, out;
  int calls = 0;
  torch::nn::Linear linear{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor gain, frozen, count;
};
TORCH_MODULE(Block);

struct Net : torch::nn::Module {
  Net() : torch::nn::Module("TheNet") {
    first = register_module("first", Block(3, 4));
    second = register_module("second", Block(4, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return second(torch::relu(first(x))); }
  Block first{nullptr}, second{nullptr};
};

template <class Fn>
static void attempt(const char* what, const char* phrase, Fn fn) {
  try {
    fn();
    std::cout << what << ": nothing thrown\n";
  } catch (const c10::Error& e) {
    std::cout << what << ": " << (std::string(e.what()).find(phrase) != std::string::npos ? "as expected" : e.what())
              << "\n";
  }
}

int main() {
  torch::manual_seed(9);
  auto net = std::make_shared<Net>();
  std::cout << *net << "\n"
            << net->name() << " " << net->first->name() << " " << torch::nn::Linear(1, 1)->name() << "\n";
  for (const auto& p : net->named_parameters()) {
    std::cout << p.key() << " " << p.value().sizes() << p->requires_grad() << p->is_leaf() << "\n";
  }
  for (const auto& b : net->named_buffers()) std::cout << b.key() << " " << b.value().sizes() << b->dtype() << "\n";
  for (const auto& m : net->named_modules("root")) std::cout << m.key() << ": " << m.value()->name() << "\n";
  for (const auto& c : net->named_children()) std::cout << c.key() << " ";
  std::cout << net->named_parameters(/*recurse=*/false).size() << net->children().size() << net->modules().size()
            << net->modules(/*include_self=*/false).size() << net->parameters().size() << net->buffers().size() << "\n";
  std::cout << net->named_parameters().keys() << "\n";

  net->train();
  auto out = net->forward(torch::randn({5, 3}));
  out.pow(2).sum().backward();
  std::cout << net->first->count.item<int64_t>() << net->first->calls << net->is_training() << "\n";
  net->eval();
  std::cout << net->second->norm->is_training() << net->second->linear->weight.grad().defined() << "\n";
  net->zero_grad();
  std::cout << net->second->linear->weight.grad().defined() << "\n";

  auto copy = std::dynamic_pointer_cast<BlockImpl>(net->first->clone());
  std::cout << copy->calls << copy->is_training() << torch::equal(copy->linear->weight, net->first->linear->weight)
            << copy->linear->weight.is_same(net->first->linear->weight) << copy->count.item<int64_t>() << "\n";
  {
    torch::NoGradGuard guard;
    copy->linear->weight.zero_();
    copy->parameters()[0].add_(3);
  }
  std::cout << torch::equal(copy->linear->weight, net->first->linear->weight) << copy->gain.mean().item<float>()
            << copy->named_parameters()["gain"].mean().item<float>() << "\n";

  net->to(torch::kDouble);
  std::cout << net->first->gain.dtype() << net->first->norm->running_mean.dtype() << net->first->linear->bias.options()
            << "\n";
  net->to(torch::Device("cpu"), torch::kFloat, /*non_blocking=*/false);
  std::cout << net->first->gain.dtype() << "\n";
  net->apply([](torch::nn::Module& m) { std::cout << m.name().substr(0, 9) << (m.as<BlockImpl>() != nullptr) << " "; });
  net->apply(
      [](const std::string& name, torch::nn::Module& m) {
        if (auto* linear = m.as<torch::nn::Linear>()) {
          torch::NoGradGuard guard;
          torch::nn::init::constant_(linear->weight, 0.25);
          torch::nn::init::zeros_(linear->bias);
          std::cout << "[" << name << "]";
        }
      },
      "net");
  net->apply([](const std::shared_ptr<torch::nn::Module>& m) { std::cout << m->children().size(); });
  std::cout << "\n" << net->forward(torch::ones({1, 3})) << "\n";

  attempt("same name", "already", [&] { net->register_module("first", torch::nn::ReLU()); });
  attempt("dot in a name", "must not contain a dot", [&] { net->register_parameter("a.b", torch::ones({1})); });
  attempt("empty name", "must not be empty", [&] { net->register_buffer("", torch::ones({1})); });
  attempt("unknown module", "is registered", [&] { net->unregister_module("third"); });
  attempt("not cloneable", "clone() has not been implemented", [&] { net->clone(); });
  attempt("no such key", "is not defined", [&] { net->named_parameters()["missing"]; });
  attempt("integers", "floating", [&] { net->register_parameter("whole", torch::ones({1}, torch::kInt)); });
  attempt("not yet made", "empty", [&] {
    Block empty{nullptr};
    empty->zero_grad();
  });
  net->replace_module("second", torch::nn::Identity());
  net->unregister_module("first");
  std::cout << net->children().size() << net->named_children().contains("second") << "\n" << *net << "\n";
  return 0;
}
