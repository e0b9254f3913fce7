// Convolutions of enough channels for vectors, which run with their channels last on a CPU, in every layout. Of small
// whole numbers all sums are exact, so they equal those of complex numbers, which are computed in another way.
#include "tests/ops/index/index_testing.h"

using namespace rush;

namespace {

struct WideSetup {
  const char* name;
  std::vector<int64_t> input, weight;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
};

const WideSetup kWideSetups[] = {
    {"3x3", {2, 9, 7, 10}, {33, 9, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"no padding", {3, 5, 8, 9}, {16, 5, 4, 4}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"images smaller than a tile", {9, 40, 2, 2}, {48, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"one pixel", {2, 70, 5, 6}, {35, 70, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"one pixel of larger images", {3, 51, 11, 13}, {57, 51, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"a whole image", {5, 9, 4, 3}, {33, 9, 4, 3}, {2, 1}, {0, 0}, {1, 1}, 1},
    {"a whole image, one of a batch", {1, 70, 3, 3}, {35, 70, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
    {"strided", {2, 17, 11, 8}, {20, 17, 3, 2}, {2, 3}, {1, 0}, {1, 1}, 1},
    {"strided, many channels", {2, 20, 11, 8}, {80, 20, 3, 2}, {2, 3}, {1, 0}, {1, 1}, 1},
    {"strided and dilated", {1, 18, 17, 14}, {70, 18, 3, 3}, {2, 4}, {1, 2}, {3, 2}, 1},
    {"strided beyond the kernel", {2, 24, 9, 10}, {64, 24, 1, 2}, {3, 3}, {0, 1}, {1, 1}, 1},
    {"strided groups", {1, 36, 5, 6, 7}, {140, 18, 3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 1, 1}, 2},
    {"dilated", {1, 20, 12, 11}, {70, 20, 2, 3}, {1, 1}, {2, 3}, {3, 2}, 1},
    {"groups", {2, 36, 6, 5}, {51, 12, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 3},
    {"more padding than kernel", {1, 18, 3, 4}, {17, 18, 2, 2}, {1, 1}, {3, 2}, {1, 1}, 1},
    {"one dimension", {2, 33, 30}, {64, 33, 5}, {1}, {2}, {1}, 1},
    {"three dimensions", {2, 16, 4, 5, 6}, {18, 16, 2, 3, 2}, {1, 1, 1}, {1, 0, 1}, {1, 1, 2}, 1},
    {"three dimensions, strided", {1, 17, 5, 6, 5}, {32, 17, 3, 1, 2}, {2, 1, 2}, {1, 0, 0}, {1, 1, 1}, 1},
};

Tensor whole(IntArrayRef sizes) { return randint(-3, 4, sizes, kFloat64); }

// The convolution, and its gradients by input and weight for the output's gradient g.
Tensors results(const WideSetup& s, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const Tensor& g) {
  const Tensor x = input.detach().requires_grad_(), w = weight.detach().requires_grad_();
  const std::vector<int64_t> none(s.stride.size(), 0);
  const Tensor y = convolution(x, w, bias, s.stride, s.padding, s.dilation, false, none, s.groups);
  Tensors all = autograd::grad({y}, {x, w}, {g});
  all.push_back(y.detach());
  return all;
}

MemoryFormat last_of(const Tensor& t) {
  return t.dim() == 5   ? MemoryFormat::ChannelsLast3d
         : t.dim() == 4 ? MemoryFormat::ChannelsLast
                        : MemoryFormat::Contiguous;
}
// Every second row and column of a larger tensor.
Tensor with_gaps(const Tensor& t) {
  Tensor padded =
      full(IntArrayRef(DimVector(t.sizes())), 7.0, t.options()).repeat_interleave(2, -1).repeat_interleave(2, -2);
  Tensor inside = padded.slice(-1, 0, std::nullopt, 2).slice(-2, 0, std::nullopt, 2);
  inside.copy_(t);
  return inside;
}

}  // namespace

TEST_CASE("convolution of many channels: exact in every layout and dtype") {
  manual_seed(5);
  for (const WideSetup& s : kWideSetups) {
    CAPTURE(s.name);
    const Tensor x = whole(s.input), w = whole(s.weight), b = whole({s.weight[0]});
    const std::vector<int64_t> none(s.stride.size(), 0);
    const Tensor shape = convolution(x, w, std::nullopt, s.stride, s.padding, s.dilation, false, none, s.groups);
    const Tensor g = whole(shape.sizes());
    const Tensors wanted = results(s, x.to(kComplex128), w.to(kComplex128), b.to(kComplex128), g.to(kComplex128));
    const auto check = [&](const Tensors& got) {
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].sizes() == wanted[i].sizes());
        CHECK(got[i].to(kFloat64).equal(view_as_real(wanted[i]).select(-1, 0)));
      }
    };
    for (const ScalarType dtype : {kFloat32, kFloat64}) {
      CAPTURE(dtype);
      const auto of = [&](const Tensor& t) { return t.to(dtype); };
      check(results(s, of(x), of(w), of(b), of(g)));
      check(
          results(s, of(x).contiguous(last_of(x)), of(w).contiguous(last_of(w)), of(b), of(g).contiguous(last_of(g))));
      check(results(s, of(x).contiguous(last_of(x)), of(w), of(b), of(g)));
      check(results(s, with_gaps(of(x)), with_gaps(of(w)), of(b), with_gaps(of(g))));
    }
    // The gradient of a sum is one number for all.
    const Tensor one = ones({}, kFloat64).expand(shape.sizes());
    const Tensors of_sum = results(s, x, w, b, one), of_ones = results(s, x, w, b, ones(shape.sizes(), kFloat64));
    for (size_t i = 0; i < of_sum.size(); ++i) CHECK(of_sum[i].equal(of_ones[i]));
  }
}

TEST_CASE("transposed convolution of many channels: exact, with a bias where no tap reaches") {
  manual_seed(8);
  struct Transposed {
    int64_t kernel, stride, padding, output_padding, groups;
  };
  for (const auto& [kernel, stride, padding, output_padding, groups] :
       {Transposed{3, 2, 1, 1, 1}, Transposed{4, 2, 1, 0, 1}, Transposed{2, 3, 0, 2, 1}, Transposed{3, 1, 2, 0, 2}}) {
    CAPTURE(kernel);
    CAPTURE(stride);
    const Tensor x = whole({2, 128, 5, 6}), w = whole({128, 20, kernel, kernel}), b = whole({20 * groups});
    const auto run = [&](ScalarType dtype, MemoryFormat format) {
      return conv_transpose2d(x.to(dtype).contiguous(format), w.to(dtype), b.to(dtype), stride, padding, output_padding,
                              groups);
    };
    const Tensor wanted = view_as_real(run(kComplex128, MemoryFormat::Contiguous)).select(-1, 0);
    CHECK(run(kFloat64, MemoryFormat::Contiguous).equal(wanted));
    CHECK(run(kFloat32, MemoryFormat::ChannelsLast).to(kFloat64).equal(wanted));
  }
}

// Products are summed in float32, and rounded once.
TEST_CASE("convolution of many channels: 16-bit numbers are rounded once") {
  manual_seed(6);
  for (const WideSetup& s : kWideSetups) {
    CAPTURE(s.name);
    const Tensor x = whole(s.input), w = whole(s.weight);
    const std::vector<int64_t> none(s.stride.size(), 0);
    const Tensor shape = convolution(x, w, std::nullopt, s.stride, s.padding, s.dilation, false, none, s.groups);
    const Tensor g = whole(shape.sizes());
    const Tensors wanted = results(s, x.to(kFloat32), w.to(kFloat32), std::nullopt, g.to(kFloat32));
    for (const ScalarType dtype : {kBFloat16, kFloat16}) {
      CAPTURE(dtype);
      const Tensors got = results(s, x.to(dtype), w.to(dtype), std::nullopt, g.to(dtype));
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].scalar_type() == dtype);
        CHECK(got[i].equal(wanted[i].to(dtype)));
      }
    }
  }
}

TEST_CASE("convolution of many channels: the same numbers on one thread and on several") {
  manual_seed(7);
  const WideSetup s = {"", {3, 40, 15, 17}, {72, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1};
  const Tensor x = randn(s.input), w = randn(s.weight), b = randn({72}), g = randn({3, 72, 15, 17});
  const int threads = get_num_threads();
  set_num_threads(1);
  const Tensors one = results(s, x, w, b, g);
  set_num_threads(3);
  const Tensors three = results(s, x, w, b, g);
  set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) CHECK(one[i].equal(three[i]));
}
