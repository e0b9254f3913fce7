// Operators that a program adds: what rush::Library registers, and what it refuses.
#include <doctest/doctest.h>

#include "autograd/library/register_autograd.h"
#include "core/dispatch/call.h"
#include "rushlight.h"

using namespace rush;

namespace {

constinit Op<Tensor(const Tensor&, double)> scale{"library_test::scale(Tensor x, float a=2) -> Tensor"};
constinit Op<Tensor(const Tensor&)> exponential{"library_test::exponential(Tensor x) -> Tensor"};
constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)> sum_and_product{
    "library_test::sum_and_product(Tensor x, Tensor y) -> (Tensor, Tensor)"};
constinit Op<Tensor(TensorList, const std::optional<Tensor>&, IntArrayRef, std::string_view)> weighted_sum{
    "library_test::weighted_sum(Tensor[] xs, Tensor? bias, int[] weights, str reduction) -> Tensor"};
constinit Op<Tensor&(Tensor&)> double_{"library_test::double_(Tensor(a!) x) -> Tensor(a!)"};
constinit Op<Tensor(const Tensor&)> squared{"library_test::squared(Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&, const Tensor&)> squared_backward{
    "library_test::squared_backward(Tensor gradient, Tensor x) -> Tensor"};
constinit Op<std::tuple<Tensor, Tensor>(TensorList)> returns_argument{
    "library_test::returns_argument(Tensor[] xs) -> (Tensor, Tensor)"};
constinit Op<Scalar(const Tensor&)> first_number{"library_test::first_number(Tensor x) -> Scalar"};
constinit Op<Tensor(const Tensor&)> itself{"library_test::itself(Tensor(a) x) -> Tensor(a)"};
constinit Op<std::vector<Tensor>(const Tensor&, int64_t)> multiples{
    "library_test::multiples(Tensor x, int n) -> Tensor[]"};
using Mixed = std::tuple<std::vector<Tensor>, double, Tensor>;
constinit Op<Mixed(const Tensor&)> mixed{
    "library_test::mixed(Tensor x) -> (Tensor[] parts, float number, Tensor last)"};
constinit Op<Tensor&(const Tensor&, Tensor&)> twice_out{
    "library_test::twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"};
