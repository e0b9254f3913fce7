// Tables of element-wise kernels: the functor and the dtypes of each, for every backend.
#pragma once
#include <type_traits>

#include "backends/functors/pick.h"
#include "core/dispatch/kernel.h"
#include "core/iterator/tensor_iterator.h"
#include "core/scalar.h"

namespace rush {

// Note [Tables of element-wise kernels]
// A row names a kernel, its functor and the dtypes that it is compiled for. The rows stand below their functors, in
// backends/functors; `set_kernels` of each backend walks a table, compiles the backend's loops for every row and sets
// the kernels. The functor's arity and the dtype of its result are those of its operator(). A kernel that takes more
// than a functor is no row, each backend has its own function for it: `add` and `pow_scalar` choose the functor by a
// number, rounded divisions check the divisor first, `where` has operands of two dtypes.
//
// How a functor is to be run; the CPU and CUDA read from it what concerns them.
enum How : unsigned {
  kCheap = 0,
  kSlow = 1,         // takes tens of nanoseconds: threads are worth it earlier, wide accesses to memory are not
  kVectors = 2,      // takes cpu::Vec, too: Note [Functors on one number and on several]
  kEveryLayout = 4,  // worth a loop of its own for every dtype and layout, as only a * b and its like are
};

// What stands for a functor that is a template or has members:
//   F            F{numbers...}, the numbers being what the kernel gets after its iterator
//   With<F>      F<T>{numbers...}, T being the type that the computation is done in, and the numbers converted to it
//   OfStorage<F> F<T>{numbers...}, T being the type of the elements: it is given floats for Half
template <template <class> class F>
struct With {};
template <template <class> class F>
struct OfStorage {};

template <auto& kernel_, class F, class Types, unsigned how = kCheap>
struct Row {
  static constexpr auto& kernel = kernel_;
};
template <class... Rows>
struct Table {};

template <class Math>
Math number_as(const Scalar& number) {
  return number.to<Math>();
}
template <class Math, class Number>
Math number_as(Number number) {
  return static_cast<Math>(number);
}

// The functor of a row for elements of type T.
template <class T, class F, class... Numbers>
F make_functor(std::type_identity<F>, const Numbers&... numbers) {
  return F{numbers...};
}
template <class T, template <class> class F, class... Numbers>
auto make_functor(std::type_identity<With<F>>, const Numbers&... numbers) {
  return F<opmath_t<T>>{number_as<opmath_t<T>>(numbers)...};
}
template <class T, template <class> class F, class... Numbers>
auto make_functor(std::type_identity<OfStorage<F>>, const Numbers&... numbers) {
  return F<T>{numbers...};
}

}  // namespace rush
