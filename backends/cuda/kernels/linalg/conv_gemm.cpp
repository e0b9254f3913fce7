// With P = N * OD * OH * OW output positions and K = C / groups * taps, for each group:
//   output (P, O / groups) = rows (P, K) weight^T (K, O / groups), rows being the input's windows (unfold),
//   rows (P, K) = output (P, O / groups) weight (O / groups, K), folded back: the gradient by the input,
//   weight (O / groups, K) = output^T (O / groups, P) rows (P, K): the gradient by the weight.
// The batch is split into chunks of images, so that the rows take a bounded amount of memory.
#include "backends/cuda/kernels/linalg/conv_gemm.h"

#include <algorithm>

#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/kernels/nn/unfold.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

constexpr int64_t kMostRowElements = int64_t(1) << 28;

WindowLayout layout_of(const Tensor& input, const Tensor& weight, const Tensor& output, const ConvGeometry& geometry) {
  WindowLayout l{input.sizes()[0], input.sizes()[1], geometry.groups, {}, {}, {}, geometry, {}};
  for (size_t d = 0; d < 3; ++d) {
    l.image[d] = input.sizes()[d + 2];
    l.kernel[d] = weight.sizes()[d + 2];
    l.windows[d] = output.sizes()[d + 2];
  }
  std::copy(input.strides().begin(), input.strides().end(), l.strides.begin());
  return l;
}

Tensor images(const Tensor& t, int64_t begin, int64_t count) {
  DimVector sizes(t.sizes());
  sizes[0] = count;
  return detail::make_view(t, sizes, t.strides(), t.storage_offset() + begin * t.strides()[0]);
}

void assign(const Tensor& to, const Tensor& from) {
  Tensor target = to;
  native::copy_(target, from, false);
}

// Some images of a convolution and the matrices that they make.
class ImageChunk {
 public:
  ImageChunk(const Tensor& input, const Tensor& output, const Tensor& weight, const WindowLayout& layout)
      : input_(input), output_(output), weight_(weight), layout_(layout), groups_(layout.groups) {
    rows_ = empty(layout.row_count() * groups_ * layout.depth());
    channels_last_ = empty(layout.row_count() * channels());
  }

  void compute_output() const {
    unfold(rows_, input_, layout_);
    gemm(output_matrix(false), rows_matrix(), weight_matrix(true), 0, 1);
    assign(output_, output_as_image());
  }
  void compute_input() const {
    assign(output_as_image(), output_);
    gemm(rows_matrix(), output_matrix(false), weight_matrix(false), 0, 1);
    fold(input_, rows_, layout_);
  }
  void compute_weight(bool first) const {
    unfold(rows_, input_, layout_);
    assign(output_as_image(), output_);
    gemm(weight_matrix(false), output_matrix(true), rows_matrix(), first ? 0 : 1, 1);
  }

 private:
  int64_t channels() const { return output_.sizes()[1]; }
  Tensor empty(int64_t n) const { return detail::empty_contiguous(n, input_.scalar_type(), input_.device()); }

  // (groups, P, K)
  Tensor rows_matrix() const {
    const int64_t depth = layout_.depth();
    return detail::make_view(rows_, {groups_, layout_.row_count(), depth}, {depth, groups_ * depth, 1}, 0);
  }
  // (groups, P, O / groups), or transposed
  Tensor output_matrix(bool transposed) const {
    const int64_t columns = channels() / groups_, rows = layout_.row_count();
    return transposed ? detail::make_view(channels_last_, {groups_, columns, rows}, {columns, 1, channels()}, 0)
                      : detail::make_view(channels_last_, {groups_, rows, columns}, {columns, channels(), 1}, 0);
  }
  // The same memory as (N, O, OD, OH, OW)
  Tensor output_as_image() const {
    const int64_t c = channels(), w = layout_.windows[2], h = layout_.windows[1], d = layout_.windows[0];
    return detail::make_view(channels_last_, output_.sizes(), {d * h * w * c, 1, h * w * c, w * c, c}, 0);
  }
  // (groups, O / groups, K), or transposed; weight is row-major
  Tensor weight_matrix(bool transposed) const {
    const int64_t rows = channels() / groups_, depth = layout_.depth(), offset = weight_.storage_offset();
    return transposed ? detail::make_view(weight_, {groups_, depth, rows}, {rows * depth, 1, depth}, offset)
                      : detail::make_view(weight_, {groups_, rows, depth}, {rows * depth, depth, 1}, offset);
  }

  const Tensor &input_, &output_, &weight_;
  const WindowLayout& layout_;
  int64_t groups_;
  Tensor rows_, channels_last_;
};

// Calls body(chunk, whether it is the first) for chunks of the images of the batch.
template <class Body>
void for_each_chunk(const Tensor& input, const Tensor& output, const Tensor& weight, const ConvGeometry& geometry,
                    const Body& body) {
  WindowLayout layout = layout_of(input, weight, output, geometry);
  const int64_t batch = layout.batch, row_elements = layout.row_count() / batch * layout.groups * layout.depth();
  const int64_t step = std::clamp<int64_t>(kMostRowElements / row_elements, 1, batch);
  for (int64_t begin = 0; begin < batch; begin += step) {
    layout.batch = std::min(step, batch - begin);
    const Tensor some_input = images(input, begin, layout.batch), some_output = images(output, begin, layout.batch);
    body(ImageChunk(some_input, some_output, weight, layout), begin == 0);
  }
}

}  // namespace

void conv_by_gemm(const Tensor& output, const Tensor& input, const Tensor& weight, const ConvGeometry& geometry) {
  for_each_chunk(input, output, native::contiguous(weight), geometry,
                 [](const ImageChunk& chunk, bool) { chunk.compute_output(); });
}

void conv_transpose_by_gemm(const Tensor& input, const Tensor& output, const Tensor& weight,
                            const ConvGeometry& geometry) {
  for_each_chunk(input, output, native::contiguous(weight), geometry,
                 [](const ImageChunk& chunk, bool) { chunk.compute_input(); });
}

void conv_weight_by_gemm(const Tensor& weight, const Tensor& output, const Tensor& input,
                         const ConvGeometry& geometry) {
  const Tensor sums =
      weight.is_contiguous() ? weight : detail::empty_contiguous(weight.sizes(), weight.scalar_type(), weight.device());
  for_each_chunk(input, output, sums, geometry,
                 [](const ImageChunk& chunk, bool first) { chunk.compute_weight(first); });
  if (!sums.is_same(weight)) assign(weight, sums);
}

}  // namespace rush::cuda
