// Convolutions of images that have their channels last.
#pragma once
#include "backends/cpu/linalg/gemm_gathered.h"
#include "backends/cpu/nn/conv_image.h"
#include "backends/cpu/nn/conv_volume.h"

namespace rush::cpu {

// Note [Channels last]
// With its channels innermost, an image is a matrix with a row for each pixel, and a convolution
//   out[p, o] = sum over k of image[position(p) + tap(k)] weight[k, o]
// reads its rows where they lie: at depth k all of them have the same offset, so that nothing but the weight is packed.
// Rows are any pixels, of several images where these are small, and at any stride. The gradient by the weight,
//   weight[k, o] = sum over p of image[tap(k) + position(p)] grad[p, o]
// is the same product with taps and positions exchanged.
//
// Real numbers with enough channels to fill vectors are computed so; row-major images are copied for it. What has few
// channels, and what is complex or an integer, is computed as Note [Convolution as a product] says.

// The images of a batch with their channels innermost, as Math, with `before` zeros in front in each dimension (or,
// negative, as much cut off) and `extent` in size. The tensor itself where nothing changes.
template <class Math>
class PixelImages {
 public:
  PixelImages(const Tensor& source, const Spatial& before, const Spatial& extent)
      : extent_(extent), channels_(source.size(1)) {
    if (is_unchanged(source, before, extent)) {
      tensor_ = source;
      return;
    }
    tensor_ = rush::detail::empty_contiguous({source.size(0), extent[0], extent[1], extent[2], channels_},
                                             scalar_type_of<Math>, source.device());
    copy_inside(source, before);
  }

  /// Of what is copied where anything changes, in bytes.
  static int64_t scratch(const Tensor& source, const Spatial& before, const Spatial& extent) {
    if (is_unchanged(source, before, extent)) return 0;
    return source.size(0) * source.size(1) * volume_of(extent) * static_cast<int64_t>(sizeof(Math));
  }

  const Math* data() const { return tensor_.data_ptr<Math>(); }
  // Of the pixel there in the first image.
  int64_t position(int64_t z, int64_t y, int64_t x) const {
    return ((z * extent_[1] + y) * extent_[2] + x) * channels_;
  }
  int64_t image_size() const { return volume_of(extent_) * channels_; }

 private:
  static bool is_unchanged(const Tensor& source, const Spatial& before, const Spatial& extent) {
    return source.scalar_type() == scalar_type_of<Math> && source.is_contiguous(MemoryFormat::ChannelsLast3d) &&
           before == Spatial{} && extent == Spatial{source.size(2), source.size(3), source.size(4)};
  }

  void copy_inside(const Tensor& source, const Spatial& before) {
    DimVector sizes(source.sizes());
    int64_t from = source.storage_offset(), to = 0, inside = 1;
    const Spatial steps = {position(1, 0, 0), position(0, 1, 0), position(0, 0, 1)};
    for (size_t d = 0; d < 3; ++d) {
      const int64_t skipped = std::max<int64_t>(0, -before[d]), first = std::max<int64_t>(0, before[d]);
      sizes[d + 2] =
          std::max<int64_t>(0, std::min(source.size(static_cast<int64_t>(d) + 2) - skipped, extent_[d] - first));
      from += skipped * source.stride(static_cast<int64_t>(d) + 2);
      to += first * steps[d];
      inside *= sizes[d + 2];
    }
    if (inside < volume_of(extent_)) {
      Math* all = tensor_.data_ptr<Math>();
      parallel_for(0, tensor_.numel(), kGrain,
                   [&](int64_t begin, int64_t end) { std::fill(all + begin, all + end, Math(0)); });
    }
    if (inside == 0) return;
    Tensor target = rush::detail::make_view(tensor_, sizes, {image_size(), 1, steps[0], steps[1], steps[2]}, to);
    native::copy_(target, rush::detail::make_view(source, sizes, source.strides(), from), false);
  }