constinit Op<void(Tensor&, Tensor&)> double_both_{"library_test::double_both_(Tensor(a!) x, Tensor(b!) y) -> ()"};
constinit Op<Tensor(const Tensor&)> by_pointer{"library_test::by_pointer(Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> first_part{"library_test::first_part(Tensor(part) x) -> Tensor(part)"};
constinit Op<Tensor(const Tensor&)> above_zero{"library_test::above_zero(Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> wrong_count{"library_test::wrong_count(Tensor x) -> Tensor"};

Tensor add_up(TensorList xs, const std::optional<Tensor>& bias, IntArrayRef weights, std::string_view reduction) {
  Tensor sum = bias ? bias->clone() : zeros_like(xs[0]);
  for (size_t i = 0; i < xs.size(); ++i) sum = sum + xs[i] * weights[i];
  return reduction == "mean" ? sum / static_cast<double>(xs.size()) : sum;
}

void double_in_place(Tensor& x) {
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] *= 2;
}

// Operators with several results, or several arguments that are written.
void add_several(Library& library) {
  library.register_kernel<multiples>(kCPU, [](const Tensor& x, int64_t n) {
    std::vector<Tensor> all;
    for (int64_t i = 1; i <= n; ++i) all.push_back(x * i);
    return all;
  });
  library.register_autograd<multiples>([](TensorList g, const Tensor& x, int64_t n) {
    Tensor sum = zeros_like(x);
    for (int64_t i = 0; i < n; ++i) sum = sum + g[i] * (i + 1);
    return sum;
  });
  library.register_kernel<mixed>(kCPU, [](const Tensor& x) { return Mixed({x * 2, x * 3}, 0.5, x.exp()); });
  library.register_autograd<mixed>([](TensorList g, double, const Tensor& g_last, const Tensor&, TensorList parts,
                                      double number, const Tensor& last) {
    return g[0] * 2 + g[1] * static_cast<double>(parts.size() + 1) + g_last * last * number * 2;
  });
  library.register_kernel<twice_out>(kCPU, [](const Tensor& x, Tensor& out) -> Tensor& { return out.copy_(x * 2); });
  library.register_kernel<double_both_>(kCPU, [](Tensor& x, Tensor& y) {
    double_in_place(x);
    double_in_place(y);
  });
  library.register_kernel<by_pointer>(kCPU, [](const Tensor& x) {
    Tensor y = x.detach().clone();
    double_in_place(y);
    return y;
  });
}

void add_all(Library& library) {
  add_several(library);
  library.register_kernel<scale>(kCPU, [](const Tensor& x, double a) { return x * a; });
  library.register_fake<scale>([](const Tensor& x, double) { return empty_like(x); });
  library.register_autograd<scale>([](const Tensor& g, const Tensor&, double a) { return scale(g, a); });

  library.register_kernel<exponential>(kCPU, [](const Tensor& x) { return x.exp(); });
  library.register_autograd<exponential>([](const Tensor& g, const Tensor&, const Tensor& y) { return g * y; });

  library.register_kernel<sum_and_product>(kCPU,
                                           [](const Tensor& x, const Tensor& y) { return std::tuple(x + y, x * y); });
  library.register_autograd<sum_and_product>(
      [](const Tensor& g_sum, const Tensor& g_product, const Tensor& x, const Tensor& y) {
        return std::tuple(g_sum + g_product * y, g_sum + g_product * x);
      });

  library.register_kernel<weighted_sum>(kCPU, add_up);
  library.register_autograd<weighted_sum>([](const Tensor& g, TensorList xs, const std::optional<Tensor>& bias,
                                             IntArrayRef weights, std::string_view reduction) {
    const double by = reduction == "mean" ? static_cast<double>(xs.size()) : 1;
    Tensors gradients;
    for (const int64_t weight : weights) gradients.push_back(g * weight / by);
    if (bias) gradients.push_back(g / by);
    return gradients;
  });

  library.register_kernel<double_>(kCPU, [](Tensor& x) -> Tensor& { return x.mul_(2); });
  library.register_autograd<double_>([](const Tensor& g, const Tensor&) { return g * 2; });

  library.register_kernel<squared>(kCPU, [](const Tensor& x) { return x * x; });
  library.register_autograd<squared, squared_backward>();
  library.register_composite<squared_backward>([](const Tensor& g, const Tensor& x) { return 2 * g * x; });

  library.register_kernel<returns_argument>(kCPU, [](TensorList xs) { return std::tuple(xs[0].clone(), xs[1]); });
  library.register_kernel<first_number>(kCPU, [](const Tensor& x) { return x.flatten()[0].item(); });
  library.register_kernel<itself>(kCPU, [](const Tensor& x) { return x; });

  library.register_kernel<first_part>(kCPU, [](const Tensor& x) { return x.narrow(0, 0, 1); });
  library.register_autograd<first_part>([](const Tensor& g, const Tensor& x) {
    return cat({g, zeros_like(x.narrow(0, 1, x.size(0) - 1))}, 0);
  });

  library.register_kernel<above_zero>(kCPU, [](const Tensor& x) { return x.index({x.gt(0)}); });

  library.register_kernel<wrong_count>(kCPU, [](const Tensor& x) { return x.clone(); });
  library.register_autograd<wrong_count>([](const Tensor& g, const Tensor&) { return Tensors{g, g}; });
}

void add_all_once() { [[maybe_unused]] static const bool added = (add_operators(add_all), true); }

Tensor three_numbers() { return tensor({0.5, -1.5, 2.0}).to(kFloat64).requires_grad_(); }

// add_operators(body) throws an E whose message has `expected`, and registers nothing.
template <class E>
void refused(void (*body)(Library&), const char* expected) {
  const size_t count = registry().operators().size();
  try {
    add_operators(body);
    FAIL("nothing was thrown; expected: ", expected);
  } catch (const E& error) {
    CHECK_MESSAGE(error.msg().find(expected) != std::string::npos, error.msg());
  }
  CHECK(registry().operators().size() == count);
}

}  // namespace

TEST_CASE("an operator that a program adds is called like any other") {
  add_all_once();
  CHECK(equal(scale(tensor({1.0f, 2.0f}), 3), tensor({3.0f, 6.0f})));
  CHECK(equal(call_operator("library_test::scale", {tensor({1.0f, 2.0f})})[0].as<Tensor>(), tensor({2.0f, 4.0f})));
  CHECK(first_number(tensor({3.0f, 4.0f})).toDouble() == 3);
  const Tensor shape = scale(empty({2, 3}, TensorOptions(kMeta)), 1);
  CHECK(shape.device().is_meta());
  CHECK(shape.sizes() == IntArrayRef{2, 3});
  CHECK_THROWS_WITH_AS(exponential(empty({2}, TensorOptions(kMeta))), doctest::Contains("has no meta function"),
                       NotImplementedError);
}

