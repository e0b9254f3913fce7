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
  expect("mm", {"mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"}, [&] { a.mm(b); });
  expect("add", {"The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 1"},
         [&] { a + b; });
  expect("view", {"shape '[5]' is invalid for input of size 6"}, [&] { a.view({5}); });
  expect("view of a transpose", {"view size is not compatible with input tensor's size and stride", "reshape"},
         [&] { a.t().view({6}); });
  expect("cat", {"Sizes of tensors must match except in dimension 0", "but got size 5 for tensor number 1 in the list"},
         [&] {
           torch::cat({a, b});
         });
  expect("index", {"index 5 out of range for tensor of size [2, 3] at dimension 0"}, [&] { a[5]; });
  expect("select", {"out of range"}, [&] { a.select(3, 0); });
  expect("dimension", {"Dimension out of range", "expected to be in range of [-2, 1]"}, [&] { a.sum(2); });
  expect("size", {"Dimension out of range"}, [&] { a.size(7); });
  expect("item", {"a Tensor with 6 elements cannot be converted to Scalar"}, [&] { a.item<float>(); });
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
  expect("result type", {"result type Float can't be cast to the desired output type Long"},
         [&] { torch::ones({2}, torch::kLong).add_(0.5); });
  expect("dtypes", {"expected m1 and m2 to have the same dtype, but got: float"}, [&] {
    a.detach().mm(torch::ones({3, 2}, torch::kDouble));
  });
  expect("expand",
         {"The expanded size of the tensor (6) must match the existing size (5) at non-singleton dimension 1"}, [&] {
           b.expand({4, 6});
         });
  expect("squeeze", {"Dimension out of range"}, [&] { b.squeeze(5); });
  expect("permute",
         {"number of dimensions in the tensor input does not match the length of the desired ordering of dimensions"},
         [&] { b.permute({0}); });
  expect("negative size", {"must be non-negative"}, [&] { torch::zeros({-1}); });
  expect("reshape", {"only one dimension can be inferred"}, [&] { b.reshape({-1, -1}); });
  expect("conv", {"Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 2]"}, [&] {
    torch::nn::Conv2d(1, 1, 1)(torch::ones({2, 2}));
  });
  expect("channels",
         {"Given groups=1, weight of size [1, 3, 1, 1], expected input[1, 2, 4, 4] to have 3 channels, but got 2 "
          "channels instead"},
         [&] {
           torch::nn::Conv2d(3, 1, 1)(torch::ones({1, 2, 4, 4}));
         });
  expect("linear", {"mat1 and mat2 shapes cannot be multiplied (2x4 and 3x1)"}, [&] {
    torch::nn::Linear(3, 1)(torch::ones({2, 4}));
  });
  expect("embedding", {"index out of range in self"}, [&] { torch::nn::Embedding(3, 1)(torch::tensor({3})); });
  expect("undefined", {"Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 'self'"},
         [&] { torch::Tensor().sum(); });
  expect("probability", {"dropout probability has to be between 0 and 1, but got 1.5"},
         [&] { torch::nn::Dropout(1.5)(b); });
  expect("batch norm", {"Expected more than 1 value per channel when training, got input size [1, 2]"}, [&] {
    torch::nn::BatchNorm1d(2)(torch::ones({1, 2}));
  });
  expect("einsum", {"einsum", "subscript j has size 4", "which does not broadcast with previously seen size 5"}, [&] {
    torch::einsum("ij,jk", {b, b});
  });
  expect("masked_select", {"The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 1"},
         [&] { b.masked_select(torch::ones({3}, torch::kBool)); });
  expect("scatter", {"index 4 is out of bounds for dimension 0 with size 2"},
         [&] { torch::zeros({2}).scatter_(0, torch::tensor({4}), torch::ones({1})); });
  expect("dimensions of cat", {"Tensors must have same number of dimensions: got 2 and 1"}, [&] {
    torch::cat({a, torch::ones({2})});
  });
  expect("stack", {"stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [4, 5] at entry 1"}, [&] {
    torch::stack({a, b});
  });
  expect("in place", {"output with shape [3] doesn't match the broadcast shape [2, 3]"}, [&] {
    torch::ones({3}).add_(torch::ones({2, 3}));
  });
  expect("matrix and vector", {"mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)"}, [&] {
    torch::addmm(torch::ones({2}), torch::ones({2, 3}), torch::ones({4, 2}));
  });
  expect("addend", {"The expanded size of the tensor (2) must match the existing size (3)"}, [&] {
    torch::addmm(torch::ones({3}), torch::ones({2, 3}), torch::ones({3, 2}));
  });
  expect("batches", {"Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 4]"}, [&] {
    torch::ones({2, 3, 3}).bmm(torch::ones({2, 4, 3}));
  });
  expect("bmm", {"batch1 must be a 3D tensor"}, [&] { a.detach().bmm(a.detach()); });
  expect("t", {"t() expects a tensor with <= 2 dimensions, but self is 3D"}, [&] { torch::ones({2, 3, 4}).t(); });
  expect("kernel size", {"Kernel size can't be greater than actual input size"}, [&] {
    torch::nn::Conv2d(3, 1, 7)(torch::ones({1, 3, 4, 4}));
  });
  expect("transposed", {"Given transposed=1, weight of size", "to have 3 channels, but got 2 channels instead"}, [&] {
    torch::nn::ConvTranspose2d(3, 1, 1)(torch::ones({1, 2, 4, 4}));
  });
  expect("pool", {"Output size is too small"}, [&] { torch::nn::MaxPool2d(3)(torch::ones({1, 1, 2, 2})); });
  expect("indices", {"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int"},
         [&] { torch::nn::Embedding(3, 1)(torch::ones({3})); });
  expect("index_select", {"index out of range in self"},
         [&] { torch::zeros({2}).index_select(0, torch::tensor({4})); });
  expect("gather", {"index 4 is out of bounds for dimension 0 with size 2"},
         [&] { torch::zeros({2}).gather(0, torch::tensor({4})); });
  expect("index of floats", {"Expected dtype int32/int64 for index"},
         [&] { torch::zeros({2}).gather(0, torch::tensor({0.f})); });
  expect("mask", {"The shape of the mask [4] at index 0 does not match the shape of the indexed tensor [3] at index 0"},
         [&] { torch::ones({3}).index({torch::ones({4}, torch::kBool)}); });
  expect("many indices", {"too many indices for tensor of dimension 1"}, [&] { torch::ones({3}).index({0, 0}); });
  expect("dimensions of batch norm", {"expected 4D input (got 2D input"}, [&] {
    torch::nn::BatchNorm2d(2)(torch::ones({1, 2}));
  });
  expect("layer norm", {"Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[1, 2]"},
         [&] {
           torch::nn::LayerNorm(torch::nn::LayerNormOptions({4}))(torch::ones({1, 2}));
         });
  expect("class", {"Target 5 is out of bounds"}, [&] {
    torch::nn::functional::cross_entropy(torch::ones({2, 3}), torch::tensor({0, 5}));
  });
  expect("classes", {"Expected input batch_size (2) to match target batch_size (3)"}, [&] {
    torch::nn::functional::cross_entropy(torch::ones({2, 3}), torch::tensor({0, 1, 2}));
  });
  expect("dtype of classes", {"expected scalar type Long but found Float"}, [&] {
    torch::nn::functional::nll_loss(torch::ones({2, 3}), torch::ones({2}));
  });
  expect("probabilities", {"all elements of input should be between 0 and 1"},
         [&] { torch::binary_cross_entropy(torch::ones({2}) * 2, torch::ones({2})); });
  expect("bool", {"Subtraction, the `-` operator, with two bool tensors is not supported"},
         [&] { torch::ones({2}, torch::kBool) - torch::ones({2}, torch::kBool); });
  expect("mean", {"could not infer output dtype"}, [&] { torch::ones({2}, torch::kLong).mean(); });
  expect("chunk", {"chunk expects `chunks` to be greater than 0, got: 0"}, [&] { torch::ones({2}).chunk(0); });
  expect("split", {"split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at dimension 0)"},
         [&] {
           torch::ones({2}).split_with_sizes({1, 2});
         });
  expect("topk", {"selected index k out of range"}, [&] { torch::ones({2}).topk(5); });
  expect("narrow", {"start (2) + length (2) exceeds dimension size (3)"}, [&] { torch::ones({3}).narrow(0, 2, 2); });
  expect("multinomial", {"invalid multinomial distribution"}, [&] { torch::multinomial(torch::zeros({3}), 2); });
  expect("random_", {"random_ expects 'from' to be less than 'to', but got from=5 >= to=5"},
         [&] { torch::randint(5, 5, {2}); });
  expect("lstm", {"input.size(-1) must be equal to input_size. Expected 3, got 5"}, [&] {
    torch::nn::LSTM(3, 4)(torch::ones({2, 3, 5}));
  });
  expect("cell", {"input has inconsistent input_size: got 5 expected 3"}, [&] {
    torch::nn::GRUCell(3, 4)(torch::ones({2, 5}));
  });
  expect("grad", {"element 0 of tensors does not require grad and does not have a grad_fn"},
         [&] { torch::autograd::grad({torch::ones({2})}, {torch::ones({2})}); });
  expect("input of grad", {"element 0 of the input tensors does not require grad"},
         [&] { torch::autograd::grad({a.sum()}, {b}); });
  expect("learning rate", {"Invalid learning rate: -0.1"}, [&] { torch::optim::SGD({torch::ones({2})}, -0.1); });
  expect("beta", {"Invalid beta parameter at index 1: 1.5"}, [&] {
    torch::optim::Adam({torch::ones({2})}, torch::optim::AdamOptions(0.1).betas({0.9, 1.5}));
  });
  expect("non-leaf", {"can't optimize a non-leaf Tensor"},
         [&] { torch::optim::SGD({torch::ones({2}).requires_grad_() * 2}, 0.1); });
  expect("device", {"Expected one of cpu, cuda", "device type at start of device string: foo"},
         [&] { torch::Device("foo"); });
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