  Spatial extent_;
  int64_t channels_;
  Tensor tensor_;
};

inline int64_t pixel_count(const ConvSizes& s) { return s.batch * volume_of(s.output); }
// Of the tables of positions, in bytes.
inline int64_t table_bytes(const ConvSizes& s) {
  return (pixel_count(s) + s.depth()) * static_cast<int64_t>(sizeof(int64_t));
}

// Where the kernel's first tap lies for each pixel of the output, from the first image on.
template <class Math>
void pixel_positions(const ConvSizes& s, const PixelImages<Math>& images, int64_t* to) {
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t z = 0; z < s.output[0]; ++z) {
      for (int64_t y = 0; y < s.output[1]; ++y) {
        for (int64_t x = 0; x < s.output[2]; ++x) {
          *to++ = n * images.image_size() + images.position(z * s.stride[0], y * s.stride[1], x * s.stride[2]);
        }
      }
    }
  }
}

// The distance of an image's pixels in a channel; 0 where they have more than one, or are one number that is repeated.
inline int64_t pixel_step(const Tensor& images) {
  int64_t step = 1, pixels = 1;
  for (int64_t d = 4; d > 1; --d) {
    if (images.size(d) == 1) continue;
    if (pixels == 1) step = images.stride(d);
    if (images.stride(d) != step * pixels) return 0;
    pixels *= images.size(d);
  }
  return step;
}

// How the depths of a product are numbered: channel by channel, tap by tap, or channel by channel with the kernel
// turned around.
enum class TapOrder { ByChannel, ByTap, TurnedByChannel };

// The offset of each depth from the first tap's.
template <class Math>
void tap_positions(const ConvSizes& s, const PixelImages<Math>& images, TapOrder order, int64_t* to) {
  int64_t tap = 0;
  for (int64_t z = 0; z < s.kernel[0]; ++z) {
    for (int64_t y = 0; y < s.kernel[1]; ++y) {
      for (int64_t x = 0; x < s.kernel[2]; ++x, ++tap) {
        const int64_t position = images.position(z * s.dilation[0], y * s.dilation[1], x * s.dilation[2]);
        const int64_t numbered = order == TapOrder::TurnedByChannel ? s.taps() - 1 - tap : tap;
        for (int64_t c = 0; c < s.in_channels; ++c) {
          to[order == TapOrder::ByTap ? numbered * s.in_channels + c : c * s.taps() + numbered] = position + c;
        }
      }
    }
  }
}

// Whether a weight that is not row-major has its channels last.
inline bool has_taps_first(const Tensor& weight) {
  return weight.is_contiguous(MemoryFormat::ChannelsLast3d) && !weight.is_contiguous();
}

// A convolution's weight as a matrix for each group: column o at depth k is data[columns[o] + depths[k]]. A null table
// stands for 0, 1, 2, ...
template <class T>
struct WeightMatrix {
  const T* data;
  int64_t group_step;
  const int64_t *columns, *depths;
  TapOrder order;
};

template <class T>
class ChannelsLastConvolution {
 public:
  using Math = gemm_math_t<T>;
  using Shape = TileShape<Math>;

  // Whether there are enough numbers for what is stored and packed to be little.
  static bool serves(const ConvSizes& s) {
    return std::is_floating_point_v<Math> && s.out_channels >= Shape::width && s.depth() >= 64;
  }
  static int64_t scratch(const ConvSizes& s) {
    return PackedPanels<Math>::bytes(s.groups, s.out_channels, s.depth()) + table_bytes(s);
  }

  ChannelsLastConvolution(const ConvSizes& sizes, const PixelImages<Math>& images, const WeightMatrix<T>& weight,
                          const Tensor& output, const Tensor& bias)
      : s_(sizes),
        images_(images),
        output_(output),
        bias_(bias),
        is_dense_(pixel_step(output) == 1),
        pixels_(pixel_count(sizes)),
        taps_(sizes.depth()),
        positions_(pixels_),
        weight_(sizes.groups, sizes.out_channels, sizes.depth()) {
    tap_positions(s_, images_, weight.order, taps_.data());
    pixel_positions(s_, images_, positions_.data());
    pack_weight(weight);
  }

