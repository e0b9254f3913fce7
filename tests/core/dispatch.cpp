#include "core/dispatch/op.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/dispatch/call.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "rushlight.h"

using namespace rush;

namespace {

// What `body` writes to standard error.
template <class Body>
std::string printed_by(Body body) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("the highest key of a call's tensors is served first, and grad mode takes Autograd away") {
  const Tensor plain = ones({2}), recorded = ones({2}, requires_grad());
  CHECK(plain.impl()->keys() == keys_on(kCPU));
  CHECK(recorded.impl()->keys() == (keys_on(kCPU) | DispatchKey::Autograd));
  CHECK(recorded.impl()->keys().highest() == DispatchKey::Autograd);
  CHECK((plain + recorded).requires_grad());
  const NoGradGuard no_grad;
  CHECK_FALSE((plain + recorded).requires_grad());
  CHECK(empty({2}, kMeta).impl()->keys() == keys_on(kMeta));
}

TEST_CASE("operators know their name, schema and where their kernels were registered") {
  registry();
  CHECK(ops::add.name() == "aten::add.Tensor");
  CHECK_FALSE(ops::add.is_view());
  CHECK_FALSE(ops::add_.is_view());
  CHECK(ops::select.is_view());
  CHECK(ops::copy_.has_tag(Tag::AnyDevice));
  CHECK(ops::lstm_data.has_tag(Tag::AnyDevice));
  CHECK_FALSE(ops::add.has_tag(Tag::AnyDevice));
  CHECK(ops::add.has_kernel(DispatchKey::Dense));
  CHECK(ops::add.has_kernel(DispatchKey::Autograd));
  CHECK(ops::add.has_kernel(DispatchKey::Sparse));
  CHECK_FALSE(ops::atan2.has_kernel(DispatchKey::Sparse));
  CHECK(std::string(ops::add.registered_at(DispatchKey::Dense).file_name()).ends_with("core/ops/pointwise/binary.cpp"));
  CHECK(std::string(ops::add.registered_at(DispatchKey::Autograd).file_name())
            .ends_with("derivatives/pointwise/binary.cpp"));
  CHECK(registry().find("aten::add.Tensor") == &ops::add);
  CHECK(registry().find("aten::no_such_operator") == nullptr);
}

TEST_CASE("every registered schema parses, under its own name and with a kernel") {
  CHECK(registry().operators().size() > 20);
  for (const auto& [name, op] : registry().operators()) {
    const Schema schema = Schema::parse(op->schema());
    CHECK(schema.name == name);
    CHECK((op->has_kernel(DispatchKey::Dense) || op->has_kernel(DispatchKey::Sparse)));
  }
}

TEST_CASE("an operator without a kernel for the device is one line that names it") {
  auto impl = make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(nullptr, 8, Device(kCUDA, 0), nullptr, nullptr),
                                         kFloat32, Device(kCUDA, 0));
  impl->set_contiguous({2});
  const Tensor elsewhere(impl);
  if (!cuda::is_available()) CHECK_THROWS_AS(elsewhere.neg(), Error);
  CHECK_THROWS_AS(elsewhere + ones({2}), ValueError);
  // Without the backend NotImplementedError, with it and without a GPU CudaError.
  if (!cuda::is_available()) CHECK_THROWS_AS(empty({2}, kCUDA), Error);
}

TEST_CASE("the meta device computes shapes and dtypes without memory") {
  const Tensor a = empty({1 << 20, 1 << 20}, TensorOptions(kMeta)), b = empty({1 << 20}, TensorOptions(kMeta));
  const Tensor c = (a * b).exp().sum(0);
  CHECK(c.is_meta());
  CHECK(c.sizes() == IntArrayRef({1 << 20}));
  CHECK((empty({2}, TensorOptions(kInt64).device(kMeta)) / 2).scalar_type() == kFloat32);
  CHECK_THROWS_AS(empty({1}, kMeta).item(), NotImplementedError);
}

TEST_CASE("calls by name bind arguments by position and by name, and defaults") {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({10.0, 20.0});
  Stack out = call_operator("aten::add.Tensor", {a, b}, {{"alpha", 2}});
  REQUIRE(out.size() == 1);
  CHECK(out[0].as<Tensor>()[1].item<float>() == 42);
  CHECK(call_operator("aten::sum.dim_IntList", {a, 0, true})[0].as<Tensor>().sizes() == IntArrayRef({1}));
  CHECK_THROWS_AS(call_operator("aten::nothing", {}), NotImplementedError);
  CHECK_THROWS_AS(call_operator("aten::mul.Tensor", {a}), TypeError);
  CHECK_THROWS_AS(call_operator("aten::mul.Tensor", {a, b, a}), TypeError);
  CHECK_THROWS_AS(call_operator("aten::mul.Tensor", {a, "three"}), TypeError);
  CHECK_THROWS_AS(call_operator("aten::mul.Tensor", {a, b}, {{"other", a}}), TypeError);
  CHECK_THROWS_AS(call_operator("aten::mul.Tensor", {a, b}, {{"nobody", a}}), TypeError);
}