TEST_CASE("derivatives are lambdas and operators, with results, lists and optional arguments") {
  add_all_once();
  using autograd::gradcheck, autograd::gradgradcheck;
  const auto chain = [](const Tensors& in) { return Tensors{scale(exponential(squared(in[0])), 0.5)}; };
  CHECK(gradcheck(chain, {three_numbers()}));
  CHECK(gradgradcheck(chain, {three_numbers()}));
  CHECK(scale(three_numbers(), 1).grad_fn()->name() == "ScaleBackward");

  const auto one_of_two = [](const Tensors& in) { return Tensors{std::get<1>(sum_and_product(in[0], in[1]))}; };
  CHECK(gradcheck(one_of_two, {three_numbers(), three_numbers()}));
  for (const char* reduction : {"mean", "sum"}) {
    const auto with_bias = [&](const Tensors& in) {
      return Tensors{weighted_sum({in[0], in[1]}, in[2], {3, 4}, reduction)};
    };
    CHECK(gradcheck(with_bias, {three_numbers(), three_numbers(), three_numbers()}));
  }
  const auto in_place = [](const Tensors& in) {
    Tensor copy = in[0].clone();
    return Tensors{double_(copy) * copy};
  };
  CHECK(gradcheck(in_place, {three_numbers()}));
}

TEST_CASE("a derivative gets a list of gradients for a list of results, and none for a number") {
  add_all_once();
  using autograd::gradcheck;
  CHECK(gradcheck([](const Tensors& in) { return multiples(in[0], 3); }, {three_numbers()}));
  CHECK(gradcheck([](const Tensors& in) { return Tensors{multiples(in[0], 3)[1]}; }, {three_numbers()}));
  const auto parts = [](const Tensors& in) {
    auto [list, number, last] = mixed(in[0]);
    return Tensors{list[1] + number, last};
  };
  CHECK(gradcheck(parts, {three_numbers()}));
}

TEST_CASE("arguments that are written stand anywhere, and an operator of which they are all returns nothing") {
  add_all_once();
  Tensor x = three_numbers().detach(), y = x.clone(), out = empty_like(x);
  CHECK(twice_out(x, out).is_same(out));
  CHECK(equal(out, x * 2));
  CHECK(call_operator("library_test::twice.out", {x}, {{"out", y}})[0].as<Tensor>().is_same(y));
  const int64_t version = x._version();
  double_both_(x, y);
  CHECK(call_operator("library_test::double_both_", {x, y}).empty());
  CHECK(equal(y, out * 4));
  CHECK(x._version() == version + 2);

  auto compiled = compile([](const Tensor& in) {
    Tensor a = in * 1, b = in * 3;
    double_both_(a, twice_out(a, b));
    return a + b;
  });
  for (int i = 0; i < 3; ++i) CHECK(equal(compiled(ones({2}, kFloat64)), full({2}, 6.0, kFloat64)));
}

TEST_CASE("without a derivative, a function's own results are refused where a gradient is required") {
  add_all_once();
  const char* const expected = "an argument requires a gradient, and there is no derivative";
  const Tensor x = three_numbers();
  CHECK_THROWS_WITH_AS(by_pointer(x), doctest::Contains(expected), NotImplementedError);
  Tensor product = x * 1, plain = ones({3}, kFloat64);
  CHECK_THROWS_WITH_AS(double_both_(plain, product), doctest::Contains(expected), NotImplementedError);
  CHECK(equal(plain, ones({3}, kFloat64)));
  CHECK(first_number(x).toDouble() == 0.5);
  const NoGradGuard no_grad;
  CHECK(equal(by_pointer(x), x * 2));
}

TEST_CASE("a saved argument that was written since, and gradients of another number, end the backward pass") {
  add_all_once();
  const Tensor x = three_numbers();
  Tensor copy = x.clone();
  const Tensor y = squared(copy);
  copy.mul_(2);
  CHECK_THROWS_WITH_AS(y.sum().backward(), doctest::Contains("modified by an inplace operation"), Error);
  CHECK_THROWS_WITH_AS(wrong_count(three_numbers()).sum().backward(),
                       doctest::Contains("its derivative returned 2 gradients for 1 tensors"), ValueError);
}

TEST_CASE("a compiled function says what an operator lacks whose sizes depend on values") {
  add_all_once();
  auto compiled = compile([](const Tensor& x) { return above_zero(x) * 2 + 1; });
  for (int i = 0; i < 3; ++i) CHECK(compiled(tensor({1.0f, -1.0f})).numel() == 1);
  CHECK_THROWS_WITH_AS(compiled(tensor({1.0f, 1.0f})), doctest::Contains("needs Tag::DynamicOutputShape"), ValueError);
}

TEST_CASE("an argument that is returned as it is keeps its history: the schema must say so") {
  add_all_once();
  const Tensor x = three_numbers(), y = three_numbers();
  CHECK_THROWS_WITH_AS(returns_argument({x, y}), doctest::Contains("returns an argument as it is"), ValueError);
  CHECK(y.is_leaf());
  CHECK(itself(x).is_same(x));
}

