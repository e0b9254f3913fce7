// The parts of rush_conformance: it must fail what is wrong as surely as it passes what is right.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rushlight.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/factorization.h"
#include "tests/conformance/run_case.h"
#include "tests/temporary_folder.h"

using namespace conformance;
using rush::Tensor;
using rush::testing::TemporaryFolder;

namespace {

Tensor matrix(std::vector<double> values, int64_t rows) {
  const auto count = static_cast<int64_t>(values.size());
  return rush::tensor(rush::ArrayRef<double>(values), rush::kFloat64).view({rows, count / rows});
}

Tensor doubles(std::vector<double> values) { return rush::tensor(rush::ArrayRef<double>(values), rush::kFloat64); }

// The verdict on one case whose line is `line`, with these tensors beside it.
Verdict judge(const std::string& line, const rush::io::NamedTensors& tensors) {
  TemporaryFolder folder;
  const std::string path = folder.write("cases.jsonl", line + "\n");
  rush::io::save_safetensors(folder / "cases.safetensors", tensors);
  const CaseFile file(path);
  REQUIRE(file.cases().size() == 1);
  return run_case(file, file.cases()[0], rush::kCPU);
}

const std::string kMul = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";

std::string two_by_two(const std::string& key, const std::string& more = "") {
  return R"({"tensor":")" + key + R"(","dtype":"float64","shape":[2,2])" + more + "}";
}

// A case of mul with gradients; `schema` and `output` can be made wrong.
std::string mul_case(const std::string& schema = kMul, const std::string& output = two_by_two("o")) {
  std::string quoted = nlohmann::json(schema).dump();
  return R"({"id":"mul/float64/0","op":"mul","overload":")" + schema.substr(0, schema.find('(')) + R"(","schema":)" +
         quoted + R"(,"dtype":"float64","args":[)" + two_by_two("a", R"(,"grad":true)") + "," +
         two_by_two("b", R"(,"strides":[1,2],"grad":true)") + R"(],"kwargs":{},"outputs":[)" + output +
         R"(],"grad_outputs":{"0":)" + two_by_two("go") + R"(},"grads":{"a":)" + two_by_two("ga") + R"(,"b":)" +
         two_by_two("gb") + "}}";
}

rush::io::NamedTensors mul_tensors() {
  return {{"a", matrix({1, 2, 3, 4}, 2)},        {"b", matrix({5, 6, 7, 8}, 2)},
          {"o", matrix({5, 12, 21, 32}, 2)},     {"go", matrix({1, 10, 100, 1000}, 2)},
          {"ga", matrix({5, 60, 700, 8000}, 2)}, {"gb", matrix({1, 20, 300, 4000}, 2)}};
}

void check_failed(const Verdict& verdict, const std::string& reason) {
  CHECK(verdict.outcome == Outcome::Failed);
  CAPTURE(verdict.reason);
  CHECK(verdict.reason.find(reason) != std::string::npos);
}

}  // namespace

TEST_CASE("run_case: right outputs and gradients pass, each wrong one fails") {
  const rush::io::NamedTensors good = mul_tensors();
  const Verdict verdict = judge(mul_case(), good);
  CAPTURE(verdict.reason);
  CHECK(verdict.outcome == Outcome::Passed);
  const std::pair<size_t, const char*> outputs[] = {
      {2, "output 0: 1 of 4 values differ, at (1, 0): got 21, expected 22"},
      {4, "gradient of a: 1 of 4 values differ, at (1, 0): got 700, expected 701"},
      {5, "gradient of b: 1 of 4 values differ, at (1, 0): got 300, expected 301"}};
  for (const auto& [which, reason] : outputs) {
    rush::io::NamedTensors wrong = mul_tensors();
    wrong[which].second.data_ptr<double>()[2] += 1;
    check_failed(judge(mul_case(), wrong), reason);
  }
}

