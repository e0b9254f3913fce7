// The back ends of attention on the GPU against the plain formula on the CPU in float64.
#include "core/ops/nn/attention.h"

#include <cmath>
#include <limits>

#include "backends/cuda/cuda.h"
#include "core/device/context.h"
#include "core/ops/nn/fused_attention.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

namespace {

using namespace rush;
using namespace rush::testing;

enum class Mask { None, Causal, Bool, Added, KeyPadding };

struct AttentionSetup {
  const char* name;
  int64_t batch, heads, shared_heads, queries, keys, width, out_width;
  Mask mask = Mask::None;
  bool cudnn = true;  // whether cuDNN has to take it in 16 bits
};

const AttentionSetup kAttentionSetups[] = {
    {"one tile", 2, 3, 3, 64, 64, 64, 64},
    {"causal", 2, 3, 3, 128, 128, 64, 64, Mask::Causal},
    {"17 positions", 1, 2, 2, 17, 17, 32, 32, Mask::Causal},
    {"1023 positions", 1, 2, 2, 1023, 1023, 64, 64, Mask::Causal},
    {"one query", 3, 2, 2, 1, 100, 64, 64, Mask::None, false},
    {"one key", 3, 2, 2, 100, 1, 64, 64, Mask::None, false},
    {"more queries than keys", 2, 2, 2, 150, 37, 64, 64},
    {"more keys than queries", 2, 2, 2, 37, 150, 64, 64},
    {"causal, more queries than keys", 1, 2, 2, 150, 37, 64, 64, Mask::Causal, false},
    {"causal, more keys than queries", 1, 2, 2, 37, 150, 64, 64, Mask::Causal, false},
    {"shared heads", 2, 6, 2, 65, 70, 64, 64},
    {"one shared head, causal", 2, 4, 1, 130, 130, 128, 128, Mask::Causal},
    {"narrow heads", 2, 2, 2, 40, 50, 16, 16},
    {"heads of 20", 2, 2, 2, 40, 50, 20, 12, Mask::Causal, false},
    {"heads of 96", 1, 2, 2, 70, 70, 96, 96, Mask::Causal},
    {"heads of 128", 1, 2, 2, 100, 90, 128, 128},
    {"heads of 256", 1, 2, 2, 70, 70, 256, 256, Mask::None, false},
    {"odd heads", 2, 2, 2, 33, 66, 5, 7, Mask::None, false},
    {"wide odd heads", 1, 1, 1, 66, 33, 201, 130, Mask::Causal, false},
    {"values wider than keys", 1, 2, 2, 64, 64, 64, 128, Mask::None, false},
    {"a bool mask", 2, 2, 2, 64, 72, 64, 64, Mask::Bool, false},
    {"an added mask", 2, 4, 2, 64, 72, 64, 64, Mask::Added, false},
    {"an odd added mask", 2, 2, 2, 33, 35, 64, 64, Mask::Added, false},
    {"padded keys", 3, 2, 2, 50, 64, 64, 64, Mask::KeyPadding, false},
};

struct Inputs {
  Tensor q, k, v, mask;  // mask undefined: none
  bool causal = false;

