// Kernels compiled at run time, up to the machine code: no GPU is needed.
#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/jit/fused_loop.h"
#include "backends/cuda/jit/headers.h"
#include "backends/cuda/jit/nvrtc.h"
#include "core/debug/stack_trace.h"
#include "core/dispatch/kernel_listener.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"
#include "core/str.h"
#include "tests/environment_guard.h"

using namespace rush;
using namespace rush::testing;
using namespace rush::cuda::jit;

namespace {

constexpr int kArchitecture = 90;

bool no_compiler() {
  try {
    return nvrtc_version() == 0;
  } catch (const CudaError&) {
    return true;
  }
}

// A source that no other test compiles.
Source negation(const std::string& comment) {
  return {"negation",
          "// " + comment + R"(
template <class T>
__global__ void negate(T* out, const T* x) { out[threadIdx.x] = -x[threadIdx.x]; })",
          {"negate<float>", "negate<::rush::Half>"}};
}

CompileError error_of(const Source& source) {
  try {
    compile(source, kArchitecture);
  } catch (const CompileError& error) {
    return error;
  }
  FAIL("it compiles");
  throw;
}

// A kernel without numbers.
class Named final : public IteratorCall {
 public:
  Named(const void* kernel, const char* name) : kernel_(kernel), name_(name) {}
  void run(DeviceType /*device*/, TensorIterator& /*iterator*/) const override {}
  const char* kernel() const override { return name_; }
  const void* kernel_address() const override { return kernel_; }
  std::vector<std::optional<Scalar>> numbers() const override { return {}; }

 private:
  const void* kernel_;
  const char* name_;
};

// bfloat16 images of 64 channels, which lie innermost, times a number of each channel.
LoopDescription channels_loop(int64_t positions) {
  const auto copy = std::make_shared<Named>(&kernels::copy, kernels::copy.name());
  const auto mul = std::make_shared<Named>(&kernels::mul, kernels::mul.name());
  LoopDescription::Place image{.dtype = kBFloat16, .strides = {2, 128}}, scale{.dtype = kFloat32, .strides = {4, 0}};
  LoopDescription::Place inner{.dtype = kFloat32, .is_inner = true, .strides = {}};
  return {{64, positions}, {image, inner, scale, inner, image}, {{copy, {1, 0}}, {mul, {3, 1, 2}}, {copy, {4, 3}}}};
}

}  // namespace

TEST_CASE("the source of a loop takes several positions of a channel, and is named by its kernels" *
          doctest::skip(no_compiler())) {
  for (const int lanes : {1, 8}) {
    const std::string one = source_text(channels_loop(49), lanes), several = source_text(channels_loop(4096), lanes);
    CHECK_FALSE(has(one, "for (int r = 0; r < 4; ++r)"));
    CHECK(has(several, "for (int r = 0; r < 4; ++r)"));
    for (const std::string& text : {one, several}) {
      CAPTURE(text);
      const Cubin cubin = compile({"loop", text, {"fused_copy__mul_copy_"}}, kArchitecture);
      CHECK(cubin.image.starts_with("\177ELF"));
    }
  }
}

TEST_CASE("an image has a symbol for each kernel that was asked for" * doctest::skip(no_compiler())) {
  const Cubin cubin = compile(negation("symbols"), kArchitecture);
  CHECK(cubin.image.starts_with("\177ELF"));
  REQUIRE(cubin.symbols.size() == 2);
  for (const std::string& symbol : cubin.symbols) CHECK(has(cubin.image, symbol));
  CHECK(has(cubin.symbols[1], "Half"));
}

TEST_CASE("an error of the compiler names the line of the source" * doctest::skip(no_compiler())) {
  const CompileError error =
      error_of({"my::scale", "\n\n__global__ void scale(float* out) {\n  out[0] = speed;\n}\n", {"scale"}});
  CHECK(has(error.what(), "my::scale does not compile: my::scale(4): error: identifier \"speed\" is undefined"));
  CHECK(!has(error.msg(), "\n"));
  CHECK(has(error.log(), "    out[0] = speed;\n"));
  const CompileError elsewhere =
      error_of({"my::scale", "#line 70 \"scale.cu\"\n__global__ void scale(float* out) { out = x; }", {}});
  CHECK(has(elsewhere.what(), "scale.cu(70): error"));
  CHECK(has(error_of({"none", "", {"scale<float>"}}).what(), "scale"));
  CHECK_THROWS_AS(compile({"zero", std::string("int a;\0int b;", 13), {}}, kArchitecture), ValueError);
  CHECK_THROWS_WITH_AS(compile({"old", "", {}}, 1), doctest::Contains("architecture"), CudaError);
}

