// Inference mode: which tensors are made in it, and what may be done with them outside. After the note "Inference Mode"
// of PyTorch's C++ documentation.
#include "show.h"

static void show(const char* name, bool value) { std::printf("%s: %d\n", name, value); }

template <class Fn>
static void attempt(const char* name, const Fn& fn) {
  try {
    fn();
    std::printf("%s: done\n", name);
  } catch (const c10::Error& error) {
    const std::string message = error.what();
    std::printf("%s: refused, it %s \"nference tensor\"\n", name,
                message.find("nference tensor") == std::string::npos ? "lacks" : "says");
  }
}

int main() {
  torch::Tensor normal = torch::ones({2}, torch::requires_grad());
  torch::Tensor made, view;
  {
    c10::InferenceMode guard;
    show("enabled", c10::InferenceMode::is_enabled());
    made = torch::ones({3});
    show("made is inference", made.is_inference());
    show("result is inference", (normal * 2).is_inference());
    show("result requires grad", (normal * 2).requires_grad());
    view = normal.view({2, 1});
    show("view is inference", view.is_inference());
    made.add_(1);
    {
      c10::InferenceMode off(false);
      show("inner", c10::InferenceMode::is_enabled());
      show("made inside is inference", torch::ones({1}).is_inference());
    }
    show("grad mode", torch::GradMode::is_enabled());
  }
  show("enabled", c10::InferenceMode::is_enabled());
  show("grad mode", torch::GradMode::is_enabled());
  show("made", made);

  torch::Tensor weight = torch::ones({3}, torch::requires_grad());
  attempt("sum of both", [&] { (weight + made).sum().backward(); });
  show("gradient", weight.grad());
  attempt("product saves it", [&] { (weight * made).sum(); });
  attempt("product of a clone", [&] { (weight * made.clone()).sum().backward(); });
  attempt("requires_grad_", [&] { made.requires_grad_(); });
  attempt("in place outside", [&] { made.add_(1); });
  show("clone is inference", made.clone().is_inference());
}
