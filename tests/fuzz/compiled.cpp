// Random programs of up to 60 operators, compiled and as they stand: views, writes in place, products, reductions,
// dtypes, autocast, random numbers, backward passes, optimisers, numbers that are read. What a program returns, and
// what it leaves in parameters and sums, must be the same; on a GPU up to the rounding of sums that add up in any
// order. Complex products are left out: on the CPU the vectors of a loop and its last elements round them differently.
//   -max_total_time=SECONDS -runs=N -seed=N -device=cuda; -case=N runs one again.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/compile/random_program.h"

using namespace rush;

namespace {

struct Options {
  uint64_t seed = 1, one_case = 0;
  double seconds = 0;
  uint64_t runs = 0;
  Device device = kCPU;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string value(equals == argument.npos ? "" : argument.substr(equals + 1));
    if (name == "-seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-case") {
      options.one_case = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-runs") {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-max_total_time") {
      options.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "-device") {
      options.device = Device(value);
    } else {
      std::fprintf(stderr, "there is no option %s\n", argv[i]);
      std::exit(2);
    }
  }
  return options;
}

volatile sig_atomic_t case_low = 0, case_high = 0;  // the one that runs, for on_crash

void on_crash(int signal) {
  char text[64];
  const unsigned long long number =
      static_cast<unsigned long long>(case_high) << 30 | static_cast<unsigned long long>(case_low);
  const int length = std::snprintf(text, sizeof text, "crashed with signal %d in -case=%llu\n", signal, number);
  static_cast<void>(!write(STDERR_FILENO, text, static_cast<size_t>(length)));
  _exit(1);
}

// "result 2 of call 1, 3e-05 apart"; empty where all are the same.
std::string difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, int call) {
  if (actual.size() != expected.size()) return str(actual.size(), " results of call ", call, ", not ", expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor &a = actual[i], &b = expected[i];
    const double allowed = a.is_cuda() ? 1e-3 : 0;
    if (a.sizes() == b.sizes() && a.allclose(b, allowed, allowed, /*equal_nan=*/true)) continue;
    if (a.sizes() != b.sizes()) return str("result ", i, " of call ", call, " has other sizes");
    return str("result ", i, " of call ", call, ", ", (a - b).abs().nan_to_num().max().item<double>(), " apart");
  }
  return "";
}

struct Counts {
  uint64_t done = 0, failed = 0;
  uint64_t compiled = 0, cut = 0, threw = 0;  // a program that throws as it stands must throw the same compiled
};

// What went wrong; empty where nothing did.
std::string run_case(uint64_t number, Counts& counts) {
  using testing::RandomProgram, testing::Variety;
  RandomProgram plain(number, Variety::All), traced(number, Variety::All);
  compiler::CompiledFunction compiled(plain.options());
  const int calls = get_default_device().is_accelerator() ? 10 : 5;  // which records what it is given
  for (int call = 0; call < calls; ++call) {
    const auto run = [&](bool is_compiled) {
      manual_seed(number + static_cast<uint64_t>(call));
      const std::vector<Tensor> inputs = plain.make_inputs(call);
      if (!is_compiled) return plain.run(inputs);
      return compiled.call([&](const std::vector<Tensor>& given) { return traced.run(given); }, inputs);
    };
    std::string expected_error, actual_error;
    std::vector<Tensor> expected, actual;
    try {
      expected = run(false);
    } catch (const Error& error) {
      expected_error = error.msg();
    }
    try {
      actual = run(true);
    } catch (const Error& error) {
      actual_error = error.msg();
    }
    if (actual_error != expected_error) return str("'", actual_error, "' instead of '", expected_error, "'");
    if (!actual_error.empty()) {
      ++counts.threw;
      return "";
    }
    std::string wrong = difference(actual, expected, call);
    if (wrong.empty()) wrong = difference(traced.state(), plain.state(), call);
    if (!wrong.empty()) return wrong;
  }
  if (compiled.compilations() == 0 && compiled.obstacle().empty()) return "nothing was compiled";
  ++(compiled.obstacle().empty() ? counts.compiled : counts.cut);
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.device.is_cuda() && cuda::device_count() == 0) {
    std::fprintf(stderr, "skipped: no CUDA device\n");
    return 0;
  }
  set_default_device(options.device);
  globalContext().setDeterministicAlgorithms(true);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, on_crash);
  struct : WarningHandler {
    void process(const Warning& /*of numbers that are read*/) override {}
  } silent;
  WarningUtils::set_warning_handler(&silent);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  fuzz::Random random(options.seed);
  Counts counts;
  const auto goes_on = [&] {
    if (options.one_case) return counts.done == 0;
    return (options.runs == 0 || counts.done < options.runs) && (options.seconds == 0 || seconds() < options.seconds);
  };
  for (; goes_on(); ++counts.done) {
    const uint64_t number = options.one_case ? options.one_case : random.next() % 1'000'000'000'000 + 1;
    case_low = static_cast<sig_atomic_t>(number & 0x3fffffff);
    case_high = static_cast<sig_atomic_t>(number >> 30);
    const std::string wrong = run_case(number, counts);
    if (wrong.empty()) continue;
    ++counts.failed;
    std::fprintf(stderr, "-case=%llu: %s\n", static_cast<unsigned long long>(number), wrong.c_str());
  }
  std::puts(str(counts.done, " programs in ", seconds(), " s: ", counts.compiled, " compiled, ", counts.cut,
                " in which a number is read, ", counts.threw, " that throw; ", counts.failed, " differ")
                .c_str());
  return counts.failed == 0 ? 0 : 1;
}