  std::optional<Tensor> given_mask() const { return mask.defined() ? std::optional(mask) : std::nullopt; }
  Tensor attend(double dropout_p = 0) const {
    return scaled_dot_product_attention(q, k, v, given_mask(), dropout_p, causal, std::nullopt, true);
  }
  SDPBackend choice() const { return fused_sdp_choice(q, k, v, given_mask(), 0.0, causal, std::nullopt, true); }
};

// Different numbers for each seed.
Tensor some(IntArrayRef sizes, uint64_t seed) {
  const Generator generator = make_generator<CPUGeneratorImpl>(seed);
  Tensor t = empty(sizes, TensorOptions(kFloat64).device(kCPU));
  return t.uniform_(-1, 1, generator);
}

Tensor mask_of(const AttentionSetup& s) {
  switch (s.mask) {
    case Mask::Bool: return some({s.queries, s.keys}, 4) > -0.3;
    case Mask::Added: return some({s.batch, s.heads, s.queries, s.keys}, 4);
    case Mask::KeyPadding: {  // the first 10, 20, ... keys of each sample
      const Tensor seen = zeros({s.batch, 1, 1, s.keys}, TensorOptions(kBool).device(kCPU));
      for (int64_t b = 0; b < s.batch; ++b) seen[b].narrow(-1, 0, 10 * (b + 1)).fill_(true);
      return seen;
    }
    default: return {};
  }
}

// In float64 on the CPU, rounded to `dtype`.
Inputs inputs_of(const AttentionSetup& s, ScalarType dtype) {
  const auto rounded = [&](IntArrayRef sizes, uint64_t seed) { return some(sizes, seed).to(dtype).to(kFloat64); };
  Inputs in{rounded({s.batch, s.heads, s.queries, s.width}, 1), rounded({s.batch, s.shared_heads, s.keys, s.width}, 2),
            rounded({s.batch, s.shared_heads, s.keys, s.out_width}, 3), mask_of(s), s.mask == Mask::Causal};
  if (s.mask == Mask::Added) in.mask = in.mask.to(dtype).to(kFloat64);
  return in;
}

Inputs inputs_on_gpu(const Inputs& in, ScalarType dtype) {
  const auto move = [&](const Tensor& t) { return t.detach().to(dtype).cuda().requires_grad_(); };
  Inputs moved{move(in.q), move(in.k), move(in.v), in.mask, in.causal};
  if (in.mask.defined()) moved.mask = in.mask.scalar_type() == kBool ? in.mask.cuda() : in.mask.to(dtype).cuda();
  return moved;
}

// The formula, with weights multiplied by `factors` after softmax where defined.
Tensor formula(const Inputs& in, const Tensor& factors = {}) {
  const int64_t sharing = in.q.size(1) / in.k.size(1);
  const Tensor k = in.k.repeat_interleave(sharing, 1), v = in.v.repeat_interleave(sharing, 1);
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor scores = in.q.matmul(k.mT()) / std::sqrt(static_cast<double>(in.q.size(-1)));
  if (in.causal) {
    const auto shape = TensorOptions(kBool).device(kCPU);
    scores = scores.masked_fill(ones({in.q.size(2), in.k.size(2)}, shape).triu(1), hidden);
  }
  if (in.mask.defined()) {
    scores = in.mask.scalar_type() == kBool ? scores.masked_fill(in.mask.logical_not(), hidden) : scores + in.mask;
  }
  Tensor weights = scores.softmax(-1);
  if (factors.defined()) weights = weights * factors;
  return weights.matmul(v);
}

double attention_tolerance(ScalarType dtype) { return dtype == kFloat32 ? 2e-5 : dtype == kFloat16 ? 5e-3 : 4e-2; }

void check_relative_to_largest(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.defined());
  REQUIRE(got.is_cuda());
  REQUIRE(got.sizes() == expected.sizes());
  if (expected.numel() == 0) return;
  const double largest = std::max(1.0, expected.detach().abs().max().item<double>());
  const Tensor off = (got.detach().cpu().to(kFloat64) - expected.detach()).abs().max();
  CHECK(off.item<double>() < attention_tolerance(got.scalar_type()) * largest);
}

// Values and gradients of the result times numbers that differ.
void check_against_formula(const Inputs& reference, const Inputs& gpu, const Tensor& out, const Tensor& factors = {}) {
  const Inputs leaves{reference.q.detach().requires_grad_(), reference.k.detach().requires_grad_(),
                      reference.v.detach().requires_grad_(), reference.mask, reference.causal};
  const Tensor expected = formula(leaves, factors);
  check_relative_to_largest(out, expected);
  const Tensor grad = some(expected.sizes(), 9).to(out.scalar_type());
  expected.backward(grad.to(kFloat64));
  out.backward(grad.cuda());
  check_relative_to_largest(gpu.q.grad(), leaves.q.grad());
  check_relative_to_largest(gpu.k.grad(), leaves.k.grad());
  check_relative_to_largest(gpu.v.grad(), leaves.v.grad());
}

