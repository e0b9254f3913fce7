// What programs get wrong most, a row each, and what the error has to say: the operator, what it got and, where there
// is one, the way out.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <typeinfo>

#include "nn/data/datasets/tensor.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;
namespace F = rush::nn::functional;

namespace {

struct Mistake {
  const char* code;
  void (*make)();
  const std::type_info& type;
  const char* message;  // in its order, with "..." for what may stand between
};

#define WRONG(type, message, ...)                            \
  Mistake {                                                  \
#__VA_ARGS__, [] { __VA_ARGS__; }, typeid(type), message \
  }

Tensor leaf() { return ones({3}).requires_grad_(); }

struct Unregistered : nn::Module {
  Tensor weight = ones({2});
};

const Mistake kShapes[] = {
    WRONG(ValueError, "add: cannot broadcast (2, 3) with (2, 4) ... sizes 3 and 4", ones({2, 3}) + ones({2, 4})),
    WRONG(ValueError, "sub: cannot broadcast (2, 3) with (2, 4)", ones({2, 3}) - ones({2, 4})),
    WRONG(ValueError, "add: argument 'other' (position 2) is an undefined tensor", ones({2}) + Tensor()),
    WRONG(ValueError, "sum: argument 'self' (position 1) is an undefined tensor", Tensor().sum()),
    WRONG(ValueError, "cat: argument 'tensors' (position 1) has an undefined tensor", cat({ones({2}), Tensor()})),
    WRONG(Error, "expected a tensor, got an undefined one", Tensor().sizes()),
    WRONG(ValueError, "matmul: cannot multiply (2, 3) by (4, 5) ... 3 columns against 4 rows",
          ones({2, 3}).matmul(ones({4, 5}))),
    WRONG(ValueError, "mm: expected ... (2, 3) and (3)", ones({2, 3}).mm(ones({3}))),
    WRONG(ValueError, "bmm: batches differ ... (2, 3, 4) and (3, 4, 5)", ones({2, 3, 4}).bmm(ones({3, 4, 5}))),
    WRONG(ValueError, "linear: cannot multiply input (3, 5) ... 5 input features against 4 ... [in Linear]",
          nn::Linear(4, 2)(ones({3, 5}))),
    WRONG(ValueError, "convolution: weight (8, 3, 3, 3) ... expects 3 channels ... (1, 1, 8, 8) has 1 ... [in Conv2d]",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 3))(ones({1, 1, 8, 8}))),
    WRONG(ValueError, "conv2d: expected an input of 3 or 4 dimensions, got shape (8, 8)",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 3))(ones({8, 8}))),
    WRONG(ValueError, "over 5 does not fit an input of 4 ... (1, 3, 4, 4)",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 5))(ones({1, 3, 4, 4}))),
    WRONG(ValueError, "max_pool2d: a window of 3 ... size 2",
          F::max_pool2d(ones({1, 1, 2, 2}), F::MaxPool2dFuncOptions(3))),
    WRONG(ValueError,
          "batch_norm: weight has shape (3), expected (4) for an input of shape (2, 4, 5, 5) ... [in BatchNorm2d]",
          nn::BatchNorm2d(3)(ones({2, 4, 5, 5}))),
    WRONG(ValueError, "BatchNorm2d: expected 4 dimensions, got an input of shape (2, 3)",
          nn::BatchNorm2d(3)(ones({2, 3}))),
    WRONG(ValueError, "batch_norm: training needs more than 1 value per channel ... (1, 3)",
          nn::BatchNorm1d(3)(ones({1, 3}))),
    WRONG(ValueError, "layer_norm: ... (2, 3) ... normalized_shape (4)",
          nn::LayerNorm(nn::LayerNormOptions({4}))(ones({2, 3}))),
    WRONG(IndexError, "embedding: index 10 is out of bounds for dimension 0 of size 10",
          nn::Embedding(10, 2)(full({1}, 10, kInt64))),
    WRONG(TypeError, "embedding: expected integers as indices, got float32", nn::Embedding(10, 2)(ones({3}))),
    WRONG(ValueError, "lstm: expected an input ... size 4 ... (5, 1, 3)", nn::LSTM(4, 8)(ones({5, 1, 3}))),
    WRONG(ValueError, "MultiheadAttention: 10 ... 3 heads", nn::MultiheadAttention(10, 3)),
    WRONG(ValueError, "expected queries of size 8, got shape (5, 1, 6)", nn::MultiheadAttention m(8, 2);
          m(ones({5, 1, 6}), ones({5, 1, 6}), ones({5, 1, 6}))),
    WRONG(ValueError, "view: shape (4, 2) cannot hold 6 elements", ones({2, 3}).view({4, 2})),
    WRONG(ValueError, "view: sizes (3, 2) with strides (1, 3) ... use reshape", ones({2, 3}).t().view({6})),
    WRONG(ValueError, "reshape: only one size can be -1, got (-1, -1)", ones({6}).reshape({-1, -1})),
    WRONG(ValueError, "sizes must not be negative, got (2, -3)", zeros({2, -3})),
    WRONG(ValueError, "cat: tensors must agree in all dimensions but 0 ... (2, 4) ... (2, 3)",
          cat({ones({2, 3}), ones({2, 4})}, 0)),
    WRONG(ValueError, "cat: expected at least one tensor", cat({})),
    WRONG(ValueError, "stack: tensors must have one shape, got (2) and (3)", stack({ones({2}), ones({3})})),
    WRONG(IndexError, "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          ones({2, 3}).sum(2)),
    WRONG(IndexError, "index 5 is out of range for dimension 0 of size 2", ones({2, 3})[5]),
    WRONG(IndexError, "a 0-dimensional tensor has no dimension", ones({})[0]),
    WRONG(ValueError, "permute: got 3 dimensions (0, 1, 2) for a tensor of 2", ones({2, 3}).permute({0, 1, 2})),
    WRONG(ValueError, "expand: cannot expand (2, 3) to (2, 4)", ones({2, 3}).expand({2, 4})),
    WRONG(ValueError, "item: expected one element, the tensor has shape (2) ... reduce it", ones({2}).item<float>()),
    WRONG(ValueError, "t: expected at most 2 dimensions, got sizes (2, 3, 4) ... use transpose", ones({2, 3, 4}).t()),
    WRONG(ValueError, "gather: an index of shape (2) ... (2, 3)", ones({2, 3}).gather(1, zeros({2}, kInt64))),
    WRONG(TypeError, "index_select: expected integers as indices, got float32",
          ones({2, 3}).index_select(0, ones({2}))),
    WRONG(ValueError, "einsum: 'ij,jk->ik': letter 'j' has sizes 3 and 4",
          einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})})),
    WRONG(TypeError, "masked_fill: expected a bool mask, got float32", ones({2}).masked_fill(ones({2}), 0)),
    WRONG(ValueError, "copy_: cannot broadcast (2) with (3)", ones({2}).copy_(ones({3}))),
    WRONG(IndexError, "max: expected dimension 0 to have elements ... (0)", ones({0}).max()),
    WRONG(ValueError, "split: sizes (2, 2) do not cover dimension 0 of size 5", ones({5}).split_with_sizes({2, 2})),
    WRONG(ValueError, "multinomial: expected weights that are finite and not negative, got -1",
          (-ones({3})).multinomial(1)),
};