TEST_CASE("run_case: another schema, dtype, shape or an exception fails; an unknown operator is missing") {
  const rush::io::NamedTensors tensors = mul_tensors();
  check_failed(judge(mul_case("aten::mul.Tensor(Tensor self, Tensor factor) -> Tensor"), tensors),
               "the schema is aten::mul.Tensor(Tensor self, Tensor other)");
  rush::io::NamedTensors single = tensors;
  single[2].second = tensors[2].second.to(rush::kFloat32);
  check_failed(judge(mul_case(kMul, R"({"tensor":"o","dtype":"float32","shape":[2,2]})"), single),
               "output 0: has dtype float64, expected float32");
  rush::io::NamedTensors flat = tensors;
  flat[2].second = tensors[2].second.view({4});
  check_failed(judge(mul_case(kMul, R"({"tensor":"o","dtype":"float64","shape":[4]})"), flat),
               "output 0: has shape (2, 2), expected (4)");
  rush::io::NamedTensors bad = tensors;
  bad[0].second = matrix({1, 2, 3}, 1);
  std::string line = mul_case();
  line.replace(line.find("[2,2]"), 5, "[1,3]");
  check_failed(judge(line, bad), "threw: ");

  const Verdict missing = judge(mul_case("aten::no_such_operator(Tensor self, Tensor other) -> Tensor"), tensors);
  CHECK(missing.outcome == Outcome::Missing);
  CHECK(missing.reason == "aten::no_such_operator is not registered");
}

TEST_CASE("run_case: numbers are outputs, and so is what must be undefined") {
  const std::string no_tensor = R"({"id":"equal/0","op":"equal","overload":"aten::equal","schema":)"
                                R"("aten::equal(Tensor self, Tensor other) -> bool","dtype":"float64","args":[)" +
                                two_by_two("a") + "," + two_by_two("a") +
                                R"(],"kwargs":{},"outputs":[{"tensor":"same","dtype":"bool","shape":[]}]})";
  rush::io::NamedTensors tensors = mul_tensors();
  tensors.emplace_back("same", rush::scalar_tensor(true, rush::kBool));
  CHECK(judge(no_tensor, tensors).outcome == Outcome::Passed);
  tensors.back().second.fill_(false);
  check_failed(judge(no_tensor, tensors), "output 0: 1 of 1 values differ");
  check_failed(judge(mul_case(kMul, "null"), tensors), "output 0: there is one, expected none");
}

TEST_CASE("run_case: outputs have the strides that a case gives, and share memory with whom it says") {
  const auto transposed = [](const char* strides, const char* shares) {
    return R"x({"id":"t/0","op":"t","overload":"aten::t","schema":"aten::t(Tensor(a) self) -> Tensor(a)",)x"
           R"("dtype":"float64","args":[)" +
           two_by_two("a") + R"(],"kwargs":{},"outputs":[)" +
           two_by_two("o", std::string(R"(,"strides":)") + strides + R"(,"shares":)" + shares) + "]}";
  };
  const rush::io::NamedTensors tensors = {{"a", matrix({1, 2, 3, 4}, 2)}, {"o", matrix({1, 3, 2, 4}, 2)}};
  CHECK(judge(transposed("[1,2]", "\"a\""), tensors).outcome == Outcome::Passed);
  check_failed(judge(transposed("[2,1]", "\"a\""), tensors), "output 0 has strides (1, 2), expected (2, 1)");
  check_failed(judge(transposed("[1,2]", "null"), tensors), "output 0 shares memory with \"a\", expected null");
}

TEST_CASE("ArgumentReader: another order of the elements in memory") {
  TemporaryFolder folder;
  const std::string path = folder.write("cases.jsonl", mul_case());
  rush::io::save_safetensors(folder / "cases.safetensors", {{"m", matrix({1, 2, 3, 4, 5, 6}, 2)}});
  const auto read = [&](ArgumentOrder order) {
    const CaseFile file(path, order);
    const auto spec = nlohmann::json::parse(R"({"tensor":"m","dtype":"float64","shape":[2,3]})");
    return ArgumentReader(file, rush::kCPU).read(spec, "Tensor").as<Tensor>();
  };
  const Tensor reversed = read(ArgumentOrder::Reversed), spread = read(ArgumentOrder::Spread);
  CHECK(reversed.strides() == rush::IntArrayRef{1, 2});
  CHECK(spread.strides() == rush::IntArrayRef{6, 2});
  for (const Tensor& each : {reversed, spread}) CHECK(!difference(each, matrix({1, 2, 3, 4, 5, 6}, 2), {}));
}

