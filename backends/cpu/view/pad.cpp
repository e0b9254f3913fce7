#include "core/ops/view/pad.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// For each index of a padded dimension, the input index that it reads.
std::vector<int64_t> shown_places(int64_t size, int64_t before, int64_t after, PadMode mode) {
  std::vector<int64_t> shown(static_cast<size_t>(size + before + after));
  for (size_t o = 0; o < shown.size(); ++o) {
    // A crop of more than the size may give an index out of range; clamping keeps it valid.
    const auto i = static_cast<int64_t>(o - static_cast<size_t>(before));
    if (mode == PadMode::Replicate) {
      shown[o] = std::clamp<int64_t>(i, 0, size - 1);
    } else {
      shown[o] = i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    }
  }
  return shown;
}

// The padded dimensions as up to three, depth x height x width, and all before them as one.
struct PadPlan {
  int64_t planes = 1;
  int64_t in_sizes[3] = {1, 1, 1}, out_sizes[3] = {1, 1, 1};
  int64_t first = 0, last = 0;  // the part [first, last) of a padded row that shows one of the input, from `start` on
  int64_t start = 0;
  std::vector<int64_t> shown[3];

  PadPlan(IntArrayRef in, IntArrayRef pad, PadMode mode) {
    const size_t padded = pad.size() / 2;
    for (size_t d = 0; d < in.size() - padded; ++d) planes *= in[d];
    for (size_t i = 0; i < 3; ++i) {
      const bool pads = i < padded;
      const int64_t before = pads ? pad[2 * i] : 0, after = pads ? pad[2 * i + 1] : 0;
      in_sizes[2 - i] = pads ? in[in.size() - 1 - i] : 1;
      out_sizes[2 - i] = in_sizes[2 - i] + before + after;
      shown[2 - i] = shown_places(in_sizes[2 - i], before, after, mode);
    }
    const int64_t before = pad[0];
    start = std::clamp<int64_t>(-before, 0, in_sizes[2]);
    first = std::min(std::max<int64_t>(before, 0), out_sizes[2]);
    last = std::clamp(in_sizes[2] + before, first, out_sizes[2]);
  }

  // Calls body(row of the padded tensor, row that it shows) for each row of the given planes.
  template <class Body>
  void for_each_row(int64_t first_plane, int64_t last_plane, const Body& body) const {
    int64_t out_row = first_plane * out_sizes[0] * out_sizes[1];
    for (int64_t plane = first_plane; plane < last_plane; ++plane) {
      for (int64_t z : shown[0]) {
        for (int64_t y : shown[1]) body(out_row++, (plane * in_sizes[0] + z) * in_sizes[1] + y);
      }
    }
  }

  int64_t grain() const {
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, out_sizes[0] * out_sizes[1] * out_sizes[2]));
  }
};

struct PadLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, const PadPlan& plan) {
    const T* from = static_cast<const T*>(in.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    const int64_t in_width = plan.in_sizes[2], width = plan.out_sizes[2];
    const int64_t* shown = plan.shown[2].data();
    parallel_for(0, plan.planes, plan.grain(), [&](int64_t begin, int64_t end) {
      plan.for_each_row(begin, end, [&](int64_t out_row, int64_t in_row) {
        T* out_line = to + out_row * width;
        const T* line = from + in_row * in_width;
        for (int64_t x = 0; x < plan.first; ++x) out_line[x] = line[shown[x]];
        std::copy_n(line + plan.start, plan.last - plan.first, out_line + plan.first);
        for (int64_t x = plan.last; x < width; ++x) out_line[x] = line[shown[x]];
      });
    });
  }
};

struct PadBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_in, const Tensor& grad_out, const PadPlan& plan) {
    const T* from = grad_out.data_ptr<T>();
    T* to = grad_in.data_ptr<T>();
    const int64_t in_width = plan.in_sizes[2], width = plan.out_sizes[2];
    const int64_t* shown = plan.shown[2].data();
    parallel_for(0, plan.planes, plan.grain(), [&](int64_t begin, int64_t end) {
      plan.for_each_row(begin, end, [&](int64_t out_row, int64_t in_row) {
        for (int64_t x = 0; x < width; ++x) {
          T& sum = to[in_row * in_width + shown[x]];
          sum = sum + from[out_row * width + x];
        }
      });
    });
  }
};

void border_pad(const Tensor& out, const Tensor& in, IntArrayRef pad, PadMode mode) {
  pick_bytes<PadLoop>(in.element_size())(out, in, PadPlan(in.sizes(), pad, mode));
}

void border_pad_backward(const Tensor& grad_in, const Tensor& grad_out, IntArrayRef pad, PadMode mode) {
  pick<PadBackwardLoop>(TypeList<float, double, complex<float>, complex<double>>(), grad_in.scalar_type(),
                        "pad_backward")(grad_in, grad_out, PadPlan(grad_in.sizes(), pad, mode));
}

}  // namespace

void register_pad() {
  kernels::border_pad.set(kCPU, border_pad);
  kernels::border_pad_backward.set(kCPU, border_pad_backward);
}

}  // namespace rush::cpu