void check_attention(SDPBackend backend, const AttentionSetup& s, ScalarType dtype) {
  INFO(s.name, ", ", name(dtype));
  const SDPBackendGuard only{backend};
  const Inputs reference = inputs_of(s, dtype), gpu = inputs_on_gpu(reference, dtype);
  if (gpu.choice() != backend) {
    const std::string why = sdp_refusals(gpu.q, gpu.k, gpu.v, gpu.given_mask(), 0.0, gpu.causal, std::nullopt, true);
    CHECK_MESSAGE((backend == SDPBackend::cudnn_attention && !s.cudnn), why);
    CHECK_THROWS_AS(gpu.attend(), NotImplementedError);
    return;
  }
  const Tensor out = gpu.attend();
  CHECK(out.transpose(1, 2).is_contiguous());  // heads side by side
  check_against_formula(reference, gpu, out);
}

bool has_cudnn_attention() {
  if (!cuda::is_available()) return false;
  const Tensor t = ones({1, 1, 64, 64}, TensorOptions(kBFloat16).device(kCUDA));
  return fused_sdp_choice(t, t, t) == SDPBackend::cudnn_attention;
}

TEST_CASE("cuda: attention through cuDNN" * doctest::skip(!cuda::is_available())) {
  if (!has_cudnn_attention()) {
    MESSAGE("skipped: no cuDNN");
    return;
  }
  for (const AttentionSetup& setup : kAttentionSetups) {
    for (const ScalarType dtype : {kFloat16, kBFloat16}) check_attention(SDPBackend::cudnn_attention, setup, dtype);
  }
}

TEST_CASE("cuda: attention by tiles" * doctest::skip(!cuda::is_available())) {
  for (const AttentionSetup& setup : kAttentionSetups) {
    for (const ScalarType dtype : {kFloat32, kFloat16, kBFloat16}) {
      check_attention(SDPBackend::efficient_attention, setup, dtype);
    }
  }
}

TEST_CASE("cuda: attention by operators" * doctest::skip(!cuda::is_available())) {
  const SDPBackendGuard only{SDPBackend::math};
  for (const AttentionSetup& setup : kAttentionSetups) {
    INFO(setup.name);
    const Inputs reference = inputs_of(setup, kFloat32), gpu = inputs_on_gpu(reference, kFloat32);
    check_against_formula(reference, gpu, gpu.attend());
  }
}

struct FusedBackend {
  SDPBackend backend;
  ScalarType dtype;
};
std::vector<FusedBackend> fused_backends() {
  std::vector<FusedBackend> all = {{SDPBackend::efficient_attention, kFloat32},
                                   {SDPBackend::efficient_attention, kBFloat16}};
  if (has_cudnn_attention()) all.push_back({SDPBackend::cudnn_attention, kBFloat16});
  return all;
}

