// Which operator makes a NaN, as a debugger asks it: tools/gdb/rushlight_commands.py.
#include "core/dispatch/find_nan.h"

#include <doctest/doctest.h>

#include <limits>
#include <string_view>

#include "core/dispatch/registry.h"
#include "rushlight.h"
#include "tests/not_finite.h"

using namespace rush;
using rush::testing::kNan;

namespace {

// The operator of the last NaN that `body` makes; empty where it makes none.
template <class Body>
std::string_view made_by(const Body& body) {
  registry();
  detail::nan_made_by = nullptr;
  detail::find_nans = true;
  watching |= DispatchKey::Trace;
  body();
  watching = watching.without(DispatchKey::Trace);
  detail::find_nans = false;
  const std::string_view schema = detail::nan_made_by ? detail::nan_made_by.load() : "";
  return schema.substr(0, schema.find('('));
}

}  // namespace

TEST_CASE("has_nan looks into floating point and complex tensors of any layout, and not at others") {
  CHECK(has_nan(tensor({1.0, kNan})));
  CHECK_FALSE(has_nan(tensor({1.0, std::numeric_limits<double>::infinity()})));
  CHECK(has_nan(full({2}, kNan, kBFloat16)));
  CHECK(has_nan(view_as_complex(tensor({1.0, kNan}))));
  CHECK(has_nan(full({2, 2}, kNan).to_sparse()));
  CHECK_FALSE(has_nan(ones({2}, kInt64)));
  CHECK_FALSE(has_nan(empty({2}, kMeta)));
  CHECK_FALSE(has_nan(ones({2}, kFloat8_e4m3fn)));
  CHECK_FALSE(has_nan(Tensor()));
}

TEST_CASE("the operator that makes a NaN is found, with and without a graph, and not those that are given it") {
  for (const bool with_graph : {false, true}) {
    const Tensor zeros = rush::zeros({3}, requires_grad(with_graph));
    CHECK(made_by([&] { zeros.div(zeros).add(1).sum(); }) == "aten::div.Tensor");
    CHECK(made_by([&] { zeros.add(1).sum(); }).empty());
    const Tensor nans = full({3}, kNan);
    CHECK(made_by([&] { nans.mul(zeros).add(1); }).empty());
  }
}

TEST_CASE("a NaN is found where it was made within other operators, in place, or from a number") {
  const Tensor zeros = rush::zeros({3});
  CHECK(made_by([&] { zeros.true_divide(zeros); }) == "aten::div.Tensor");
  CHECK(made_by([&] { zeros.clone().div_(zeros); }) == "aten::div_.Tensor");
  CHECK(made_by([&] { zeros.clone().fill_(kNan); }) == "aten::fill_.Scalar");
}

TEST_CASE("the operator that makes a NaN in the backward pass is found") {
  const Tensor w = rush::zeros({2}, requires_grad());
  CHECK(made_by([&] { (w.sqrt() * 0).sum().backward(); }).starts_with("aten::"));
  CHECK(has_nan(w.grad()));
}

TEST_CASE("what is not initialised is no NaN that was made") {
  CHECK(made_by([] {
          for (int i = 0; i < 20; ++i) {
            const Tensor nans = full({64}, kNan);
            nans.clone();
            empty({64});
          }
        }) == "aten::full");
}
