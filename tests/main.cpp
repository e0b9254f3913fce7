// The test executable's main: doctest's, except that a run whose filters match no test case fails. CTest runs one
// source file at a time by such a filter, and a file that lost its cases must not look green.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/cuda.h"
#ifdef RUSH_HAS_CUDA
#include "tests/cuda/default_device.h"
#endif
#include "tests/derivatives/log.h"

namespace {

std::optional<unsigned> cases_matched;  // set by a run of tests, not by a query such as --list-test-cases

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
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("count_matched_cases", 1, CountMatchedCases);

// Whether only tests of tests/cuda were asked for: without a GPU those leave themselves out.
bool filters_for_cuda(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).find("/tests/cuda/") != std::string_view::npos) return true;
  }
  return false;
}

// See Note [Tests on both devices]. False when RUSH_TEST_DEVICE asks for a device that there is not.
bool take_test_device() {
  const char* device = std::getenv("RUSH_TEST_DEVICE");
  if (!device) return true;
#ifdef RUSH_HAS_CUDA
  return std::string_view(device) == "cuda" && rush::testing::use_cuda_by_default();
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
  doctest::Context context(argc, argv);
  const int status = context.run();
  if (cases_matched == 0u && !rush::cuda::is_available() && filters_for_cuda(argc, argv)) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  if (cases_matched == 0u) {
    std::fputs("rush_tests: no test case matches the filters\n", stderr);
    return 1;
  }
  return status;
}
