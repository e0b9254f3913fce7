// Calls whose results' dtypes show what autocast did. The expected ones are PyTorch 2.11's: on the CPU they were taken
// from runs under torch.autocast("cpu", torch.bfloat16), on CUDA from its lists.
#pragma once
#include "rushlight.h"

namespace rush::testing {

struct AutocastCall {
  const char* name;
  Tensor (*call)(const Tensor& x);  // x: (4, 4), elements in (0, 1)
  // What is given for a float32 x, and for one in the 16-bit dtype: (F)loat32 or the (L)ower one. Null: not compared.
  const char *on_cpu, *on_cuda;
};

// Others that the calls need, in float32 on the device of x.
inline Tensor other(const Tensor& x) { return full({4, 4}, 0.5, TensorOptions(kFloat32).device(x.device())); }
inline Tensor row(const Tensor& x) { return full({4}, 0.5, TensorOptions(kFloat32).device(x.device())); }
inline Tensor classes(const Tensor& x) { return arange(4, TensorOptions(kLong).device(x.device())); }
inline Tensor image(const Tensor& x) { return x.view({1, 1, 4, 4}); }
inline Tensor volume(const Tensor& x) { return x.view({1, 1, 1, 4, 4}); }
template <class Net>
Net on_device_of(const Tensor& x) {
  Net net(4, 4);
  net->to(x.device());
  return net;
}
inline Tensor identity_plus(const Tensor& x) { return x + eye(4, x.options()); }

namespace F = nn::functional;

inline const AutocastCall kAutocastCalls[] = {
    // In 16 bits.
    {"addbmm", [](const Tensor& x) { return addbmm(x, x.unsqueeze(0), x.unsqueeze(0)); }, "LL", "LL"},
    {"addmm", [](const Tensor& x) { return addmm(x, x, x); }, "LL", "LL"},
    {"addmm, mixed", [](const Tensor& x) { return addmm(x, x, other(x)); }, "LL", "LL"},
    {"baddbmm", [](const Tensor& x) { return baddbmm(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0)); }, "LL", "LL"},
    {"bmm", [](const Tensor& x) { return bmm(x.unsqueeze(0), x.unsqueeze(0)); }, "LL", "LL"},
    {"conv1d", [](const Tensor& x) { return conv1d(x.unsqueeze(0), x.unsqueeze(0)); }, "LL", "LL"},
    {"conv2d", [](const Tensor& x) { return conv2d(image(x), image(x)); }, "LL", "LL"},
    {"conv2d, same", [](const Tensor& x) { return conv2d(image(x), image(x), {}, 1, "same"); }, "LL", "LL"},
    {"conv3d", [](const Tensor& x) { return conv3d(volume(x), volume(x)); }, "LL", "LL"},
    {"conv_transpose1d", [](const Tensor& x) { return conv_transpose1d(x.unsqueeze(0), x.unsqueeze(2)); }, "LL", "LL"},
    {"conv_transpose2d", [](const Tensor& x) { return conv_transpose2d(image(x), image(x)); }, "LL", "LL"},
    {"conv_transpose3d", [](const Tensor& x) { return conv_transpose3d(volume(x), volume(x)); }, "LL", "LL"},
    {"einsum",
     [](const Tensor& x) {
       return einsum("ij,jk->ik", {x, x});
     },
     "LL", "LL"},
    {"linear", [](const Tensor& x) { return linear(x, other(x), row(x)); }, "LL", "LL"},
    {"lstm", [](const Tensor& x) { return std::get<0>(on_device_of<nn::LSTM>(x)->forward(x)); }, "LL", "LL"},
    {"matmul", [](const Tensor& x) { return matmul(x, other(x)); }, "LL", "LL"},
    {"mm", [](const Tensor& x) { return mm(x, other(x)); }, "LL", "LL"},
    {"mv", [](const Tensor& x) { return mv(x, x[0]); }, "FL", "LL"},
    {"prelu", [](const Tensor& x) { return prelu(x, row(x)); }, "LL", "LL"},
    {"rnn_tanh", [](const Tensor& x) { return std::get<0>(on_device_of<nn::RNN>(x)->forward(x)); }, "LL", "LL"},
    {"scaled_dot_product_attention",
     [](const Tensor& x) { return scaled_dot_product_attention(image(x), image(x), image(x)); }, "LL", "LL"},
    // Losses.
    {"binary_cross_entropy", [](const Tensor& x) { return F::binary_cross_entropy(x, other(x)); }, "FF", nullptr},
    {"binary_cross_entropy_with_logits",
     [](const Tensor& x) { return F::binary_cross_entropy_with_logits(x, other(x)); }, "FF", "FF"},
    {"cosine_embedding_loss", [](const Tensor& x) { return F::cosine_embedding_loss(x, x, row(x)); }, "FF", "FF"},
    {"cross_entropy", [](const Tensor& x) { return F::cross_entropy(x, classes(x)); }, "FF", "FF"},
    {"hinge_embedding_loss", [](const Tensor& x) { return F::hinge_embedding_loss(x, other(x)); }, "FF", "FF"},
    {"huber_loss", [](const Tensor& x) { return F::huber_loss(x, other(x)); }, "FF", "FF"},
    {"kl_div", [](const Tensor& x) { return F::kl_div(x, other(x)); }, "FF", "FF"},
    {"l1_loss", [](const Tensor& x) { return F::l1_loss(x, other(x)); }, "FF", "FF"},
    {"margin_ranking_loss", [](const Tensor& x) { return F::margin_ranking_loss(x, x, other(x)); }, "FF", "FF"},
    {"mse_loss", [](const Tensor& x) { return F::mse_loss(x, other(x)); }, "FF", "FF"},
    {"multi_margin_loss", [](const Tensor& x) { return F::multi_margin_loss(x, classes(x)); }, "FF", "FF"},
    {"nll_loss", [](const Tensor& x) { return F::nll_loss(x, classes(x)); }, "FF", "FF"},
    {"poisson_nll_loss", [](const Tensor& x) { return F::poisson_nll_loss(x, other(x)); }, "FF", "FF"},
    {"smooth_l1_loss", [](const Tensor& x) { return F::smooth_l1_loss(x, other(x)); }, "FF", "FF"},
    {"soft_margin_loss", [](const Tensor& x) { return F::soft_margin_loss(x, other(x)); }, "FF", "FF"},
    {"triplet_margin_loss", [](const Tensor& x) { return F::triplet_margin_loss(x, x, x); }, "FF", "FF"},
    // In float32 on one device or both.
    {"cdist", [](const Tensor& x) { return cdist(x, x); }, "FF", "FF"},
    {"prod", [](const Tensor& x) { return x.prod(); }, "FF", "FF"},
    {"prod of a dimension", [](const Tensor& x) { return x.prod(0); }, "FF", "FF"},
    {"quantile", [](const Tensor& x) { return x.quantile(0.5); }, "FF", nullptr},
    {"trace", [](const Tensor& x) { return x.trace(); }, "FF", nullptr},
    {"avg_pool3d",
     [](const Tensor& x) {
       return F::avg_pool3d(volume(x), F::AvgPool3dFuncOptions({1, 2, 2}));
     },
     "FF", "FL"},
    {"max_pool3d",
     [](const Tensor& x) {
       return F::max_pool3d(volume(x), F::MaxPool3dFuncOptions({1, 2, 2}));
     },
     "FF", "FL"},
    {"adaptive_avg_pool3d",
     [](const Tensor& x) {
       return adaptive_avg_pool3d(volume(x), {1, 1, 1});
     },
     "FF", "FL"},
    {"reflection_pad1d",
     [](const Tensor& x) {
       return pad(x, {1, 1}, "reflect");
     },
     "FF", "FL"},
    {"replication_pad1d",
     [](const Tensor& x) {
       return pad(x, {1, 1}, "replicate");
     },
     "FF", "FL"},
    {"grid_sample",
     [](const Tensor& x) {
       return F::grid_sample(image(x), x.narrow(1, 0, 2).reshape({1, 2, 2, 2}));
     },
     "FF", "FL"},
    {"linalg_inv", [](const Tensor& x) { return linalg_inv(identity_plus(x)); }, "FF", nullptr},
    {"linalg_solve", [](const Tensor& x) { return linalg_solve(identity_plus(x), x); }, "FF", nullptr},
    {"linalg_svdvals", [](const Tensor& x) { return linalg_svdvals(x); }, "FF", nullptr},
    {"exp", [](const Tensor& x) { return x.exp(); }, "FL", "FF"},
    {"log1p", [](const Tensor& x) { return x.log1p(); }, "FL", "FF"},
    {"rsqrt", [](const Tensor& x) { return x.rsqrt(); }, "FL", "FF"},
    {"pow", [](const Tensor& x) { return x.pow(2); }, "FL", "FF"},
    {"softmax", [](const Tensor& x) { return x.softmax(-1); }, "FL", "FF"},
    {"log_softmax", [](const Tensor& x) { return x.log_softmax(-1); }, "FL", "FF"},
    {"sum", [](const Tensor& x) { return x.sum(); }, "FL", "FF"},
    {"sum of a dimension", [](const Tensor& x) { return x.sum(0); }, "FL", "FF"},
    {"cumsum", [](const Tensor& x) { return x.cumsum(0); }, "FL", "FF"},
    {"norm", [](const Tensor& x) { return x.norm(); }, "FL", "FF"},
    {"norm of a dimension", [](const Tensor& x) { return norm(x, 2, {0}); }, "FL", "FF"},
    {"logsumexp", [](const Tensor& x) { return x.logsumexp(0); }, "FL", "FF"},
    {"layer_norm", [](const Tensor& x) { return layer_norm(x, {4}, row(x), row(x)); }, "FL", "FF"},
    {"group_norm", [](const Tensor& x) { return group_norm(x, 2, row(x), row(x)); }, "FL", "FF"},
    {"cosine_similarity", [](const Tensor& x) { return cosine_similarity(x, x); }, "FL", "FF"},
    {"normalize", [](const Tensor& x) { return F::normalize(x); }, "FL", "FF"},
    {"upsample_nearest2d",
     [](const Tensor& x) {
       return upsample_nearest2d(image(x), {8, 8});
     },
     "FL", "FF"},
    // In the widest dtype.
    {"cat",
     [](const Tensor& x) {
       return cat({x, other(x)});
     },
     "FF", "FF"},
    {"cat with bfloat16",
     [](const Tensor& x) {
       return cat({x, other(x).to(kBFloat16)});
     },
     "FL", "FL"},
    {"stack with bfloat16",
     [](const Tensor& x) {
       return stack({x, other(x).to(kBFloat16)});
     },
     "FL", nullptr},
    {"index_copy", [](const Tensor& x) { return x.index_copy(0, classes(x), x); }, "FL", "FL"},
    {"dot", [](const Tensor& x) { return dot(x[0], x[1]); }, "FL", "FL"},
    {"addcmul", [](const Tensor& x) { return addcmul(x, other(x), x); }, "FF", "FF"},
    {"tensordot", [](const Tensor& x) { return tensordot(x, x, {1}, {0}); }, "LL", "FL"},
    // Not listed.
    {"add", [](const Tensor& x) { return x + other(x); }, "FF", "FF"},
    {"batch_norm", [](const Tensor& x) { return batch_norm(x, row(x), row(x), row(x), row(x), true, 0.1, 1e-5); }, "FL",
     "FL"},
    {"dropout", [](const Tensor& x) { return dropout(x, 0.5, true); }, "FL", "FL"},
    {"embedding", [](const Tensor& x) { return F::embedding(classes(x), x); }, "FL", "FL"},
    {"gelu", [](const Tensor& x) { return gelu(x); }, "FL", "FL"},
    {"max_pool2d", [](const Tensor& x) { return F::max_pool2d(image(x), F::MaxPool2dFuncOptions(2)); }, "FL", "FL"},
    {"mean", [](const Tensor& x) { return x.mean(); }, "FL", "FL"},
    {"std", [](const Tensor& x) { return x.std(); }, "FL", "FL"},
};

// "F" or "L" of the result for a float32 x and for one in `lower`, under the autocast of the caller.
inline std::string autocast_dtypes(const AutocastCall& call, Device device, ScalarType lower) {
  std::string found;
  for (ScalarType dtype : {kFloat32, lower}) {
    const Tensor x = linspace(0.1, 0.9, 16, TensorOptions(kFloat32).device(device)).view({4, 4}).to(dtype);
    const ScalarType result = call.call(x).scalar_type();
    found += result == kFloat32 ? 'F' : result == lower ? 'L' : '?';
  }
  return found;
}

}  // namespace rush::testing
