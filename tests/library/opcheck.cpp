// opcheck: for each of its checks an operator that has exactly that flaw.
#include "autograd/library/opcheck.h"

#include <doctest/doctest.h>

#include <cstring>

#include "autograd/library/register_autograd.h"
#include "core/device/backend.h"
#include "rushlight.h"

using namespace rush;
using library::opcheck;
using library::opcheck_report;
using library::OpcheckReport;

namespace {

// Operators on one tensor.
using Unary = Op<Tensor(const Tensor&)>;
#define TEST_OPERATOR(name) constinit Unary name{"opcheck_test::" #name "(Tensor x) -> Tensor"};
TEST_OPERATOR(right)
TEST_OPERATOR(writes)
TEST_OPERATOR(shares)
TEST_OPERATOR(no_meta)
TEST_OPERATOR(meta_sizes)
TEST_OPERATOR(meta_strides)
TEST_OPERATOR(meta_dtype)
TEST_OPERATOR(meta_throws)
TEST_OPERATOR(no_derivative)
TEST_OPERATOR(wrong_derivative)
TEST_OPERATOR(for_contiguous_only)
TEST_OPERATOR(constant)
TEST_OPERATOR(counts_calls)
TEST_OPERATOR(throws)
TEST_OPERATOR(only_float)
TEST_OPERATOR(unregistered)
constinit Op<Tensor(const Tensor&)> part{"opcheck_test::part(Tensor(a) x) -> Tensor(a)"};
constinit Op<Tensor&(Tensor&, const Tensor&)> gather_{"opcheck_test::gather_(Tensor(a!) x, Tensor y) -> Tensor(a!)"};
constinit Op<std::tuple<Tensor, Tensor>(const Tensor&)> one_memory{
    "opcheck_test::one_memory(Tensor x) -> (Tensor, Tensor)"};
constinit Op<Tensor(int64_t)> factory{"opcheck_test::factory(int n) -> Tensor"};
constinit Op<std::tuple<Tensor, std::vector<Tensor>>(TensorList, const std::optional<Tensor>&)> lists{
    "opcheck_test::lists(Tensor[] xs, Tensor? y) -> (Tensor, Tensor[])"};

Tensor twice(const Tensor& x) { return x * 2; }
Tensor like(const Tensor& x) { return empty_like(x); }
Tensor twice_of(const Tensor& g, const Tensor&) { return g * 2; }

// All is right unless something else is registered.
template <auto& op>
void add_right(Library& library, Tensor (*kernel)(const Tensor&) = twice, Tensor (*fake)(const Tensor&) = like) {
  library.register_kernel<op>(kCPU, kernel);
  if (fake) library.register_fake<op>(fake);
  library.register_autograd<op>([](const Tensor& g, const Tensor& x) { return twice_of(g, x); });
}

Tensor write_argument(const Tensor& x) {
  Tensor written = x;
  written.add_(1);
  return written * 2;
}

// As a kernel that reads memory in order, whatever the strides.
Tensor ignore_strides(const Tensor& x) {
  const Tensor y = empty(x.sizes(), x.options());
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<double>()[i] = 2 * x.data_ptr<double>()[i];
  return y;
}

int calls = 0;

void add_flawed(Library& library) {
  add_right<right>(library);
  add_right<writes>(library, write_argument);
  add_right<shares>(library, [](const Tensor& x) { return x.view(x.sizes()); });
  add_right<no_meta>(library, twice, nullptr);
  add_right<meta_sizes>(library, twice, [](const Tensor& x) { return empty_like(x).flatten(); });
  add_right<meta_strides>(library, twice, [](const Tensor& x) { return empty_like(x).t().contiguous().t(); });
  add_right<meta_dtype>(library, twice, [](const Tensor& x) { return empty_like(x).to(kFloat16); });
  add_right<meta_throws>(library, twice, [](const Tensor& x) -> Tensor { RUSH_THROW(ValueError, "no ", x.sizes()); });
  library.register_kernel<no_derivative>(kCPU, twice);
  library.register_fake<no_derivative>(like);
  library.register_kernel<wrong_derivative>(kCPU, twice);
  library.register_fake<wrong_derivative>(like);
  library.register_autograd<wrong_derivative>([](const Tensor& g, const Tensor&) { return g * 3; });
  add_right<for_contiguous_only>(library, ignore_strides,
                                 [](const Tensor& x) { return empty(x.sizes(), x.options()); });
  add_right<constant>(
      library, [](const Tensor& x) { return x.to(kInt64); }, [](const Tensor& x) { return empty_like(x).to(kInt64); });
  add_right<counts_calls>(library, [](const Tensor& x) { return x * 0 + ++calls; });
  add_right<throws>(library, [](const Tensor&) -> Tensor { RUSH_THROW(ValueError, "not today"); });
  add_right<only_float>(library, [](const Tensor& x) {
    RUSH_CHECK_TYPE(x.scalar_type() == kFloat32, "only float32");
    return x * 2;
  });

  library.register_kernel<part>(kCPU, [](const Tensor& x) { return x.narrow(0, 0, 1); });
  library.register_fake<part>([](const Tensor& x) { return x.narrow(0, 0, 1); });
  library.register_kernel<gather_>(kCPU, [](Tensor& x, const Tensor& y) -> Tensor& { return x.add_(y, 2); });
  library.register_fake<gather_>([](Tensor& x, const Tensor&) -> Tensor& { return x; });
  library.register_autograd<gather_>(
      [](const Tensor& g, const Tensor&, const Tensor&) { return std::tuple(g, g * 2); });
  library.register_composite<one_memory>([](const Tensor& x) {
    const Tensor y = x * 2;
    return std::tuple(y, y.flatten());
  });
  library.register_kernel<factory>(kCPU, [](int64_t n) { return ones({n}); });
  library.register_fake<factory>([](int64_t n) { return empty({n}, kMeta); });
  library.register_composite<lists>([](TensorList xs, const std::optional<Tensor>& y) {
    return std::tuple(y ? xs[0] + *y : xs[0] * 1, std::vector<Tensor>{xs[0] * 2, xs[1] * 3});
  });
}

Tensor small_matrix(ScalarType dtype = kFloat64) {
  return (arange(6, dtype).reshape({2, 3}) * 0.5 - 1).requires_grad_();
}

void add_flawed_once() { [[maybe_unused]] static const bool added = (add_operators(add_flawed), true); }

template <class O, class... T>
OpcheckReport report_of(const O& op, const T&... arguments) {
  add_flawed_once();
  return opcheck_report(op, {}, arguments...);
}

// What was not checked, apart from a GPU, for which these operators have no kernel, where there is one.
std::vector<std::string> left_out(const OpcheckReport& report) {
  std::vector<std::string> left = report.left_out;
  std::erase_if(left, [](const std::string& each) { return each.starts_with("the results on cuda: "); });
  return left;
}

// The only problem that there is.
void finds(const Unary& op, const char* expected, bool with_gradient = true) {
  CAPTURE(op.name());
  const OpcheckReport report = report_of(op, with_gradient ? small_matrix() : small_matrix().detach());
  REQUIRE(report.problems.size() == 1);
  CHECK_MESSAGE(report.problems[0].find(expected) != std::string::npos, report.problems[0]);
}

}  // namespace

