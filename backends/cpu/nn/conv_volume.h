// Batches of volumes, their padded copies, and the sizes of a convolution, for the convolution kernels.
#pragma once
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cpu/scratch.h"
#include "core/ops/basic.h"
#include "core/ops/nn/conv.h"
#include "core/ops/view/copy.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

// (depth, height, width)
using Spatial = std::array<int64_t, 3>;

inline int64_t volume_of(const Spatial& s) { return s[0] * s[1] * s[2]; }

// (N, C, D, H, W) with any strides.
template <class T>
struct Volumes {
  explicit Volumes(const Tensor& t) : data(t.data_ptr<T>()) {
    std::copy_n(t.sizes().begin(), 5, size.begin());
    std::copy_n(t.strides().begin(), 5, stride.begin());
  }
  T* row(int64_t n, int64_t c, int64_t z, int64_t y) const {
    return data + n * stride[0] + c * stride[1] + z * stride[2] + y * stride[3];
  }
  Spatial extent() const { return {size[2], size[3], size[4]}; }

  T* data;
  std::array<int64_t, 5> size, stride;
};

// One row of a padded volume: zeros, the elements of the source's row that are inside, zeros.
template <class T>
void pad_row(T* to, int64_t width, const T* from, int64_t from_width, int64_t before) {
  const int64_t begin = std::clamp<int64_t>(before, 0, width);
  const int64_t end = std::clamp<int64_t>(before + from_width, begin, width);
  std::fill(to, to + begin, T(0));
  std::copy(from + (begin - before), from + (end - before), to + begin);
  std::fill(to + end, to + width, T(0));
}

// The volumes of a row-major tensor, with `before` zeros in front in each dimension (or, negative, as much cut off)
// and `extent` in size. Points into the tensor where nothing changes.
template <class T>
class PaddedVolumes {
 public:
  PaddedVolumes(const Tensor& source, const Spatial& before, const Spatial& extent) : extent_(extent) {
    const Volumes<T> from(source);
    if (is_unchanged(source, before, extent)) {
      data_ = from.data;
      return;
    }
    const int64_t channels = from.size[1], planes = from.size[0] * channels * extent[0];
    T* to = copy_.emplace(planes * extent[1] * extent[2]).data();
    data_ = to;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, extent[1] * extent[2]));
    parallel_for(0, planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t volume = p / extent[0], z = p % extent[0] - before[0];
        for (int64_t y = 0; y < extent[1]; ++y) {
          T* row = to + (p * extent[1] + y) * extent[2];
          const int64_t from_y = y - before[1];
          if (z < 0 || z >= from.size[2] || from_y < 0 || from_y >= from.size[3]) {
            std::fill_n(row, extent[2], T(0));
          } else {
            pad_row(row, extent[2], from.row(volume / channels, volume % channels, z, from_y), from.size[4], before[2]);
          }
        }
      }
    });
  }

  /// Of what is copied where anything changes, in bytes.
  static int64_t scratch(const Tensor& source, const Spatial& before, const Spatial& extent) {
    if (is_unchanged(source, before, extent)) return 0;
    return source.size(0) * source.size(1) * volume_of(extent) * static_cast<int64_t>(sizeof(T));
  }

  const T* data() const { return data_; }
  const Spatial& extent() const { return extent_; }
  int64_t plane() const { return extent_[1] * extent_[2]; }
  int64_t volume() const { return volume_of(extent_); }

 private:
  static bool is_unchanged(const Tensor& source, const Spatial& before, const Spatial& extent) {
    return before == Spatial{} && extent == Spatial{source.size(2), source.size(3), source.size(4)};
  }

  const T* data_ = nullptr;
  Spatial extent_;
  std::optional<Scratch<T>> copy_;
};

// Kernels read and write row-major tensors. Others are copied on their way in by native::contiguous, and on their way
// out by this: between channels-last and row-major, these are transposed copies (Note [Transposed copies]).
class RowMajorOutput {
 public:
  explicit RowMajorOutput(const Tensor& target)
      : target_(target),
        rows_(target.is_contiguous()
                  ? target
                  : rush::detail::empty_contiguous(target.sizes(), target.scalar_type(), target.device())) {}
  const Tensor& tensor() const { return rows_; }
  void store() {
    if (!target_.is_contiguous()) native::copy_(target_, rows_, false);
  }

 private:
  Tensor target_, rows_;
};

/// What native::contiguous, or a RowMajorOutput, allocates.
inline int64_t bytes_to_copy(const Tensor& t) { return t.is_contiguous() ? 0 : static_cast<int64_t>(t.nbytes()); }

// A convolution's sizes; channels are those of one group.
struct ConvSizes {
  ConvSizes(const Tensor& output, const Tensor& input, const Tensor& weight, const ConvGeometry& geometry)
      : batch(input.size(0)),
        groups(geometry.groups),
        in_channels(weight.size(1)),
        out_channels(weight.size(0) / geometry.groups),
        kernel{weight.size(2), weight.size(3), weight.size(4)},
        stride(geometry.stride),
        dilation(geometry.dilation),
        output{output.size(2), output.size(3), output.size(4)} {}

  int64_t taps() const { return volume_of(kernel); }
  int64_t depth() const { return in_channels * taps(); }  // of the product
  // Of the image's positions that the kernel sees.
  Spatial padded() const {
    Spatial extent;
    for (size_t d = 0; d < 3; ++d) extent[d] = (output[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1;
    return extent;
  }
  // Of the input with its padding. Where there is none, nothing is cut off.
  Spatial image_extent(const Tensor& input, const ConvGeometry& geometry) const {
    Spatial extent = padded();
    for (size_t d = 0; d < 3; ++d) {
      if (geometry.padding[d] == 0) extent[d] = input.size(2 + static_cast<int64_t>(d));
    }
    return extent;
  }
  // Whether neighbouring outputs see neighbouring positions, within a plane.
  bool dense() const { return stride[1] == 1 && stride[2] == 1; }

  int64_t batch, groups, in_channels, out_channels;
  Spatial kernel, stride, dilation, output;
};

// Where the taps of each channel lie in a padded image: offsets from the position of the first tap.
inline void tap_offsets(const ConvSizes& s, const Spatial& extent, int64_t* to) {
  for (int64_t c = 0; c < s.in_channels; ++c) {
    for (int64_t z = 0; z < s.kernel[0]; ++z) {
      for (int64_t y = 0; y < s.kernel[1]; ++y) {
        for (int64_t x = 0; x < s.kernel[2]; ++x) {
          const int64_t plane = c * extent[0] + z * s.dilation[0];
          *to++ = (plane * extent[1] + y * s.dilation[1]) * extent[2] + x * s.dilation[2];
        }
      }
    }
  }
}

// How the pixels of an output plane are laid out as lanes, see Note [Convolution as a product].
struct PixelLanes {
  PixelLanes(const ConvSizes& s, const Spatial& extent)
      : dense(s.dense()),
        width(s.output[2]),
        pitch(dense ? extent[2] : s.output[2]),
        row_step(s.stride[1] * extent[2]) {}
  // Lanes that `rows` rows take, a lane of the first row's first pixel being the first.
  int64_t count(int64_t rows) const { return (rows - 1) * pitch + width; }
  // The positions of the lanes, where they do not simply follow each other.
  void offsets(const ConvSizes& s, int64_t rows, int64_t* to) const {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < width; ++x) *to++ = y * row_step + x * s.stride[2];
    }
  }

  bool dense;
  int64_t width, pitch, row_step;
};

}  // namespace rush::cpu