const Mistake kDtypes[] = {
    WRONG(TypeError, "cross_entropy_loss: expected a target of int64 classes, got int32 ... to(kInt64)",
          F::cross_entropy(ones({2, 3}), zeros({2}, kInt32))),
    WRONG(TypeError, "expected a target of int64 classes, got float32", F::cross_entropy(ones({2, 3}), zeros({2}))),
    WRONG(IndexError, "cross_entropy_loss: target 3 is outside [0, 3)",
          F::cross_entropy(ones({2, 3}), full({2}, 3, kInt64))),
    WRONG(ValueError, "an input of shape (2, 3) needs a target of shape (2) ... got (2, 1)",
          F::cross_entropy(ones({2, 3}), zeros({2, 1}, kInt64))),
    WRONG(ValueError, "needs a target of shape (2) ... got (4)", F::cross_entropy(ones({2, 3}), zeros({4}, kInt64))),
    WRONG(ValueError, "nll_loss: an input of shape (2, 3) needs a target of shape (2) ... got (2, 3)",
          F::nll_loss(ones({2, 3}), zeros({2, 3}, kInt64))),
    WRONG(ValueError, "binary_cross_entropy: expected a target of the input's shape (4, 1), got (4)",
          F::binary_cross_entropy(full({4, 1}, 0.5), ones({4}))),
    WRONG(ValueError, "binary_cross_entropy_with_logits: expected a target of the input's shape (4, 1), got (4)",
          F::binary_cross_entropy_with_logits(ones({4, 1}), ones({4}))),
    WRONG(ValueError, "binary_cross_entropy: inputs must be between 0 and 1, got 3",
          F::binary_cross_entropy(full({2}, 3.0), ones({2}))),
    WRONG(NotImplementedError, "mse_loss: not implemented for int64",
          F::mse_loss(ones({2}, kInt64), ones({2}, kInt64)).backward()),
    WRONG(ValueError, "l1_loss: cannot broadcast (2, 3) with (2, 4)", F::l1_loss(ones({2, 3}), ones({2, 4}))),
    WRONG(TypeError, "ctc_loss: expected targets of int64 or int32, got float32",
          F::ctc_loss(ones({5, 1, 3}), ones({1, 2}), full({1}, 5, kInt64), full({1}, 2, kInt64))),
    WRONG(ValueError, "Dropout: the probability has to be between 0 and 1, got 1.5", nn::Dropout(1.5)),
    WRONG(IndexError, "softmax: Dimension out of range (expected to be in range of [-1, 0], but got 1)",
          F::softmax(ones({3}), 1)),
    WRONG(NotImplementedError, "softmax: expected a floating tensor, got int64", ones({3}, kInt64).softmax(0)),
    WRONG(TypeError, "mean: expected a floating or complex dtype, got int64", ones({3}, kInt64).mean()),
    WRONG(TypeError, "matmul: dtypes differ: float32 and int64", ones({2, 2}).matmul(ones({2, 2}, kInt64))),
    WRONG(TypeError, "linear: dtypes differ: input is float64, a parameter is float32 ... to()",
          nn::Linear(2, 2)(ones({1, 2}, kFloat64))),
    WRONG(TypeError, "add_: the result is float32 ... int64", ones({2}, kInt64).add_(0.5)),
    WRONG(TypeError, "data_ptr: expected scalar type Double but found Float", ones({2}).data_ptr<double>()),
    WRONG(TypeError, "expected scalar type Double but found Float", ones({2}).accessor<double, 1>()),
    WRONG(ValueError, "accessor: TensorAccessor expected 2 dims but tensor has 1", ones({2}).accessor<float, 2>()),
    WRONG(ValueError, "tensor: lists on one level must agree ... (2) ... (1)", tensor({{1.0, 2.0}, {3.0}})),
    WRONG(ValueError, "Device: expected cpu, cuda, meta ... got 'gpu'", Device("gpu")),
    WRONG(ValueError, "add: tensors are on cpu and on meta", ones({2}) + ones({2}, TensorOptions().device(kMeta))),
};