  // A task is one panel of columns for a block of pixels, whose images stay in the L2 cache.
  void run() const {
    const int64_t block = std::clamp<int64_t>(kBlockNumbers / s_.in_channels, Shape::MR, 1024);
    const int64_t blocks = (pixels_ + block - 1) / block, panels = weight_.count();
    const int64_t work = std::min(block, pixels_) * Shape::NR * s_.depth();
    const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 20) / work);
    parallel_for(0, s_.groups * blocks * panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t panel = t % panels, first = t / panels % blocks * block, group = t / panels / blocks;
        multiply_block(group, panel, first, std::min(block, pixels_ - first));
      }
    });
  }

 private:
  static constexpr int64_t kBlockNumbers = int64_t(1) << 17;

  void pack_weight(const WeightMatrix<T>& weight) const {
    const int64_t panels = weight_.count(), grain = std::max<int64_t>(1, kGrain / (Shape::NR * s_.depth()));
    parallel_for(0, s_.groups * panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t group = t / panels;
        const ImageSource<T> columns(weight.data + group * weight.group_step, weight.columns, weight.depths);
        weight_.pack(columns, group, t % panels, 0, s_.depth());
      }
    });
  }

  void multiply_block(int64_t group, int64_t panel, int64_t first, int64_t count) const {
    alignas(kVectorBytes) Math sums[Shape::MR * Shape::NR], bias[Shape::NR] = {};
    const int64_t lanes = weight_.lanes(panel);
    const int64_t channel = group * s_.out_channels + panel * Shape::NR, step = even_step(count, Shape::MR, 1);
    if (bias_.defined()) {
      const T* from = bias_.data_ptr<T>() + channel * bias_.stride(0);
      for (int64_t l = 0; l < lanes; ++l) bias[l] = static_cast<Math>(from[l * bias_.stride(0)]);
    }
    const Math* images = images_.data() + group * s_.in_channels;
    for (int64_t p = first; p < first + count; p += step) {
      const Math* rows[Shape::MR];
      const int64_t height = std::min(step, first + count - p);
      for (int64_t i = 0; i < height; ++i) rows[i] = images + positions_[p + i];
      multiply_gathered<Math>(height, s_.depth(), {rows, taps_.data()}, weight_.vectors(group, panel), false, sums,
                              Shape::NR);
      store(p, height, channel, lanes, sums, bias);
    }
  }

  void store(int64_t first, int64_t count, int64_t channel, int64_t lanes, const Math* sums, const Math* bias) const {
    T* to[Shape::MR];
    find_pixels(first, count, channel, to);
    const int64_t step = output_.stride[1];
    if (step == 1) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t l = 0; l < lanes; ++l) to[i][l] = static_cast<T>(sums[i * Shape::NR + l] + bias[l]);
      }
    } else if (is_dense_ && to[count - 1] - to[0] == count - 1) {
      for (int64_t l = 0; l < lanes; ++l) {
        T* row = to[0] + l * step;
        for (int64_t i = 0; i < count; ++i) row[i] = static_cast<T>(sums[i * Shape::NR + l] + bias[l]);
      }
    } else {
      for (int64_t l = 0; l < lanes; ++l) {
        for (int64_t i = 0; i < count; ++i) to[i][l * step] = static_cast<T>(sums[i * Shape::NR + l] + bias[l]);
      }
    }
  }

  // Where the channel is of the output's pixels from `first` on.
  void find_pixels(int64_t first, int64_t count, int64_t channel, T** to) const {
    const int64_t plane = first / s_.output[2] / s_.output[1];
    int64_t x = first % s_.output[2], y = first / s_.output[2] % s_.output[1];
    int64_t z = plane % s_.output[0], n = plane / s_.output[0];
    for (int64_t i = 0; i < count; ++i) {
      to[i] = output_.row(n, channel, z, y) + x * output_.stride[4];
      if (++x < s_.output[2]) continue;
      x = 0;
      if (++y < s_.output[1]) continue;
      y = 0;
      if (++z < s_.output[0]) continue;
      z = 0;
      ++n;
    }
  }

  const ConvSizes& s_;
  const PixelImages<Math>& images_;
  Volumes<T> output_;
  const Tensor& bias_;
  bool is_dense_;
  int64_t pixels_;
  Scratch<int64_t> taps_, positions_;
  PackedPanels<Math> weight_;
};

// weight = the gradient by the weight, for the gradient `output` of a convolution of images.
template <class T>
class ChannelsLastWeightGradient {
 public:
  using Math = gemm_math_t<T>;
  using Shape = TileShape<Math>;

