#include "core/ops/view/pad.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

namespace {

struct PadAxis {
  int64_t size = 1, padded = 1, before = 0;

  // The input index that output index `o` reads.
  __device__ int64_t shown(int64_t o, PadMode mode) const {
    const int64_t i = o - before;
    if (mode == PadMode::Replicate) return min(max(i, int64_t{0}), size - 1);
    return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
  }
};

// The padded dimensions as depth x height x width, and all dimensions before them as planes.
struct PadPlan {
  PadAxis axis[3];
  PadMode mode;

  PadPlan(IntArrayRef in, IntArrayRef pad, PadMode mode) : mode(mode) {
    for (size_t i = 0; i < pad.size() / 2; ++i) {
      const int64_t size = in[in.size() - 1 - i];
      axis[2 - i] = {size, size + pad[2 * i] + pad[2 * i + 1], pad[2 * i]};
    }
  }
  // The input element that output element `o` reads.
  __device__ int64_t source(int64_t o) const {
    const int64_t x = o % axis[2].padded, y = o / axis[2].padded % axis[1].padded;
    const int64_t plane_and_z = o / axis[2].padded / axis[1].padded;
    const int64_t z = plane_and_z % axis[0].padded, plane = plane_and_z / axis[0].padded;
    return ((plane * axis[0].size + axis[0].shown(z, mode)) * axis[1].size + axis[1].shown(y, mode)) * axis[2].size +
           axis[2].shown(x, mode);
  }
};

template <class T>
struct Pad {
  PadPlan plan;
  T* out;
  const T* in;
  __device__ void operator()(int64_t o) const { out[o] = in[plan.source(o)]; }
};

struct PadLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, const PadPlan& plan) {
    for_each_index("pad", out.numel(),
                   Pad<T>{plan, static_cast<T*>(out.data_ptr()), static_cast<const T*>(in.data_ptr())});
  }
};

// The output indices that read input index i of a dimension: i itself, and a range of reflections or copies at either
// end. Visited one by one, so that each input element is summed by one thread in a fixed order.
struct ShownAt {
  int64_t place[3][2];  // ranges [begin, end)
  int ranges;

  __device__ ShownAt(const PadAxis& a, int64_t i, PadMode mode) : ranges(0) {
    if (mode == PadMode::Replicate) {
      // The indices that are clamped to i form one range; without padding it is i alone.
      const int64_t begin = i == 0 ? 0 : max(i + a.before, int64_t{0});
      const int64_t end = i == a.size - 1 ? a.padded : min(i + a.before + 1, a.padded);
      add(begin, end);
      return;
    }
    add_place(a, i);
    if (i != 0) add_place(a, -i);                             // mirrored at the beginning
    if (i != a.size - 1) add_place(a, 2 * (a.size - 1) - i);  // and at the end
  }

 private:
  __device__ void add_place(const PadAxis& a, int64_t i) {
    const int64_t o = i + a.before;
    if (o >= 0 && o < a.padded) add(o, o + 1);
  }
  __device__ void add(int64_t begin, int64_t end) {
    if (begin >= end) return;
    place[ranges][0] = begin;
    place[ranges++][1] = end;
  }
};

template <class T>
struct PadBackward {
  PadPlan plan;
  T* grad_in;
  const T* grad_out;
  __device__ void operator()(int64_t i) const {
    const PadAxis* a = plan.axis;
    const int64_t x = i % a[2].size, y = i / a[2].size % a[1].size, z = i / a[2].size / a[1].size % a[0].size;
    const int64_t plane = i / a[2].size / a[1].size / a[0].size;
    const ShownAt zs(a[0], z, plan.mode), ys(a[1], y, plan.mode), xs(a[2], x, plan.mode);
    T sum = grad_in[i];
    for (int rz = 0; rz < zs.ranges; ++rz) {
      for (int64_t oz = zs.place[rz][0]; oz < zs.place[rz][1]; ++oz) {
        for (int ry = 0; ry < ys.ranges; ++ry) {
          for (int64_t oy = ys.place[ry][0]; oy < ys.place[ry][1]; ++oy) {
            const T* row = grad_out + ((plane * a[0].padded + oz) * a[1].padded + oy) * a[2].padded;
            for (int rx = 0; rx < xs.ranges; ++rx) {
              for (int64_t ox = xs.place[rx][0]; ox < xs.place[rx][1]; ++ox) sum = sum + row[ox];
            }
          }
        }
      }
    }
    grad_in[i] = sum;
  }
};

struct PadBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_in, const Tensor& grad_out, const PadPlan& plan) {
    for_each_index("pad_backward", grad_in.numel(),
                   PadBackward<T>{plan, grad_in.data_ptr<T>(), grad_out.data_ptr<T>()});
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
  kernels::border_pad.set(kCUDA, border_pad);
  kernels::border_pad_backward.set(kCUDA, border_pad_backward);
}

}  // namespace rush::cuda
