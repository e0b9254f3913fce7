// What programs get wrong most, a row each, and what the error has to say: the operator, what it got and, where there
// is one, the way out.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <typeinfo>

#include "core/ops/view/item.h"
#include "nn/data/datasets/tensor.h"
#include "rushlight.h"
#include "tests/autograd/leaf.h"
#include "tests/temporary_folder.h"

using namespace rush;
using rush::testing::leaf_of_ones;
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

struct Unregistered : nn::Module {
  Tensor weight = ones({2});
};

const Mistake kShapes[] = {
    WRONG(ValueError,
          "add: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1 ... (2, 3) "
          "with (2, 4)",
          ones({2, 3}) + ones({2, 4})),
    WRONG(ValueError, "sub: The size of tensor a (3) must match ... (4) at non-singleton dimension 1",
          ones({2, 3}) - ones({2, 4})),
    WRONG(ValueError,
          "add: Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #1 'other'",
          ones({2}) + Tensor()),
    WRONG(ValueError, "sum: ... an undefined Tensor ... for argument #0 'self' ... never assigned", Tensor().sum()),
    WRONG(ValueError, "cat: ... an undefined Tensor ... in the list for argument #0 'tensors'",
          cat({ones({2}), Tensor()})),
    WRONG(Error, "expected a tensor, got an undefined one", Tensor().strides()),
    WRONG(Error, "expected a tensor with a gradient, got an undefined one", Tensor().grad()),
    WRONG(Error, "expected a tensor with a gradient, got an undefined one", Tensor().mutable_grad()),
    WRONG(ValueError, "matmul: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5) ... 3 columns against 4 rows",
          ones({2, 3}).matmul(ones({4, 5}))),
    WRONG(ValueError, "mm: expected ... (2, 3) and (3)", ones({2, 3}).mm(ones({3}))),
    WRONG(ValueError,
          "bmm: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4] ... (2, 3, 4)",
          ones({2, 3, 4}).bmm(ones({3, 4, 5}))),
    WRONG(ValueError, "bmm: batch1 must be a 3D tensor, got shape (2, 3)", ones({2, 3}).bmm(ones({2, 3}))),
    WRONG(ValueError, "addmm: The expanded size of the tensor (2) must match the existing size (3) ... dimension 1",
          addmm(ones({3}), ones({2, 4}), ones({4, 2}))),
    WRONG(ValueError,
          "linear: mat1 and mat2 shapes cannot be multiplied (3x5 and 4x2) ... (3, 5) has 5 features against 4 ... "
          "[in Linear]",
          nn::Linear(4, 2)(ones({3, 5}))),
    WRONG(ValueError,
          "convolution: Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 1, 8, 8] to have 3 channels, "
          "but got 1 channels instead ... [in Conv2d]",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 3))(ones({1, 1, 8, 8}))),
    WRONG(ValueError, "conv2d: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]",
          nn::Conv2d(nn::Conv2dOptions(3, 8, 3))(ones({8, 8}))),
    WRONG(
        ValueError,
        "Kernel size can't be greater than actual input size ... it is 5 with its dilation against 4 ... (1, 3, 4, 4)",
        nn::Conv2d(nn::Conv2dOptions(3, 8, 5))(ones({1, 3, 4, 4}))),
    WRONG(ValueError, "max_pool2d: Output size is too small ... a window of 3 ... size 2",
          F::max_pool2d(ones({1, 1, 2, 2}), F::MaxPool2dFuncOptions(3))),
    WRONG(ValueError,
          "batch_norm: weight has shape (3), expected (4) for an input of shape (2, 4, 5, 5) ... [in BatchNorm2d]",
          nn::BatchNorm2d(3)(ones({2, 4, 5, 5}))),
    WRONG(ValueError, "BatchNorm2d: expected 4D input (got 2D input of shape (2, 3))",
          nn::BatchNorm2d(3)(ones({2, 3}))),
    WRONG(ValueError, "batch_norm: Expected more than 1 value per channel when training, got input size [1, 3]",
          nn::BatchNorm1d(3)(ones({1, 3}))),
    WRONG(ValueError,
          "layer_norm: Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]",
          nn::LayerNorm(nn::LayerNormOptions({4}))(ones({2, 3}))),
    WRONG(IndexError,
          "embedding: index out of range in self ... index 10 is out of bounds for dimension 0 with size 10",
          nn::Embedding(10, 2)(full({1}, 10, kInt64))),
    WRONG(TypeError,
          "embedding: Expected tensor for argument #1 'indices' to have ... Long, Int; but got Float instead",
          nn::Embedding(10, 2)(ones({3}))),
    WRONG(ValueError, "lstm: input.size(-1) must be equal to input_size. Expected 4, got 3 ... (5, 1, 3)",
          nn::LSTM(4, 8)(ones({5, 1, 3}))),
    WRONG(ValueError, "MultiheadAttention: 10 ... 3 heads", nn::MultiheadAttention(10, 3)),
    WRONG(ValueError, "expected queries of size 8, got shape (5, 1, 6)", nn::MultiheadAttention m(8, 2);
          m(ones({5, 1, 6}), ones({5, 1, 6}), ones({5, 1, 6}))),
    WRONG(ValueError, "view: shape '[4, 2]' is invalid for input of size 6", ones({2, 3}).view({4, 2})),
    WRONG(ValueError,
          "view: view size is not compatible with input tensor's size and stride ... (3, 2) with strides (1, 3) ... "
          "use reshape",
          ones({2, 3}).t().view({6})),
    WRONG(ValueError, "reshape: only one dimension can be inferred ... (-1, -1)", ones({6}).reshape({-1, -1})),
    WRONG(ValueError, "sizes must be non-negative, got (2, -3)", zeros({2, -3})),
    WRONG(ValueError,
          "cat: Sizes of tensors must match except in dimension 0, expected size 3 but got size 4 for tensor number 1 "
          "... (2, 4) ... (2, 3)",
          cat({ones({2, 3}), ones({2, 4})}, 0)),
    WRONG(ValueError, "cat: expected a non-empty list", cat({})),
    WRONG(ValueError, "cat: Tensors must have same number of dimensions: got 2 and 1", cat({ones({2, 3}), ones({2})})),
    WRONG(ValueError, "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
          stack({ones({2}), ones({3})})),
    WRONG(IndexError, "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          ones({2, 3}).sum(2)),
    WRONG(IndexError, "select: index 5 out of range for tensor of size [2, 3] at dimension 0", ones({2, 3})[5]),
    WRONG(IndexError, "a 0-dimensional tensor has no dimension", ones({})[0]),
    WRONG(ValueError, "permute: number of dimensions in the tensor input does not match ... 2 against 3 in (0, 1, 2)",
          ones({2, 3}).permute({0, 1, 2})),
    WRONG(ValueError,
          "expand: The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1 "
          "... (2, 3) to (2, 4)",
          ones({2, 3}).expand({2, 4})),
    WRONG(ValueError, "expand: the number of sizes provided (1) must be greater or equal", ones({2, 3}).expand({3})),
    WRONG(ValueError, "expand: The expanded size of the tensor (-1) isn't allowed in a leading",
          ones({3}).expand({-1, 3})),
    WRONG(ValueError, "_local_scalar_dense: a tensor of shape (1, 0) has no element",
          ops::_local_scalar_dense(empty({1, 0}))),
    WRONG(ValueError, "item: a Tensor with 2 elements cannot be converted to Scalar ... (2) ... reduce it",
          ones({2}).item<float>()),
    WRONG(ValueError, "t() expects a tensor with <= 2 dimensions, but self is 3D ... (2, 3, 4) ... use transpose",
          ones({2, 3, 4}).t()),
    WRONG(ValueError, "gather: an index of shape (2) ... (2, 3)", ones({2, 3}).gather(1, zeros({2}, kInt64))),
    WRONG(TypeError, "index_select: Expected dtype int32/int64 for index, got float32",
          ones({2, 3}).index_select(0, ones({2}))),
    WRONG(ValueError,
          "einsum: 'ij,jk->ik': subscript j has size 4 which does not broadcast with previously seen size 3",
          einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})})),
    WRONG(TypeError, "masked_fill: expected a bool mask, got float32", ones({2}).masked_fill(ones({2}), 0)),
    WRONG(ValueError, "copy_: The size of tensor a (2) must match the size of tensor b (3)",
          ones({2}).copy_(ones({3}))),
    WRONG(ValueError, "copy_: output with shape [2] doesn't match the broadcast shape [3, 2]",
          ones({2}).copy_(ones({3, 2}))),
    WRONG(ValueError, "add_: output with shape [2] doesn't match the broadcast shape [3, 2]",
          ones({2}).add_(ones({3, 2}))),
    WRONG(IndexError, "max: expected dimension 0 to have elements ... (0)", ones({0}).max()),
    WRONG(ValueError,
          "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension 0), but got "
          "split_sizes=[2, 2]",
          ones({5}).split_with_sizes({2, 2})),
    WRONG(ValueError, "split_with_sizes expects split_sizes have only non-negative entries ... [-1, 6]",
          ones({5}).split_with_sizes({-1, 6})),
    WRONG(ValueError, "chunk expects `chunks` to be greater than 0, got: 0", ones({5}).chunk(0)),
    WRONG(IndexError, "narrow: start (2) + length (2) exceeds dimension size (3)", ones({3}).narrow(0, 2, 2)),
    WRONG(ValueError, "topk: selected index k out of range ... k is 5, dimension 0 has 2", ones({2}).topk(5)),
    WRONG(IndexError,
          "The shape of the mask [4] at index 0 does not match the shape of the indexed tensor [3] at index 0",
          ones({3}).index({ones({4}, kBool)})),
    WRONG(IndexError, "index: too many indices for tensor of dimension 1, got 2", ones({3}).index({0, 0})),
    WRONG(TypeError, "index: tensors used as indices must be long, int, byte or bool tensors, got float32",
          ones({3}).index({ones({1})})),
    WRONG(ValueError, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5", randint(5, 5, {2})),
    WRONG(ValueError, "multinomial: invalid multinomial distribution ... got 0", multinomial(zeros({3}), 2)),
    WRONG(ValueError, "multinomial: probability tensor contains either `inf`, `nan` or element < 0 ... -1",
          (-ones({3})).multinomial(1)),
};