TEST_CASE("run_case: what is to be refused must throw an error of the library") {
  std::string line = mul_case();
  line.insert(line.size() - 1, R"(,"refused":"the sizes must match")");
  rush::io::NamedTensors tensors = mul_tensors();
  check_failed(judge(line, tensors), "is not refused, expected: the sizes must match");
  tensors[0].second = matrix({1, 2, 3}, 1);
  line.replace(line.find("[2,2]"), 5, "[1,3]");
  CHECK(judge(line, tensors).outcome == Outcome::Passed);
}

TEST_CASE("ArgumentReader: strides as given, complex pairs, special numbers and lists") {
  TemporaryFolder folder;
  const std::string path = folder.write("cases.jsonl", mul_case());
  rush::io::save_safetensors(
      folder / "cases.safetensors",
      {{"m", matrix({1, 2, 3, 4}, 2)}, {"e", matrix({1, 1, 2, 2}, 2)}, {"c", matrix({1, 2, 3, 4}, 2)}});
  const CaseFile file(path);
  ArgumentReader reader(file, rush::kCPU);
  const auto read = [&](const char* text, const char* type) { return reader.read(nlohmann::json::parse(text), type); };

  const Tensor strided =
      read(R"({"tensor":"m","dtype":"float64","shape":[2,2],"strides":[1,3]})", "Tensor").as<Tensor>();
  CHECK(strided.strides() == rush::IntArrayRef{1, 3});
  CHECK(!difference(strided, matrix({1, 2, 3, 4}, 2), {}));
  const Tensor expanded =
      read(R"({"tensor":"e","dtype":"float64","shape":[2,2],"strides":[1,0],"expanded":true,"grad":true})", "Tensor")
          .as<Tensor>();
  CHECK(expanded.strides() == rush::IntArrayRef{1, 0});
  CHECK(expanded.is_leaf());
  CHECK(!difference(expanded, matrix({1, 1, 2, 2}, 2), {}));
  REQUIRE(reader.differentiated().size() == 1);
  CHECK(reader.differentiated()[0].first == "e");

  const Tensor complex = read(R"({"tensor":"c","dtype":"complex128","shape":[2]})", "Tensor").as<Tensor>();
  CHECK(complex.data_ptr<rush::complex<double>>()[1] == rush::complex<double>(3, 4));
  CHECK(read(R"({"complex":[1,-2]})", "Scalar").as<rush::complex<double>>() == rush::complex<double>(1, -2));
  CHECK(read(R"({"float":"-inf"})", "Scalar").as<double>() == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(read(R"({"float":"nan"})", "Scalar").as<double>()));
  CHECK(read(R"({"dtype":"bfloat16"})", "ScalarType?").as<rush::ScalarType>() == rush::kBFloat16);
  CHECK(read(R"({"device":"test"})", "Device?").as<rush::Device>() == rush::Device(rush::kCPU));
  CHECK(read(R"({"memory_format":"channels_last"})", "MemoryFormat?").is<rush::MemoryFormat>());
  CHECK(read("[]", "Tensor[]").is<std::vector<Tensor>>());
  CHECK(read("[]", "int[2]").is<std::vector<int64_t>>());
  CHECK(read("[1, 2]", "float[]?").is<std::vector<double>>());
  CHECK(read("[null]", "Tensor?[]").is<std::vector<std::optional<Tensor>>>());
  CHECK(read("null", "Tensor?").is_none());
  CHECK_THROWS_AS(read(R"({"what":1})", "Tensor"), rush::ValueError);
  CHECK_THROWS_AS(read(R"({"tensor":"m","dtype":"float64","shape":[4]})", "Tensor"), rush::ValueError);
}

TEST_CASE("CaseFile: a malformed line is named") {
  TemporaryFolder folder;
  rush::io::save_safetensors(folder / "cases.safetensors", {});
  for (const char* line : {"{", "[]", "{}", R"({"id":"a","op":"a","overload":"a","schema":"a","dtype":"float99"})"}) {
    const std::string path = folder.write("cases.jsonl", mul_case() + "\n\n" + line + "\n");
    CHECK_THROWS_WITH_AS(CaseFile{path}, doctest::Contains((path + ":3: not a case").c_str()), rush::IOError);
  }
  const std::string alone = folder.write("alone.jsonl", mul_case());
  CHECK_THROWS_WITH_AS(CaseFile{alone}, doctest::Contains("alone.safetensors: cannot open"), rush::IOError);
}

