// The test executable's main: doctest's, except that a run whose filters match no test case fails. CTest runs one
// source file at a time by such a filter, and a file that lost its cases must not look green. Where the file's cases
// leave themselves out for want of GPUs, it is said to be skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "backends/cuda/devices.h"
#include "core/error/error.h"
#ifdef RUSH_HAS_CUDA
#include "tests/cuda/default_device.h"
#endif
#include "tests/derivatives/log.h"

namespace {

std::optional<unsigned> cases_matched;  // set by a run of tests, not by a query such as --list-test-cases
std::string_view cuda_file;             // the end of the path of the one that is asked for, if it is one of tests/cuda
bool leaves_itself_out = false;         // whether one of its cases does

struct CountMatchedCases : doctest::IReporter {
  explicit CountMatchedCases(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override { cases_matched = stats.numTestCasesPassingFilters; }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    leaves_itself_out |=
        test.m_skip && !cuda_file.empty() && std::string_view(test.m_file.c_str()).ends_with(cuda_file);
  }
};

REGISTER_LISTENER("count_matched_cases", 1, CountMatchedCases);

std::string_view find_cuda_file(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t at = argument.find("/tests/cuda/");
    if (at != std::string_view::npos) return argument.substr(at);
  }
  return {};
}

// See Note [Tests on both devices]. False when RUSH_TEST_DEVICE asks for a device that there is not.
bool take_test_device() {
  const char* device = std::getenv("RUSH_TEST_DEVICE");
  if (!device) return true;
#ifdef RUSH_HAS_CUDA
  const bool is_readable = std::string_view(device) == "cuda";
  return (is_readable || std::string_view(device) == "cuda:cached") && rush::testing::use_cuda_by_default(is_readable);
#else
  return false;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (!take_test_device()) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  if (const char* path = std::getenv("RUSH_DERIVATIVE_LOG")) log_checked_derivatives(path);
  rush::set_error_stacks(false);  // tests compare messages
  doctest::Context context(argc, argv);
  cuda_file = find_cuda_file(argc, argv);
  const int status = context.run();
  if (cases_matched == 0u && leaves_itself_out) {
    std::puts(rush::cuda::is_available() ? "skipped: one CUDA device" : "skipped: no CUDA device");
    return 0;
  }
  if (cases_matched == 0u) {
    std::fputs("rush_tests: no test case matches the filters\n", stderr);
    return 1;
  }
  return status;
}