TEST_CASE("a result is a view for autograd whatever its schema calls the set that shares memory") {
  add_all_once();
  const Tensor x = three_numbers(), base = x * 1;
  Tensor part = first_part(base);
  part.mul_(5);
  base.sum().backward();
  CHECK(equal(x.grad(), tensor({5.0, 1.0, 1.0}).to(kFloat64)));
}

namespace {

constinit Op<Tensor(const Tensor&)> same_name{"library_test::scale(Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> no_namespace{"plain(Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> unread{"library_test::unread(Tensor x"};
constinit Op<Tensor(const Tensor&, int64_t)> other_type{"library_test::other_type(Tensor x, float a) -> Tensor"};
constinit Op<Tensor(const Tensor&)> other_count{"library_test::other_count(Tensor x, float a) -> Tensor"};
constinit Op<Tensor(const Tensor&)> says_written{"library_test::says_written(Tensor(a!) x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> two_results{"library_test::two_results(Tensor x) -> (Tensor, Tensor)"};
constinit Op<Tensor(const Tensor&)> a_list{"library_test::a_list(Tensor x) -> Tensor[]"};
constinit Op<Tensor(const Tensor&, const Tensor&)> one_name{"library_test::one_name(Tensor x, Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&, bool)> other_default{"library_test::other_default(Tensor x, bool b=1) -> Tensor"};
constinit Op<Tensor(const Tensor&)> with_space{"library_test::with_space (Tensor x) -> Tensor"};
constinit Op<Tensor(const Tensor&)> fresh{"library_test::fresh(Tensor x) -> Tensor"};

Tensor copy(const Tensor& x) { return x.clone(); }

}  // namespace

TEST_CASE("what cannot be registered leaves the registry as it was") {
  add_all_once();
  refused<ValueError>([](Library& l) { l.register_kernel<same_name>(kCPU, copy); },
                      "there is an operator library_test::scale already, registered at ");
  refused<ValueError>([](Library& l) { l.register_kernel<no_namespace>(kCPU, copy); }, "needs a namespace");
  refused<ValueError>([](Library& l) { l.register_kernel<unread>(kCPU, copy); }, "schema");
  refused<TypeError>(
      [](Library& l) { l.register_kernel<other_type>(kCPU, [](const Tensor& x, int64_t) { return x.clone(); }); },
      "argument #1 'a' is float in its schema; in C++ it is int");
  refused<TypeError>([](Library& l) { l.register_kernel<other_count>(kCPU, copy); },
                     "its schema has 2 arguments, its C++ type 1");
  refused<TypeError>([](Library& l) { l.register_kernel<says_written>(kCPU, copy); },
                     "argument #0 'x' is Tensor, written, in its schema; in C++ it is Tensor");
  refused<TypeError>([](Library& l) { l.register_kernel<two_results>(kCPU, copy); },
                     "its schema has 2 results, its C++ type 1");
  refused<TypeError>([](Library& l) { l.register_kernel<a_list>(kCPU, copy); },
                     "result #0 is Tensor[] in its schema; in C++ it is Tensor");
  refused<ValueError>(
      [](Library& l) { l.register_kernel<one_name>(kCPU, [](const Tensor& x, const Tensor&) { return x.clone(); }); },
      "two arguments are named 'x'");
  refused<TypeError>(
      [](Library& l) { l.register_kernel<other_default>(kCPU, [](const Tensor& x, bool) { return x.clone(); }); },
      "argument #1 'b' is bool in its schema, and its default int");
  refused<ValueError>([](Library& l) { l.register_kernel<with_space>(kCPU, copy); }, "needs a namespace and a name");
  const auto twice = [](Library& l) {
    l.register_kernel<fresh>(kCPU, copy);
    l.register_kernel<fresh>(kCPU, copy);
  };
  refused<ValueError>(twice, "is given the same twice, at ");
  refused<ValueError>([](Library& l) { l.register_autograd<fresh>([](const Tensor& g, const Tensor&) { return g; }); },
                      "has a derivative and no kernel");
  const auto both = [](Library& l) {
    l.register_kernel<fresh>(kCPU, copy);
    l.register_composite<fresh>(copy);
  };
  refused<ValueError>(both, "a composite operator has neither kernels nor a derivative");
  refused<IndexError>([](Library&) { RUSH_THROW(IndexError, "of the body itself"); }, "of the body itself");
  const auto second_is_wrong = [](Library& l) {
    l.register_kernel<fresh>(kCPU, copy);
    l.register_kernel<same_name>(kCPU, copy);
  };
  refused<ValueError>(second_is_wrong, "already");
  CHECK_THROWS_WITH_AS(fresh(ones({1})), doctest::Contains("library_test::fresh: is not registered"),
                       NotImplementedError);
  CHECK_THROWS_WITH_AS(registry().native(same_name, copy),
                       doctest::Contains("two operators are named library_test::scale"), ValueError);
}