TEST_CASE("difference: tolerances are relative to the expected value, integers exact, NaN equals NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(!difference(doubles({nan, inf, -inf, 1}), doubles({nan, inf, -inf, 1}), {}));
  CHECK(difference(doubles({nan}), doubles({1}), {1, 1}));
  CHECK(difference(doubles({1}), doubles({nan}), {1, 1}));
  CHECK(difference(doubles({inf}), doubles({-inf}), {1, 1}));
  CHECK(difference(doubles({1}), doubles({inf}), {1, 1}));
  CHECK(!difference(doubles({101.0}), doubles({100}), {0.01, 0}));
  CHECK(difference(doubles({101.1}), doubles({100}), {0.01, 0}));
  CHECK(!difference(doubles({100.5}), doubles({100}), {0, 0.5}));
  CHECK(difference(rush::tensor({int64_t{1} << 60}), rush::tensor({(int64_t{1} << 60) + 1}), {1, 1}));
  CHECK(difference(rush::tensor({true}), rush::tensor({false}), {1, 1}));
  CHECK(difference(Tensor(), doubles({1}), {}) == "is undefined");

  CHECK(tolerance_for(rush::kFloat32, "add", rush::kCPU).relative == 1.3e-6);
  CHECK(tolerance_for(rush::kFloat32, "sum", rush::kCPU).relative == 1e-4);
  CHECK(tolerance_for(rush::kFloat32, "fft.rfft2", rush::kCPU).absolute == 1e-4);
  for (const char* family : {"nn.functional.conv2d", "_softmax", "addmm_", "convolution_backward"})
    CHECK(tolerance_for(rush::kFloat32, family, rush::kCPU).absolute == 1e-4);
  CHECK(tolerance_for(rush::kFloat32, "add", rush::kCUDA).absolute == 1e-4);
  CHECK(tolerance_for(rush::kFloat64, "sum", rush::kCPU).relative == 1e-7);
  CHECK(tolerance_for(rush::kInt64, "sum", rush::kCPU).absolute == 0);
  CHECK(gradient_tolerance_for(rush::kFloat64, "add", rush::kCPU).relative == 1e-6);
}

TEST_CASE("factorizations: eigenvalues and their vectors come in any order") {
  const Tolerance tolerance{1e-7, 1e-7};
  const rush::complex<double> i(0, 1);
  const Tensor values = doubles({1, 2}) * i, turned = doubles({2, 1}) * i, other = doubles({2, 2}) * i;
  const Tensor vectors = matrix({1, 0.6, 0, 0.8}, 2) * rush::complex<double>(1), swapped = vectors.flip({1}) * i;
  const auto eig = [&](const Tensor& w, const Tensor& v) {
    return factorization_difference("linalg.eig", {w, v}, {values, vectors}, tolerance);
  };
  CHECK(!eig(values, vectors));
  CHECK(!eig(turned, swapped));
  CHECK(eig(turned, vectors) == "the eigenvectors are others");
  CHECK(eig(other, swapped) == "the eigenvalues are others");
  CHECK(!factorization_difference("linalg.eigvals", {turned}, {values}, tolerance));
  CHECK(factorization_difference("linalg.eigvals", {other}, {values}, tolerance) == "the eigenvalues are others");
  const auto grads = with_signs_of("linalg.eigvals", {turned}, {values}, {doubles({3, 5}) * i});
  CHECK(!difference(grads[0], doubles({5, 3}) * i, {}));
}

TEST_CASE("run_case: the arguments that an operator without results writes are its outputs") {
  const std::string line =
      R"({"id":"m/0","op":"_foreach_mul_","overload":"aten::_foreach_mul_.Tensor","schema":)"
      R"x("aten::_foreach_mul_.Tensor(Tensor(a!)[] self, Tensor other) -> ()","dtype":"float64","args":[[)x" +
      two_by_two("a") + "],{\"tensor\":\"s\",\"dtype\":\"float64\",\"shape\":[]}],\"kwargs\":{},\"outputs\":[" +
      two_by_two("o") + "]}";
  rush::io::NamedTensors tensors = {
      {"a", matrix({1, 2, 3, 4}, 2)}, {"s", rush::scalar_tensor(2, rush::kFloat64)}, {"o", matrix({2, 4, 6, 8}, 2)}};
  const Verdict verdict = judge(line, tensors);
  CAPTURE(verdict.reason);
  CHECK(verdict.outcome == Outcome::Passed);
  tensors[2].second = matrix({2, 4, 6, 9}, 2);
  check_failed(judge(line, tensors), "output 0: 1 of 4 values differ");
}