TEST_CASE("in-place calls count as writes, by type and by name") {
  const Tensor a = ones({2});
  const int64_t before = a._version();
  a.add_(1);
  CHECK(a._version() > before);
  const int64_t middle = a._version();
  call_operator("aten::mul_.Tensor", {a, a});
  CHECK(a._version() > middle);
  const int64_t after = a._version();
  CHECK_THROWS_AS(a.add_(ones({3})), ValueError);
  CHECK(a._version() == after);
}

TEST_CASE("schemas are taken apart") {
  const Schema schema = Schema::parse(
      "aten::conv(Tensor input, Tensor? bias=None, SymInt[2] stride=1, float[]? scales=None, *, str mode=\"a, b\", "
      "int[1]? "
      "dim=None, float eps=1e-05, bool flag=True) -> (Tensor(a!) first, Tensor[] rest)");
  CHECK(schema.name == "aten::conv");
  REQUIRE(schema.arguments.size() == 8);
  CHECK(schema.arguments[2].type == "int[2]");
  CHECK(schema.arguments[4].default_value->as<std::string>() == "a, b");
  CHECK(schema.arguments[4].keyword_only);
  CHECK_FALSE(schema.arguments[3].keyword_only);
  CHECK(schema.arguments[6].default_value->as<double>() == 1e-5);
  CHECK(schema.num_returns == 2);
  const auto stack = schema.bind({ones({1})}, {{"scales", std::vector<int64_t>{1, 2}}, {"dim", 3}, {"eps", 1}});
  CHECK(stack[2].as<std::vector<int64_t>>() == std::vector<int64_t>{1, 1});
  CHECK(stack[3].as<std::vector<double>>() == std::vector<double>{1, 2});
  CHECK(stack[5].as<std::vector<int64_t>>() == std::vector<int64_t>{3});
  CHECK(stack[6].as<double>() == 1);
  CHECK_THROWS_WITH_AS(schema.bind({ones({1})}, {{"stride", "wide"}}),
                       doctest::Contains("aten::conv: argument 'stride' is int[2], got str"), TypeError);
  CHECK_THROWS_AS(Schema::parse("no schema"), ValueError);
  CHECK_THROWS_WITH_AS(Schema::parse("aten::f(float a=) -> ()"), doctest::Contains("no default behind '='"),
                       ValueError);
  CHECK_THROWS_WITH_AS(Schema::parse("aten::f(bool b=true) -> ()"), doctest::Contains("[in aten::f(bool b=true)"),
                       ValueError);
}

TEST_CASE("the dispatch trace prints every call with its keys, indented by depth") {
  registry();
  const Tensor a = ones({2}, requires_grad()), b = ones({2});
  watching |= DispatchKey::Trace;
  const std::string text = printed_by([&] { a.mul(b); });
  watching = watching.without(DispatchKey::Trace);
  const size_t outer = text.find("aten::mul.Tensor -> Autograd  (keys [Autograd, Dense, cpu]");
  const size_t inner = text.find("  aten::mul.Tensor -> Dense  (keys [Dense, cpu]");
  CHECK(outer == 0);
  CHECK(inner != std::string::npos);
  CHECK(text.find("derivatives/pointwise/binary.cpp") != std::string::npos);
  CHECK(printed_by([&] { a.mul(b); }).empty());
}

TEST_CASE("a kernel is not given tensors without data, nor an undefined one") {
  const Tensor x = ones({3, 1}), on_meta = empty({3, 1}, kMeta), grad = ones({3, 1}, requires_grad());
  const Tensor indices = zeros({3, 1}, kInt64);
  CHECK_THROWS_AS(isin(x, on_meta), ValueError);
  CHECK_THROWS_AS(x.put(indices, on_meta), ValueError);
  CHECK_THROWS_AS(
      call_operator("aten::adaptive_max_pool2d_backward",
                    {ones({1, 2, 2}), ones({1, 4, 4}), empty({1, 2, 2}, TensorOptions(kInt64).device(kMeta))}),
      ValueError);
  CHECK_THROWS_AS(Tensor().detach(), Error);
  CHECK_THROWS_AS(call_operator("aten::detach", {Tensor()}), Error);
  CHECK_THROWS_AS(call_operator("aten::mul_.Tensor", {Tensor(), grad}), Error);
  CHECK_THROWS_AS(call_operator("aten::scatter_add_", {Tensor(), 0, indices, grad}), Error);
}