TEST_CASE("cuda: attention of a packed projection and of other layouts" * doctest::skip(!cuda::is_available())) {
  for (const auto& [backend, dtype] : fused_backends()) {
    const SDPBackendGuard only{backend};
    INFO(name(dtype));
    // (B, T, 3, H, E): queries, keys and values of a position side by side.
    const Tensor packed = some({2, 70, 3, 4, 64}, 5).to(dtype).cuda().requires_grad_();
    const auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2); };
    const Inputs views{part(0), part(1), part(2), {}, true};
    const Tensor out = views.attend();
    out.sum().backward();
    const Tensor leaf = packed.detach().cpu().to(kFloat64).requires_grad_();
    const auto own = [&](int64_t i) { return leaf.select(2, i).transpose(1, 2); };
    const Tensor expected = formula({own(0), own(1), own(2), {}, true});
    check_relative_to_largest(out, expected);
    expected.sum().backward();
    check_relative_to_largest(packed.grad(), leaf.grad());

    // Gaps within rows, odd addresses, one tensor for all heads.
    const Inputs reference = inputs_of(kAttentionSetups[0], dtype), plain = inputs_on_gpu(reference, dtype);
    for (const TensorLayout& layout : kLayouts) {
      INFO(layout.name);
      const Inputs laid_out{layout.arrange(plain.q), layout.arrange(plain.k), layout.arrange(plain.v), {}, false};
      check_relative_to_largest(laid_out.attend(), formula(reference));
    }
    const Tensor one = some({1, 1, 64, 64}, 6).to(dtype).to(kFloat64);
    const Tensor repeated = one.to(dtype).cuda().expand({2, 3, 64, 64});
    check_relative_to_largest(scaled_dot_product_attention(repeated, repeated, repeated),
                              formula({one, one, one, {}}).expand({2, 3, 64, 64}));
  }
}

void check_attention_of_nothing(ScalarType dtype) {
  INFO(name(dtype));
  const auto shape = TensorOptions(dtype).device(kCUDA);
  const Tensor some_keys = ones({1, 1, 3, 8}, shape), none = zeros({1, 1, 0, 8}, shape).requires_grad_();
  CHECK(scaled_dot_product_attention(none, some_keys, some_keys).sizes() == IntArrayRef{1, 1, 0, 8});
  const Tensor queries = ones({1, 1, 3, 8}, shape).requires_grad_();
  const Tensor nothing = scaled_dot_product_attention(queries, none, none);
  CHECK(nothing.abs().sum().item<float>() == 0);
  nothing.sum().backward();
  CHECK(queries.grad().abs().sum().item<float>() == 0);
  CHECK(none.grad().sizes() == none.sizes());
}

TEST_CASE("cuda: other shapes of attention" * doctest::skip(!cuda::is_available())) {
  const Tensor q = some({2, 5, 16}, 1), k = some({3, 1, 7, 16}, 2), v = some({7, 8}, 3);
  const Tensor got = scaled_dot_product_attention(q.to(kFloat32).cuda(), k.to(kFloat32).cuda(), v.to(kFloat32).cuda());
  const Tensor expected = (q.matmul(k.mT()) / 4).softmax(-1).matmul(v);
  check_relative_to_largest(got, expected);
  // No queries, no keys.
  for (ScalarType dtype : {kFloat32, kBFloat16}) check_attention_of_nothing(dtype);
}

TEST_CASE("cuda: attention drops the same weights forward and backward" * doctest::skip(!cuda::is_available())) {
  constexpr double kP = 0.3;
  for (const auto& [backend, dtype] : fused_backends()) {
    // A block of the stream begins with a row of 100 or 128 weights, not with one of 61.
    for (const auto& [keys, causal] : {std::pair(128, false), {128, true}, {100, true}, {61, false}, {61, true}}) {
      if (backend == SDPBackend::cudnn_attention && keys != 128) continue;
      // Values that are the identity show the weights, dropped ones as zeros.
      INFO(str(dtype), " ", keys, " keys, causal ", causal);
      const AttentionSetup setup{"", 2, 4, 4, keys, keys, 64, keys, causal ? Mask::Causal : Mask::None};
      Inputs reference = inputs_of(setup, dtype);
      reference.v = eye(keys, TensorOptions(kFloat64).device(kCPU)).expand({2, 4, keys, keys}).contiguous();
      const Inputs gpu = inputs_on_gpu(reference, dtype);
      const SDPBackendGuard only{backend};
      manual_seed(3);
      const Tensor out = gpu.attend(kP);
      const Tensor kept = out.detach().cpu().ne(0).to(kFloat64);
      const Tensor seen = causal ? ones({keys, keys}, TensorOptions(kFloat64).device(kCPU)).tril().expand(kept.sizes())
                                 : ones(kept.sizes(), TensorOptions(kFloat64).device(kCPU));
      const double count = seen.sum().item<double>(), rate = kept.sum().item<double>() / count;
      CHECK(std::abs(rate - (1 - kP)) < 5 * std::sqrt(kP * (1 - kP) / count));
      check_against_formula(reference, gpu, out, kept / (1 - kP));

      const auto again = [&](uint64_t seed) {
        manual_seed(seed);
        return gpu.attend(kP).detach();
      };
      CHECK(again(3).equal(out.detach()));
      CHECK(!again(4).equal(out.detach()));
      CHECK(!gpu.attend(kP).detach().equal(gpu.attend(kP).detach()));
    }
  }
}