TEST_CASE("opcheck finds nothing in operators that are what they say") {
  const auto nothing = [](const OpcheckReport& report) {
    for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  };
  const Tensor x = small_matrix(), before = x.detach().clone();
  nothing(report_of(right, x));
  opcheck(right, x.t());
  CHECK(equal(x, before));
  CHECK_FALSE(x.grad().defined());
  nothing(report_of(part, small_matrix().detach()));
  nothing(report_of(gather_, small_matrix(), small_matrix()));
  nothing(report_of(lists, TensorList{x, x}, std::optional<Tensor>(x)));
  nothing(report_of(lists, TensorList{x, x}, std::nullopt));
  nothing(report_of(factory, 3));
  nothing(report_of(right, empty({0, 3}, kFloat64)));
}

TEST_CASE("opcheck finds each flaw") {
  finds(writes, "the call writes argument #0 'x', and the schema does not say so: Tensor(a!) x", false);
  finds(no_meta, "the meta function throws: opcheck_test::no_meta: has no meta function");
  finds(meta_sizes, "the meta function says float64 of (6) with strides (1)");
  finds(meta_strides, "with strides (3, 1); the meta function says float64 of (2, 3) with strides (1, 2)");
  finds(meta_dtype, "the meta function says float16");
  finds(meta_throws, "the meta function throws: no (2, 3)");
  finds(no_derivative, "there is no derivative: register_autograd");
  finds(wrong_derivative, "the derivative is wrong: ");
  finds(for_contiguous_only, "the results are others when the arguments have other strides");
  finds(constant, "an argument requires a gradient, and no result does");
  finds(throws, "the call throws: not today");

  finds(shares, "result #0 shares the memory of argument #0 'x'", false);
  const OpcheckReport shared = report_of(one_memory, small_matrix());
  REQUIRE(shared.problems.size() == 1);
  CHECK(shared.problems[0].find("results #0 and #1 share memory") == 0);
  finds(counts_calls, "a call by name gives other results than the call before", false);
}

