// The program whose values docs/debugging.md prints: one of each type that has a printer.
#include "autograd/meta.h"
#include "core/device/backend.h"
#include "rushlight.h"

namespace {

// A type of device that the program adds.
struct Drum : rush::Backend {
  rush::Allocator& allocator() override { return rush::allocator(rush::kCPU); }
} drum;

struct Values {
  rush::Tensor undefined;
  rush::Tensor x = rush::tensor({1.5, -2.0, 3.25, 0.0, 1e-3, 7.0}, rush::kFloat64).view({2, 3});
  rush::Tensor transposed = x.t();
  rush::Tensor half = rush::tensor({0.5, -1.0}, rush::kFloat16);
  rush::Tensor brain = rush::tensor({0.5, -1.0}, rush::kBFloat16);
  rush::Tensor e4m3fn = rush::tensor({0.5, -448.0, 0.015625, 0.001953125}, rush::kFloat8_e4m3fn);
  rush::Tensor e5m2 = rush::tensor({0.5, -57344.0}, rush::kFloat8_e5m2);
  rush::Tensor largest = rush::full({1}, ~uint64_t{0}, rush::kUInt64);
  rush::Tensor flags = rush::tensor({1, 0, 1}, rush::kInt64).to(rush::kBool);
  rush::Tensor waves = rush::view_as_complex(rush::tensor({1.0, 2.0, 0.0, -1.0}, rush::kFloat32).view({2, 2}));
  rush::Tensor long_one = rush::arange(1000);
  rush::Tensor shapes_only = rush::empty({2, 3}, rush::TensorOptions(rush::kFloat32).device(rush::kMeta));
  rush::DeviceType drums = rush::register_backend("drum", drum);
  rush::Device elsewhere = "drum:0";
  rush::Tensor w = rush::ones({3}, rush::requires_grad());
  rush::Tensor y = w * rush::full({3}, 2);
  rush::Scalar half_scalar = 0.5;
  rush::Scalar complex_scalar = rush::complex<double>(1, -2);
  rush::DimVector dims{4, 5, 6};
  rush::IntArrayRef dims_view = dims;
  rush::TensorList list = rush::TensorList(&x, 1);
  rush::intrusive_ptr<rush::Node> node = y.grad_fn();
};

// Where gdb stops; nothing that an optimiser could move here from elsewhere.
[[gnu::noinline]] void look(const Values& v) { asm volatile("" : : "r"(&v) : "memory"); }

}  // namespace

int main() {
  rush::set_num_threads(1);
  const Values values;
  values.half.add_(1);
  look(values);
}
