// What goes wrong, and what the errors say: c10::Error and its kinds, TORCH_CHECK, and warnings.
#include <torch/torch.h>

#include <iostream>

template <class Fn>
static void expect(const char* what, std::initializer_list<const char*> phrases, Fn fn) {
  try {
    fn();
    std::cout << what << ": nothing thrown\n";
  } catch (const c10::Error& e) {
    const std::string text = e.what();
    std::cout << what << ":";
    for (const char* phrase : phrases)
      std::cout << " \"" << phrase << "\" " << (text.find(phrase) != std::string::npos);
    std::cout << "\n";
  } catch (const std::exception& e) {
    std::cout << what << ": " << typeid(e).name() << "\n";
  }
}

static void check_size(const torch::Tensor& t, int64_t n) {
  TORCH_CHECK(t.size(0) == n, "expected ", n, " rows, got ", t.size(0), " of type ", t.scalar_type());
}

int main() {
  auto a = torch::ones({2, 3}), b = torch::ones({4, 5});
  expect("mm", {}, [&] { a.mm(b); });
  expect("add", {}, [&] { a + b; });
  expect("view", {}, [&] { a.view({5}); });
  expect("view of a transpose", {"reshape"}, [&] { a.t().view({6}); });
  expect("cat", {}, [&] { torch::cat({a, b}); });
  expect("index", {"out of range"}, [&] { a[5]; });
  expect("select", {"out of range"}, [&] { a.select(3, 0); });
  expect("dimension", {"Dimension out of range", "expected to be in range of [-2, 1]"}, [&] { a.sum(2); });
  expect("size", {"Dimension out of range"}, [&] { a.size(7); });
  expect("item", {}, [&] { a.item<float>(); });
  expect("backward of many", {"grad can be implicitly created only for scalar outputs"},
         [&] { (a.requires_grad_() * 2).backward(); });
  expect("backward of a constant", {"does not require grad", "does not have a grad_fn"}, [&] { b.sum().backward(); });
  expect("twice", {"backward through the graph a second time"}, [&] {
    auto loss = a.detach().requires_grad_().square().sum();
    loss.backward();
    loss.backward();
  });
  expect("a leaf in place", {"a leaf Variable that requires grad", "in-place operation"}, [&] { a.add_(1); });
  expect("whole numbers", {"Only Tensors of floating point", "require gradients"},
         [&] { torch::ones({2}, torch::kLong).requires_grad_(); });
  expect("written since", {"modified by an inplace operation"}, [&] {
    auto x = torch::ones({2}, torch::requires_grad()).clone();
    auto y = x.exp();
    y.add_(1);
    y.sum().backward();
  });
  expect("unused", {"appears to not have been used in the graph"}, [&] {
    auto x = torch::ones({1}, torch::requires_grad()), y = torch::ones({1}, torch::requires_grad());
    torch::autograd::grad({x * 2}, {y});
  });
  expect("result type", {}, [&] { torch::ones({2}, torch::kLong).add_(0.5); });
  expect("dtypes", {}, [&] { a.detach().mm(torch::ones({3, 2}, torch::kDouble)); });
  expect("expand", {}, [&] { b.expand({4, 6}); });
  expect("squeeze", {"Dimension out of range"}, [&] { b.squeeze(5); });
  expect("permute", {}, [&] { b.permute({0}); });
  expect("negative size", {}, [&] { torch::zeros({-1}); });
  expect("reshape", {}, [&] { b.reshape({-1, -1}); });
  expect("conv", {}, [&] { torch::nn::Conv2d(1, 1, 1)(torch::ones({2, 2})); });
  expect("channels", {}, [&] { torch::nn::Conv2d(3, 1, 1)(torch::ones({1, 2, 4, 4})); });
  expect("linear", {}, [&] { torch::nn::Linear(3, 1)(torch::ones({2, 4})); });
  expect("embedding", {}, [&] { torch::nn::Embedding(3, 1)(torch::tensor({3})); });
  expect("undefined", {"undefined"}, [&] { torch::Tensor().sum(); });
  expect("probability", {}, [&] { torch::nn::Dropout(1.5)(b); });
  expect("batch norm", {}, [&] { torch::nn::BatchNorm1d(2)(torch::ones({1, 2})); });
  expect("einsum", {"einsum"}, [&] { torch::einsum("ij,jk", {b, b}); });
  expect("masked_select", {}, [&] { b.masked_select(torch::ones({3}, torch::kBool)); });
  expect("scatter", {"index"}, [&] { torch::zeros({2}).scatter_(0, torch::tensor({4}), torch::ones({1})); });
  expect("own check", {"expected 3 rows, got 4 of type Float"}, [&] { check_size(b, 3); });
  expect("a kind", {"too large"}, [&] { TORCH_CHECK_INDEX(false, "too large: ", 7); });
  expect("not implemented", {"later"}, [&] { TORCH_CHECK_NOT_IMPLEMENTED(false, "later"); });

  try {
    TORCH_CHECK_VALUE(1 > 2, "one is ", 1);
  } catch (const c10::ValueError& e) {
    std::cout << e.what_without_backtrace() << " " << e.msg() << "\n";
  }
  try {
    try {
      TORCH_CHECK(false, "inner");
    } catch (c10::Error& e) {
      e.add_context("while testing");
      throw;
    }
  } catch (const c10::Error& e) {
    std::cout << e.msg() << " " << e.context().size() << e.context()[0] << "\n";
  }
  struct Counter : c10::WarningHandler {
    void process(const c10::Warning& warning) override {
      ++count;
      last = warning.msg();
    }
    int count = 0;
    std::string last;
  } counter;
  {
    c10::WarningUtils::WarningHandlerGuard guard(&counter);
    TORCH_WARN("mind the ", "step ", 3);
    for (int i = 0; i < 3; ++i) TORCH_WARN_ONCE("only once");
  }
  std::cout << counter.count << " " << counter.last << "\n";
  return 0;
}