TEST_CASE("opcheck says what it could not check, and all that is wrong in one error") {
  const std::vector<std::string> without = left_out(report_of(right, small_matrix().detach()));
  REQUIRE(without.size() == 1);
  CHECK(without[0] == "the derivative: no argument requires a gradient");
  const OpcheckReport single = report_of(only_float, small_matrix(kFloat32));
  CHECK(single.problems.empty());
  REQUIRE(left_out(single).size() == 1);
  CHECK(left_out(single)[0].find("float64 copies throws: only float32") != std::string::npos);

  CHECK_THROWS_WITH_AS(opcheck(no_meta, small_matrix().detach().requires_grad_(false)),
                       doctest::Contains("opcheck_test::no_meta: opcheck: (1) the meta function throws: "), Error);
  CHECK_THROWS_AS(opcheck(unregistered, small_matrix()), Error);
}

namespace {

// A device in the CPU's memory, which is there while a test says so.
struct Emulated final : Backend {
  int device_count() noexcept override { return count; }
  Allocator& allocator() override { return rush::allocator(kCPU); }
  void copy_bytes(void* to, Device, const void* from, Device, size_t nbytes) override { std::memcpy(to, from, nbytes); }
  bool falls_back_to_cpu() const override { return true; }
  int count = 1;
};
DeviceType emulated;

TEST_OPERATOR(same_everywhere)
TEST_OPERATOR(differs)

}  // namespace

TEST_CASE("opcheck finds a device whose results differ") {
  static Emulated backend;
  emulated = register_backend("opcheck", backend);
  add_operators([](Library& library) {
    add_right<same_everywhere>(library);
    library.register_kernel<same_everywhere>(emulated, twice);
    add_right<differs>(library);
    library.register_kernel<differs>(emulated, [](const Tensor& x) { return x * 2 + 0.001; });
  });
  const OpcheckReport same = report_of(same_everywhere, small_matrix());
  CHECK(same.problems.empty());
  CHECK(left_out(same).empty());
  finds(differs, "the results on opcheck differ from those on cpu");
  const OpcheckReport absent = report_of(right, small_matrix());
  CHECK(absent.problems.empty());
  REQUIRE(left_out(absent).size() == 1);
  CHECK(left_out(absent)[0].find(
            "the results on opcheck: opcheck_test::right: has no function for tensors on opcheck") == 0);
  backend.count = 0;
  CHECK(left_out(report_of(right, small_matrix())).empty());
}

#undef TEST_OPERATOR