TEST_CASE("factorizations: other signs pass, wrong factors fail") {
  const Tolerance tolerance{1e-7, 1e-7};
  const double c = 0.6, s = 0.8;
  const Tensor q = matrix({c, -s, s, c}, 2), r = matrix({2, 1, 0, 3}, 2);
  const Tensor q_flipped = matrix({-c, -s, -s, c}, 2), r_flipped = matrix({-2, -1, 0, 3}, 2);
  const auto qr = [&](const Tensor& a, const Tensor& b) {
    return factorization_difference("linalg.qr", {a, b}, {q, r}, tolerance);
  };
  CHECK(!qr(q, r));
  CHECK(!qr(q_flipped, r_flipped));
  CHECK(qr(q, r_flipped) == "Q R is not the input");
  CHECK(qr(q_flipped, r) == "Q R is not the input");
  CHECK(qr(matrix({2 * c, -s, 2 * s, c}, 2), matrix({1, 0.5, 0, 3}, 2)) == "the columns of Q are not orthonormal");
  CHECK(qr(matrix({1, 0, 0, 1}, 2), matrix({2 * c, c - 3 * s, 2 * s, s + 3 * c}, 2)) == "R is not upper triangular");
  CHECK(qr(q.to(rush::kFloat32), r) == "output 0 is float32 (2, 2), expected float64 (2, 2)");

  const Tensor u = matrix({0, 1, 1, 0}, 2), values = doubles({3, 2}), vh = matrix({c, s, -s, c}, 2);
  const auto svd = [&](const Tensor& a, const Tensor& b, const Tensor& d) {
    return factorization_difference("linalg.svd", {a, b, d}, {u, values, vh}, tolerance);
  };
  CHECK(!svd(u, values, vh));
  CHECK(!svd(matrix({0, -1, 1, 0}, 2), values, matrix({c, s, s, -c}, 2)));
  CHECK(svd(matrix({0, -1, 1, 0}, 2), values, vh) == "U S Vh is not the input");
  CHECK(svd(u, doubles({2, 3}), vh)->find("S 2 of 2 values differ") == 0);

  const Tensor vectors = matrix({c, -s, s, c}, 2);
  const auto eigh = [&](const Tensor& w, const Tensor& v) {
    return factorization_difference("linalg.eigh", {w, v}, {values, vectors}, tolerance);
  };
  CHECK(!eigh(values, matrix({-c, -s, -s, c}, 2)));
  CHECK(eigh(values, matrix({s, -c, c, s}, 2)) == "V W V^H is not the input");

  const auto grads = with_signs_of("linalg.qr", {q_flipped, r_flipped}, {q, r}, {matrix({1, 2, 3, 4}, 2), Tensor()});
  CHECK(!difference(grads[0], matrix({-1, 2, -3, 4}, 2), {}));
  CHECK(!grads[1].defined());
  const auto dual = with_signs_of("linalg.qr", {q_flipped, r_flipped}, {q, r}, {Tensor(), matrix({1, 2, 3, 4}, 2)});
  CHECK(!difference(dual[1], matrix({-1, -2, 3, 4}, 2), {}));

  // Phases of complex factors; rows and columns beyond the factors' have none.
  const rush::complex<double> i(0, 1);
  const auto turned = with_signs_of("linalg.svd", {u * i, values, vh * -i}, {u, values, vh},
                                    {matrix({1, 2, 3, 4, 5, 6}, 2) * i, Tensor(), matrix({1, 2, 3, 4, 5, 6}, 3) * i});
  CHECK(!difference(turned[0], matrix({-1, -2, 0, -4, -5, 0}, 2) + matrix({0, 0, 3, 0, 0, 6}, 2) * i, {}));
  CHECK(!difference(turned[2], matrix({1, 2, 3, 4, 0, 0}, 3) + matrix({0, 0, 0, 0, 5, 6}, 3) * i, {}));
}