const Mistake kDtypes[] = {
    WRONG(TypeError, "cross_entropy_loss: expected scalar type Long but found Int ... to(kInt64)",
          F::cross_entropy(ones({2, 3}), zeros({2}, kInt32))),
    WRONG(TypeError, "expected scalar type Long but found Float", F::cross_entropy(ones({2, 3}), zeros({2}))),
    WRONG(IndexError, "cross_entropy_loss: Target 3 is out of bounds ... [0, 3)",
          F::cross_entropy(ones({2, 3}), full({2}, 3, kInt64))),
    WRONG(ValueError, "0D or 1D target tensor expected, multi-target not supported, got shape (2, 1)",
          F::cross_entropy(ones({2, 3}), zeros({2, 1}, kInt64))),
    WRONG(ValueError, "Expected input batch_size (2) to match target batch_size (4) ... (2, 3)",
          F::cross_entropy(ones({2, 3}), zeros({4}, kInt64))),
    WRONG(ValueError, "nll_loss: 0D or 1D target tensor expected, multi-target not supported, got shape (2, 3)",
          F::nll_loss(ones({2, 3}), zeros({2, 3}, kInt64))),
    WRONG(ValueError, "binary_cross_entropy: expected a target of the input's shape (4, 1), got (4)",
          F::binary_cross_entropy(full({4, 1}, 0.5), ones({4}))),
    WRONG(ValueError, "binary_cross_entropy_with_logits: expected a target of the input's shape (4, 1), got (4)",
          F::binary_cross_entropy_with_logits(ones({4, 1}), ones({4}))),
    WRONG(ValueError, "binary_cross_entropy: all elements of input should be between 0 and 1, got 3",
          F::binary_cross_entropy(full({2}, 3.0), ones({2}))),
    WRONG(NotImplementedError, "mse_loss: not implemented for int64",
          F::mse_loss(ones({2}, kInt64), ones({2}, kInt64)).backward()),
    WRONG(ValueError, "l1_loss: The size of tensor a (3) must match", F::l1_loss(ones({2, 3}), ones({2, 4}))),
    WRONG(TypeError, "ctc_loss: expected targets of int64 or int32, got float32",
          F::ctc_loss(ones({5, 1, 3}), ones({1, 2}), full({1}, 5, kInt64), full({1}, 2, kInt64))),
    WRONG(ValueError, "Dropout: dropout probability has to be between 0 and 1, but got 1.5", nn::Dropout(1.5)),
    WRONG(IndexError, "softmax: Dimension out of range (expected to be in range of [-1, 0], but got 1)",
          F::softmax(ones({3}), 1)),
    WRONG(NotImplementedError, "softmax: expected a floating tensor, got int64", ones({3}, kInt64).softmax(0)),
    WRONG(TypeError, "mean: could not infer output dtype ... int64", ones({3}, kInt64).mean()),
    WRONG(TypeError, "sub: Subtraction, the `-` operator, with two bool tensors is not supported ... logical_xor",
          ones({3}, kBool) - ones({3}, kBool)),
    WRONG(TypeError, "sub: Subtraction, the `-` operator, with a bool tensor is not supported ... logical_not",
          ones({3}) - ones({3}, kBool)),
    WRONG(TypeError, "matmul: expected m1 and m2 to have the same dtype, but got: float32 != int64",
          ones({2, 2}).matmul(ones({2, 2}, kInt64))),
    WRONG(TypeError, "linear: mat1 and mat2 must have the same dtype, but got float64 ... float32 ... to()",
          nn::Linear(2, 2)(ones({1, 2}, kFloat64))),
    WRONG(TypeError, "add_: result type Float can't be cast to the desired output type Long",
          ones({2}, kInt64).add_(0.5)),
    WRONG(TypeError, "data_ptr: expected scalar type Double but found Float", ones({2}).data_ptr<double>()),
    WRONG(TypeError, "expected scalar type Double but found Float", ones({2}).accessor<double, 1>()),
    WRONG(ValueError, "accessor: TensorAccessor expected 2 dims but tensor has 1", ones({2}).accessor<float, 2>()),
    WRONG(ValueError, "tensor: lists on one level must agree ... (2) ... (1)", tensor({{1.0, 2.0}, {3.0}})),
    WRONG(ValueError, "Device: Expected one of cpu, cuda, meta ... device type at start of device string: gpu",
          Device("gpu")),
    WRONG(ValueError, "Device: Invalid device string: 'cuda:x'", Device("cuda:x")),
    WRONG(ValueError, "add: tensors are on cpu and on meta", ones({2}) + ones({2}, TensorOptions().device(kMeta))),
};