const Mistake kGradients[] = {
    WRONG(Error, "backward: a gradient is needed for an output of shape (3) ... sum()", leaf().mul(2).backward()),
    WRONG(Error, "backward: Trying to backward through the graph a second time ... retain_graph=true",
          const Tensor y = leaf().exp().sum();
          y.backward(); y.backward()),
    WRONG(Error, "backward: a tensor does not require grad and does not have a grad_fn", ones({2}).sum().backward()),
    WRONG(Error, "does not require grad ... NoGradGuard", const NoGradGuard guard; leaf().sum().backward()),
    WRONG(ValueError, "backward: the gradient has shape (2), the output (3)", leaf().mul(2).backward(ones({2}))),
    WRONG(Error, "add_: a leaf Variable that requires grad is being used in an in-place operation ... NoGradGuard",
          leaf().add_(1)),
    WRONG(Error, "add_: a view of a leaf Variable that requires grad ... NoGradGuard", const Tensor x = leaf();
          x[0].add_(1)),
    WRONG(Error,
          "ExpBackward needs has been modified by an inplace operation ... version 1, expected version 0 ... "
          "DetectAnomalyGuard",
          const Tensor y = leaf().exp();
          y.add_(1); y.sum().backward()),
    WRONG(Error,
          "requires_grad_: Only Tensors of floating point and complex dtype can require gradients, this is int64",
          ones({2}, kInt64).requires_grad_()),
    WRONG(Error, "grad: input 0 appears to not have been used in the graph ... allow_unused=true",
          autograd::grad({leaf().sum()}, {leaf()})),
    WRONG(Error, "requires_grad_: only leaves can be changed ... detach()", leaf().mul(2).requires_grad_(false)),
    WRONG(Error, "retain_grad: the tensor does not require a gradient", ones({2}).retain_grad()),
    WRONG(ValueError, "optimizer: there are no parameters to optimize ... register_parameter",
          optim::SGD(std::vector<Tensor>{}, 0.1)),
    WRONG(ValueError, "there are no parameters to optimize ... register_module",
          optim::Adam(Unregistered().parameters(), 0.1)),
    WRONG(ValueError, "optimizer: cannot optimize a tensor that is the result of a computation, shape (3) ... detach()",
          optim::SGD({leaf().mul(2)}, 0.1)),
    WRONG(ValueError, "a parameter of shape (3) appears twice", const Tensor x = leaf(); optim::SGD({x, x}, 0.1)),
    WRONG(ValueError, "SGD: lr must be at least 0, got -0.1", optim::SGD({leaf()}, -0.1)),
    WRONG(Error,
          "clip_grad_norm_: the norm of order 2 of the gradients is non-finite, nan ... error_if_nonfinite=false",
          const Tensor x = leaf();
          x.mutable_grad() = full({3}, NAN); nn::utils::clip_grad_norm_({x}, 1, 2, true)),
};