TEST_CASE("each header of the library compiles by itself" * doctest::skip(no_compiler())) {
  for (const Header& header : headers()) {
    const std::string name = header.name;
    INFO(name);
    CHECK_NOTHROW(
        compile({"headers", "#include \"" + name + "\"\n__global__ void none() {}", {"none"}}, kArchitecture));
  }
}

TEST_CASE("a source is compiled once in a process and once in a folder" * doctest::skip(no_compiler())) {
  const EmptyCache cache;
  const int64_t before = compilations();
  const auto first = compiled(negation("once"), kArchitecture);
  CHECK(compiled(negation("once"), kArchitecture) == first);
  CHECK(compilations() == before + 1);
  const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(cache.folder / "cubins"), {}); };
  CHECK(entries() == 1);
  // Everything that the code follows from makes another entry.
  Source other = negation("once");
  other.options = {"--define-macro=OTHER"};
  compiled(other, kArchitecture);
  other.kernels.pop_back();
  compiled(other, kArchitecture);
  compiled(other, 80);
  CHECK(compilations() == before + 4);
  CHECK(entries() == 4);
}

TEST_CASE("threads that ask at once wait for one compilation" * doctest::skip(no_compiler())) {
  const EmptyCache cache;
  const int64_t before = compilations();
  std::vector<std::shared_ptr<const Cubin>> got(8);
  {
    std::vector<std::jthread> threads;
    for (auto& each : got) threads.emplace_back([&each] { each = compiled(negation("threads"), kArchitecture); });
  }
  CHECK(compilations() == before + 1);
  CHECK(std::all_of(got.begin(), got.end(), [&](const auto& each) { return each && each == got[0]; }));
}

TEST_CASE("a source that does not compile is tried again" * doctest::skip(no_compiler())) {
  const Source broken{"broken", "broken", {}};
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(compiled(broken, kArchitecture), CompileError);
}

TEST_CASE("a folder that cannot be written costs the compilation alone" * doctest::skip(no_compiler())) {
  const TemporaryFolder folder;
  const EnvironmentGuard guard("RUSH_CACHE_DIR", folder.write("file", "") + "/below");
  CHECK_NOTHROW(compiled(negation("read-only"), kArchitecture));
}

TEST_CASE("RUSH_COMPILE_DEBUG leaves the sources, and the code has their lines" * doctest::skip(no_compiler())) {
  const EmptyCache cache;
  const TemporaryFolder folder;
  const Source source = negation("debug");
  const auto plain = compiled(source, kArchitecture);
  const EnvironmentGuard guard("RUSH_COMPILE_DEBUG", folder / "sources");
  const auto debug = compiled(source, kArchitecture);
  const auto left = std::filesystem::directory_iterator(folder / "sources")->path();
  CHECK(left.filename().string().starts_with("negation-"));
  CHECK(file_content(left.string()) == source.text);
  CHECK(has(debug->image, left.filename().string()));  // in its table of lines
  CHECK(!has(plain->image, ".debug_line"));
}

TEST_CASE("the source of a loop has the program's lines, and the file's own after them" *
          doctest::skip(no_compiler())) {
  LoopDescription loop = channels_loop(49);
  CHECK(!has(source_text(loop, 1), "#line"));
  loop.steps[1].called_before = StackTrace::capture().caller_with_line();
  const std::string directive = str("#line ", __LINE__ - 1, " \"", __FILE__, "\"\n");
  const Source source{"loop", source_text(loop, 1), {"fused_copy__mul_copy_"}};
  CHECK(has(source.text, directive + "    v3[l] = "));

  const EmptyCache cache;
  const TemporaryFolder folder;
  const EnvironmentGuard guard("RUSH_COMPILE_DEBUG", folder / "sources");
  const auto cubin = compiled(source, kArchitecture);
  CHECK(has(cubin->image, "compile.cpp"));  // in its table of lines
  const std::string path = std::filesystem::directory_iterator(folder / "sources")->path(), left = file_content(path);
  CHECK(has(left, directive));
  CHECK(!has(left, kOwnLines));
  const size_t next = left.find("    v4[l] = ");  // the step after it
  const auto number = std::count(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(next), '\n') + 1;
  CHECK(has(left, str("#line ", number, " \"", path, "\"\n    v4[l] = ")));
}