  static bool serves(const ConvSizes& s) { return std::is_floating_point_v<Math> && s.out_channels >= Shape::width; }
  // The packed gradient and the sums.
  static int64_t scratch(const ConvSizes& s) {
    return PackedPanels<Math>::bytes(s.groups, s.out_channels, pixel_count(s) + s.depth()) + table_bytes(s);
  }
  ChannelsLastWeightGradient(const ConvSizes& sizes, const PixelImages<Math>& images, const Tensor& output)
      : s_(sizes),
        images_(images),
        pixels_(pixel_count(sizes)),
        taps_(sizes.depth()),
        positions_(pixels_),
        grad_(sizes.groups, sizes.out_channels, pixels_),
        sums_(rush::detail::empty_contiguous({sizes.groups, sizes.depth(), grad_.count() * Shape::NR},
                                             scalar_type_of<Math>, output.device())) {
    tap_positions(s_, images_, TapOrder::ByTap, taps_.data());
    pixel_positions(s_, images_, positions_.data());
    pack(output);
  }

  void run(const Tensor& weight) const {
    const int64_t step = even_step(s_.depth(), Shape::MR, 1), tiles = (s_.depth() + step - 1) / step;
    const int64_t work = step * Shape::NR * pixels_;
    // Of so many pixels the packed gradient stays in the L1 cache, and the image in L2, for all tiles of a panel.
    const int64_t chunk = std::clamp<int64_t>(kChunkNumbers / s_.in_channels, 128, 512);
    const int64_t panels = grad_.count(), grain = std::max<int64_t>(1, (int64_t(1) << 20) / work);
    parallel_for(0, s_.groups * panels * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = 0; first < pixels_; first += chunk) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t k = t % tiles * step;
          add_pixels(t / tiles / panels, t / tiles % panels, k, std::min(step, s_.depth() - k), first,
                     std::min(chunk, pixels_ - first));
        }
      }
    });
    store(weight);
  }

 private:
  static constexpr int64_t kChunkNumbers = int64_t(1) << 16;

  void pack(const Tensor& output) const {
    const Volumes<T> grad(output);
    const int64_t pixels = volume_of(s_.output), tasks = s_.groups * grad_.count() * s_.batch;
    parallel_for(0, tasks, std::max<int64_t>(1, kGrain / (Shape::NR * pixels)), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t % s_.batch, panel = t / s_.batch % grad_.count(), group = t / s_.batch / grad_.count();
        const MatrixSource<T> columns(grad.row(n, group * s_.out_channels, 0, 0), grad.stride[1], pixel_step(output));
        grad_.pack(columns, group, panel, n * pixels, pixels);
      }
    });
  }

  void add_pixels(int64_t group, int64_t panel, int64_t k, int64_t height, int64_t first, int64_t count) const {
    const Math* rows[Shape::MR];
    const int64_t columns = grad_.count() * Shape::NR;
    for (int64_t i = 0; i < height; ++i) rows[i] = images_.data() + group * s_.in_channels + taps_[k + i];
    Math* sums = sums_.data_ptr<Math>() + (group * s_.depth() + k) * columns + panel * Shape::NR;
    multiply_gathered<Math>(height, count, {rows, positions_.data() + first}, grad_.vectors(group, panel, first),
                            first > 0, sums, columns);
  }

  void store(const Tensor& weight) const {
    const int64_t columns = grad_.count() * Shape::NR, taps = s_.in_channels * columns;
    for (int64_t g = 0; g < s_.groups; ++g) {
      DimVector sizes(weight.sizes());
      sizes[0] = s_.out_channels;
      const Tensor from = rush::detail::make_view(
          sums_, sizes, {1, columns, s_.kernel[1] * s_.kernel[2] * taps, s_.kernel[2] * taps, taps},
          g * s_.depth() * columns);
      Tensor to = rush::detail::make_view(weight, sizes, weight.strides(),
                                          weight.storage_offset() + g * s_.out_channels * weight.stride(0));
      native::copy_(to, from, false);
    }
  }

  const ConvSizes& s_;
  const PixelImages<Math>& images_;
  int64_t pixels_;
  Scratch<int64_t> taps_, positions_;
  PackedPanels<Math> grad_;
  Tensor sums_;
};

}  // namespace rush::cpu