const Mistake kModules[] = {
    WRONG(ValueError, "Submodule 'fc' already defined", nn::Module m; m.register_module("fc", nn::Linear(1, 1));
          m.register_module("fc", nn::Linear(1, 1))),
    WRONG(ValueError, "must not contain a dot (got 'fc.weight')", nn::Module m;
          m.register_parameter("fc.weight", ones({2}))),
    WRONG(Error, "Accessing empty ModuleHolder", nn::Linear fc{nullptr}; fc(ones({2}))),
    WRONG(Error, "Sequential: forward of an empty one", nn::Sequential()->forward(ones({2}))),
    WRONG(IndexError, "Sequential: position 3 of 1", nn::Sequential(nn::ReLU())->ptr(3)),
    WRONG(IndexError, "OrderedDict: an item of an empty dictionary of Parameters",
          nn::Module().named_parameters().front()),
    WRONG(ValueError, "Parameter 'wieght' is not defined", nn::Linear(1, 1)->named_parameters()["wieght"]),
    WRONG(NotImplementedError, "clone() has not been implemented for ... Cloneable", Unregistered().clone()),
    WRONG(ValueError, "DataLoader: the batch size must be positive, got 0",
          data::make_data_loader(data::datasets::TensorDataset(ones({4})), 0)),
    WRONG(ValueError, "make_data_loader: the dataset is empty",
          data::make_data_loader(data::datasets::TensorDataset(ones({0, 2})), 2)),
    WRONG(IOError, "/nowhere/tensor.pt: cannot open: No such file", Tensor t; load(t, "/nowhere/tensor.pt")),
    WRONG(IOError, "not a safetensors file: it is a zip archive: io::load_pt reads those of torch.save",
          const testing::TemporaryFolder folder;
          const std::string path =
              folder.write("model.pt", std::string_view("PK\x03\x04\0\0\x08\x08 model/data.pkl", 23));
          Tensor t; load(t, path)),
    WRONG(ValueError, "weight ... (4, 2) ... (3, 2)",
          load_state_dict(*nn::Linear(2, 3), state_dict(*nn::Linear(2, 4)))),
    WRONG(ValueError, "Conv2d: 3 input and 8 output channels cannot be divided into 2 groups",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 3).groups(2))),
};

bool says(const std::string& what, std::string_view message) {
  constexpr std::string_view kGap = " ... ";
  for (size_t at = 0;;) {
    const size_t end = message.find(kGap);
    const size_t found = what.find(message.substr(0, end), at);
    if (found == what.npos || end == message.npos) return found != what.npos;
    at = found + end;
    message.remove_prefix(end + kGap.size());
  }
}

template <size_t N>
void check_all(const Mistake (&mistakes)[N]) {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(std::string(mistake.code));
    try {
      mistake.make();
      FAIL_CHECK("no error");
    } catch (const std::exception& error) {
      const std::string what = error.what();
      CHECK_MESSAGE(typeid(error) == mistake.type, demangle(typeid(error).name()), ": ", what);
      CHECK_MESSAGE(says(what, mistake.message), what);
    }
  }
}

}  // namespace

TEST_CASE("wrong shapes and indices") { check_all(kShapes); }
TEST_CASE("wrong targets, dtypes and devices") { check_all(kDtypes); }
TEST_CASE("wrong uses of gradients and optimizers") { check_all(kGradients); }
TEST_CASE("wrong uses of modules, loaders and files") { check_all(kModules); }