TEST_CASE("cuda: a seed drops the same weights by tiles and by operators" * doctest::skip(!cuda::is_available())) {
  for (const auto& [dtype, tolerance] : {std::pair(kFloat32, 1e-5), {kFloat16, 4e-3}, {kBFloat16, 3e-2}}) {
    for (const int64_t keys : {64, 61, 3}) {
      INFO(str(dtype), " ", keys, " keys");
      const Inputs gpu = inputs_on_gpu(inputs_of({"", 2, 2, 2, 70, keys, 32, 32}, dtype), dtype);
      const auto by = [&](SDPBackend backend) {
        const SDPBackendGuard only{backend};
        manual_seed(11);
        return gpu.attend(0.4).detach().to(kFloat32);
      };
      CHECK(by(SDPBackend::efficient_attention).allclose(by(SDPBackend::math), tolerance, tolerance));
    }
  }
}

TEST_CASE("cuda: rows of attention that see nothing are zero" * doctest::skip(!cuda::is_available())) {
  for (const auto& [backend, dtype] : fused_backends()) {
    INFO(name(dtype));
    const SDPBackendGuard only{backend};
    const Inputs reference = inputs_of({"", 1, 2, 2, 64, 64, 64, 64}, dtype);
    Inputs gpu = inputs_on_gpu(reference, dtype);
    gpu.mask = ones({64, 64}, TensorOptions(kBool).device(kCUDA));
    gpu.mask.narrow(0, 5, 2).fill_(false);
    if (gpu.choice() != backend) continue;
    const Tensor out = gpu.attend();
    out.sum().backward();
    const auto hidden = [](const Tensor& t) { return t.detach().narrow(2, 5, 2).abs().max().item<double>(); };
    CHECK(hidden(out) == 0);
    CHECK(hidden(gpu.q.grad()) == 0);
    for (const Tensor& t : {out, gpu.q.grad(), gpu.k.grad(), gpu.v.grad()}) {
      CHECK(t.detach().to(kFloat32).isfinite().all().item<bool>());
    }
    check_relative_to_largest(out.narrow(2, 7, 57), formula(reference).narrow(2, 7, 57));
  }
}

