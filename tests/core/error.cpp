#include "core/error/error.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/cuda/error.h"
#include "core/complex.h"
#include "core/error/error_context.h"
#include "core/half.h"

namespace {

namespace elsewhere {
struct Shape {
  int rank;
};
void append(std::string& out, const Shape& shape) { out += "rank " + std::to_string(shape.rank); }
}  // namespace elsewhere

bool never() { return false; }

int count_evaluations(int& evaluations) { return ++evaluations; }

TEST_CASE("str concatenates values as streams would, without their surprises") {
  using rush::str;
  CHECK(str() == "");
  CHECK(str("a", 'b', std::string("c"), std::string_view("d")) == "abcd");
  CHECK(str(true, false) == "truefalse");
  CHECK(str(int8_t{65}, ' ', uint8_t{65}) == "65 65");  // dtypes, not characters
  CHECK(str(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(str(std::numeric_limits<uint64_t>::max()) == "18446744073709551615");
  CHECK(str(static_cast<const char*>(nullptr)) == "(null)");
  CHECK(str(std::vector<int64_t>{2, 3}, std::array<int, 1>{4}, std::vector<int>{}) == "(2, 3)(4)()");
  CHECK(str(elsewhere::Shape{3}, std::vector<elsewhere::Shape>{{1}}) == "rank 3(rank 1)");
}

TEST_CASE("str prints the shortest digits that read back as the same number") {
  using rush::str;
  CHECK(str(1.0, ' ', -0.5f, ' ', 0.1f, ' ', 0.1, ' ', 100000.0, ' ', 1e-7) == "1 -0.5 0.1 0.1 100000 1e-07");
  CHECK(str(1.0 / 3) == "0.3333333333333333");
  CHECK(str(std::numeric_limits<double>::infinity(), ' ', std::numeric_limits<float>::quiet_NaN()) == "inf nan");
  CHECK(str(rush::Half(0.5f), ' ', rush::BFloat16(3)) == "0.5 3");
  CHECK(str(rush::complex64(1, -2.5f), rush::complex128(0, 1)) == "(1-2.5j)(0+1j)");
}

TEST_CASE("a check throws its own type with the concatenated message") {
  const int index = 5;
  CHECK_THROWS_WITH_AS(RUSH_CHECK(index < 3, "got ", index), "got 5", rush::Error);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_VALUE(false, "value"), "value", rush::ValueError);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_TYPE(false, "type"), "type", rush::TypeError);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_INDEX(false, "index"), "index", rush::IndexError);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_NOT_IMPLEMENTED(false, "kernel"), "kernel", rush::NotImplementedError);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_IO(false, "file"), "file", rush::IOError);
  CHECK_THROWS_WITH_AS(RUSH_CHECK_LINALG(false, "singular"), "singular", rush::LinAlgError);
  CHECK_THROWS_WITH_AS(RUSH_THROW(rush::OutOfMemoryError, "no ", 2, " GiB"), "no 2 GiB", rush::OutOfMemoryError);
  CHECK_THROWS_AS(RUSH_THROW(rush::CudaError, "launch"), rush::Error);
  CHECK_THROWS_AS(RUSH_CHECK_INDEX(false, "index"), std::runtime_error);
}

TEST_CASE("a check that holds evaluates its condition once and its message never") {
  int conditions = 0;
  int messages = 0;
  RUSH_CHECK(count_evaluations(conditions) == 1, "evaluated ", count_evaluations(messages));
  RUSH_INTERNAL_ASSERT(count_evaluations(conditions) == 2, count_evaluations(messages));
  CHECK(conditions == 2);
  CHECK(messages == 0);
}

TEST_CASE("a check is one statement") {
  bool reached_else = false;
  if (never())
    RUSH_CHECK(true, "taken by the if");
  else
    reached_else = true;
  CHECK(reached_else);
}

TEST_CASE("every message is one line without control characters, and no longer than a screen") {
  CHECK_THROWS_WITH(RUSH_CHECK(false, "two\nlines\r\n"), "two lines  ");
  CHECK_THROWS_WITH(RUSH_CHECK(false, "\x1b[2J \x7f\x01 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\x9b \xff\xc3"),
                    "\\x1b[2J \\x7f\\x01 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\xc2\\x9b \\xff\\xc3");
  std::string euros;
  for (int i = 0; i < 100000; ++i) euros += "\xe2\x82\xac";
  const std::string what = rush::Error("begin " + euros + " end").what();
  CHECK(what.size() < 2000);
  CHECK(what.starts_with("begin \xe2"));
  CHECK(what.ends_with("\xac end"));
  CHECK(what.find("more bytes) ... \xe2") != what.npos);
  CHECK(what.find("\\x") == what.npos);  // no character was cut
}

[[gnu::noinline]] void throw_from_here() { RUSH_THROW(rush::ValueError, "wrong"); }
struct Outer {
  [[gnu::noinline]] static void call() { throw_from_here(); }
};

TEST_CASE("a lambda in a lambda is named by both") {
  const bool shown = rush::error_stacks();
  rush::set_error_stacks(true);
  const auto outer = []() __attribute__((noinline)) {
    const auto inner = []() __attribute__((noinline)) { throw_from_here(); };
    inner();
  };
  CHECK_THROWS_WITH(outer(), doctest::Contains("()::{lambda()#1}::{lambda()#1}::"));
  rush::set_error_stacks(shown);
}

TEST_CASE("an error tells the functions outside the library that led to it, unless that is off") {
  const bool shown = rush::error_stacks();
  rush::set_error_stacks(true);
  try {
    Outer::call();
  } catch (const rush::Error& error) {
    const std::string what = error.what();
    CHECK(what.starts_with("wrong [called from throw_from_here ("));
    CHECK(what.find(" < Outer::call (") != what.npos);
    CHECK(what.find("rush::detail") == what.npos);
    CHECK(what == rush::str("wrong [called from ", error.backtrace(), "]"));
    CHECK(error.msg() == "wrong");
    CHECK(std::string(error.what_without_backtrace()) == "wrong");
    CHECK(std::string(rush::Error(error).what()) == what);
  }
  rush::set_error_stacks(false);
  CHECK(std::string(rush::Error("wrong").what()) == "wrong");
  rush::set_error_stacks(shown);
}

TEST_CASE("context is told once, innermost first, and not by copies made before") {
  const auto describe = [](const void* subject) { return std::string("in ") + static_cast<const char*>(subject); };
  const auto other = [](const void*) { return std::string("at dawn"); };
  const rush::ErrorContext outer(describe, "outer"), middle(other, nullptr), inner(describe, "inner");
  rush::Error error("wrong");
  CHECK(std::string(error.what_without_backtrace()) == "wrong [in inner] [at dawn]");
  const rush::Error copy = error;
  error.add_context("at dawn");
  error.add_context("by hand");
  CHECK(error.context() == std::vector<std::string>{"in inner", "at dawn", "by hand"});
  CHECK(std::string(copy.what_without_backtrace()) == "wrong [in inner] [at dawn]");
}

TEST_CASE("an internal assertion names its condition and its place") {
  try {
    RUSH_INTERNAL_ASSERT(1 + 1 == 3, "arithmetic ", 42);
    FAIL("no exception");
  } catch (const rush::Error& error) {
    const std::string message = error.what();
    CHECK(message.find("1 + 1 == 3") != std::string::npos);
    CHECK(message.find("error.cpp:") != std::string::npos);
    CHECK(message.find(": arithmetic 42") != std::string::npos);
  }
}

}  // namespace