const Mistake kGradients[] = {
    WRONG(Error, "backward: a gradient is needed for an output of shape (3) ... sum()",
          leaf_of_ones().mul(2).backward()),
    WRONG(Error, "backward: Trying to backward through the graph a second time ... retain_graph=true",
          const Tensor y = leaf_of_ones().exp().sum();
          y.backward(); y.backward()),
    WRONG(Error, "backward: element 0 of tensors does not require grad and does not have a grad_fn",
          ones({2}).sum().backward()),
    WRONG(Error, "grad: element 0 of tensors does not require grad", autograd::grad({ones({2}).sum()}, {ones({2})})),
    WRONG(Error, "grad: element 0 of the input tensors does not require grad",
          autograd::grad({leaf_of_ones().sum()}, {ones({2})})),
    WRONG(Error, "does not require grad ... NoGradGuard", const NoGradGuard guard; leaf_of_ones().sum().backward()),
    WRONG(ValueError, "backward: the gradient has shape (2), the output (3)",
          leaf_of_ones().mul(2).backward(ones({2}))),
    WRONG(Error, "add_: a leaf Variable that requires grad is being used in an in-place operation ... NoGradGuard",
          leaf_of_ones().add_(1)),
    WRONG(Error, "add_: a view of a leaf Variable that requires grad ... NoGradGuard", const Tensor x = leaf_of_ones();
          x[0].add_(1)),
    WRONG(Error,
          "ExpBackward needs has been modified by an inplace operation ... version 1, expected version 0 ... "
          "DetectAnomalyGuard",
          const Tensor y = leaf_of_ones().exp();
          y.add_(1); y.sum().backward()),
    WRONG(Error,
          "requires_grad_: Only Tensors of floating point and complex dtype can require gradients, this is int64",
          ones({2}, kInt64).requires_grad_()),
    WRONG(Error, "grad: input 0 appears to not have been used in the graph ... allow_unused=true",
          autograd::grad({leaf_of_ones().sum()}, {leaf_of_ones()})),
    WRONG(Error, "requires_grad_: only leaves can be changed ... detach()",
          leaf_of_ones().mul(2).requires_grad_(false)),
    WRONG(Error, "retain_grad: the tensor does not require a gradient", ones({2}).retain_grad()),
    WRONG(Error, "expected a tensor, got an undefined one", Tensor().requires_grad_(false)),
    WRONG(Error, "expected a tensor, got an undefined one", Tensor().output_nr()),
    WRONG(ValueError, "optimizer: there are no parameters to optimize ... register_parameter",
          optim::SGD(std::vector<Tensor>{}, 0.1)),
    WRONG(ValueError, "there are no parameters to optimize ... register_module",
          optim::Adam(Unregistered().parameters(), 0.1)),
    WRONG(ValueError, "optimizer: can't optimize a non-leaf Tensor, one of shape (3) ... detach()",
          optim::SGD({leaf_of_ones().mul(2)}, 0.1)),
    WRONG(ValueError, "a parameter of shape (3) appears twice", const Tensor x = leaf_of_ones();
          optim::SGD({x, x}, 0.1)),
    WRONG(ValueError, "SGD: Invalid learning rate: -0.1, lr must be at least 0", optim::SGD({leaf_of_ones()}, -0.1)),
    WRONG(ValueError, "Adam: Invalid epsilon value: -1",
          optim::Adam({leaf_of_ones()}, optim::AdamOptions(0.1).eps(-1))),
    WRONG(ValueError, "Adam: Invalid beta parameter at index 1: 1.5",
          optim::Adam({leaf_of_ones()}, optim::AdamOptions(0.1).betas({0.9, 1.5}))),
    WRONG(Error,
          "clip_grad_norm_: the norm of order 2 of the gradients is non-finite, nan ... error_if_nonfinite=false",
          const Tensor x = leaf_of_ones();
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

#undef WRONG

TEST_CASE("wrong shapes and indices") { check_all(kShapes); }
TEST_CASE("wrong targets, dtypes and devices") { check_all(kDtypes); }
TEST_CASE("wrong uses of gradients and optimizers") { check_all(kGradients); }
TEST_CASE("wrong uses of modules, loaders and files") { check_all(kModules); }