TEST_CASE("cuda: which back end attention takes" * doctest::skip(!cuda::is_available())) {
  const auto heads = [](ScalarType dtype, int64_t width) {
    return ones({1, 2, 64, width}, TensorOptions(dtype).device(kCUDA));
  };
  const auto choice = [](const Tensor& t, double p = 0) { return fused_sdp_choice(t, t, t, std::nullopt, p); };
  CHECK(choice(heads(kFloat32, 64)) == SDPBackend::efficient_attention);
  CHECK(choice(heads(kFloat32, 64), 0.5) == SDPBackend::efficient_attention);
  CHECK(choice(heads(kFloat64, 64)) == SDPBackend::math);
  CHECK(choice(heads(kFloat32, 300)) == SDPBackend::math);
  const Tensor half = heads(kFloat16, 64), odd = heads(kFloat16, 60);
  CHECK(choice(odd) == SDPBackend::efficient_attention);
  const Tensor mask = zeros({64, 64}, half.options()).requires_grad_();
  CHECK(fused_sdp_choice(half, half, half, mask) == SDPBackend::math);
  if (has_cudnn_attention()) {
    CHECK(choice(half) == SDPBackend::cudnn_attention);
    CHECK(choice(half, 0.5) == SDPBackend::cudnn_attention);
    CHECK(sdp_refusals(half, half, half) == "");
    globalContext().setUserEnabledCuDNN(false);
    CHECK(choice(half) == SDPBackend::efficient_attention);
    globalContext().setUserEnabledCuDNN(true);
  }
  {
    const SDPBackendGuard only{SDPBackend::cudnn_attention};
    const Tensor t = heads(kFloat32, 64);
    CHECK(choice(t) == SDPBackend::error);
    CHECK(sdp_refusals(t, t, t).find("efficient_attention: switched off; math: switched off") != std::string::npos);
    CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t), NotImplementedError);
  }
  CHECK_THROWS_AS(ops::_scaled_dot_product_efficient_attention(heads(kFloat64, 8), heads(kFloat64, 8),
                                                               heads(kFloat64, 8), {}, true, 0.0, false, {}),
                  NotImplementedError);
  CHECK_THROWS_AS(ops::_scaled_dot_product_cudnn_attention(heads(kFloat32, 8), heads(kFloat32, 8), heads(kFloat32, 8),
                                                           {}, true, 0.0, false, false, {}),
                  NotImplementedError);
}

TEST_CASE("cuda: attention holds no weights of all pairs" * doctest::skip(testing::nothing_is_cached())) {
  constexpr int64_t kLength = 16384;
  for (const auto& [backend, dtype] : fused_backends()) {
    INFO(name(dtype));
    const SDPBackendGuard only{backend};
    const auto heads = [&] { return randn({1, 2, kLength, 64}, TensorOptions(dtype).device(kCUDA)).requires_grad_(); };
    const Tensor q = heads(), k = heads(), v = heads();
    const int64_t before = cuda::memory_allocated();
    cuda::reset_peak_memory_stats();
    scaled_dot_product_attention(q, k, v, std::nullopt, 0.1, true).sum().backward();
    // The weights of both heads would take 1 GiB in 16 bits.
    CHECK(cuda::max_memory_allocated() - before < int64_t{128} << 20);
  }
}

TEST_CASE("cuda: attention by tiles gives the same bits every time, and can be differentiated twice" *
          doctest::skip(!cuda::is_available())) {
  const SDPBackendGuard only{SDPBackend::efficient_attention};
  const AttentionSetup setup{"", 1, 4, 2, 70, 80, 32, 32, Mask::None};
  const Inputs reference = inputs_of(setup, kFloat32);
  const auto gradients = [&](const Inputs& in, const Tensor& out, bool create_graph) {
    return autograd::grad({out.pow(2).sum()}, {in.q, in.k, in.v}, {}, create_graph, create_graph);
  };
  const Inputs gpu = inputs_on_gpu(reference, kFloat32);
  const auto first = gradients(gpu, gpu.attend(), false), second = gradients(gpu, gpu.attend(), false);
  for (size_t i = 0; i < 3; ++i) CHECK(first[i].equal(second[i]));

  const auto twice = [&](const Inputs& in, const Tensor& out) {
    const auto once = gradients(in, out, true);
    return autograd::grad({once[0].pow(2).sum() + once[1].pow(2).sum() + once[2].pow(2).sum()}, {in.q, in.k, in.v});
  };
  const Inputs leaves{reference.q.requires_grad_(), reference.k.requires_grad_(), reference.v.requires_grad_(), {}};
  const auto expected = twice(leaves, formula(leaves)), got = twice(gpu, gpu.attend());
  for (size_t i = 0; i < 3; ++i) {
    const double largest = expected[i].abs().max().item<double>();
    CHECK((got[i].cpu().to(kFloat64) - expected[i]).abs().max().item<double>() < 1e-4 * largest);
  }
  CHECK_THROWS_AS(twice(gpu, gpu.attend(0.5)), NotImplementedError);
}

}  // namespace
