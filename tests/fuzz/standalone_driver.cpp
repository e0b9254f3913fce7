// Stands in for libFuzzer where the compiler has none: calls a target with random changes of its seeds for a given
// time. It takes libFuzzer's options:
//   FUZZER [-max_total_time=SECONDS] [-runs=N] [-seed=N] [-max_len=BYTES] [-timeout=SECONDS] [FILE...]
// Given files, it only tests these.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
// Of the sanitizers' runtime, where there is one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostKept = 1000;  // inputs that go on being changed
constexpr char kHangs[] = "fuzz: an input takes too long\n";

struct Options {
  double seconds = 0;
  uint64_t runs = 0, seed = 1;
  size_t max_length = 4096;
  unsigned timeout = 1200;  // seconds for one input
  std::vector<std::string> files;
};

fuzz::Random mutation_random(1);
std::vector<uint8_t> input;

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const double value = equals == std::string::npos ? 0 : std::atof(text.c_str() + equals + 1);
    if (text[0] != '-') {
      options.files.push_back(text);
    } else if (name == "-max_total_time") {
      options.seconds = value;
    } else if (name == "-runs") {
      options.runs = static_cast<uint64_t>(value);
    } else if (name == "-seed") {
      options.seed = static_cast<uint64_t>(value);
    } else if (name == "-timeout") {
      options.timeout = static_cast<unsigned>(value);
    } else if (name == "-max_len") {
      options.max_length = static_cast<size_t>(value);
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], text.c_str());
      std::exit(2);
    }
  }
  return options;
}

// Writes the input into ./crash-PID, with nothing that a signal handler may not call.
void save_input() {
  char name[32] = "crash-", digits[16];
  size_t count = 0, length = std::strlen(name);
  for (long pid = ::getpid(); pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
  while (count > 0) name[length++] = digits[--count];
  name[length] = '\0';
  const int file = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool saved = file >= 0 && ::write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size());
  const auto print = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
  static_cast<void>(print(saved ? "fuzz: the input is in " : "fuzz: cannot write ") && print(name) && print("\n"));
}

void on_signal(int signal) {
  if (signal == SIGALRM) static_cast<void>(::write(STDERR_FILENO, kHangs, sizeof kHangs - 1) >= 0);
  save_input();
  ::_exit(1);
}

void watch() {
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_input);
  std::signal(SIGABRT, on_signal);
  std::signal(SIGALRM, on_signal);
  if (__sanitizer_set_death_callback) return;  // whose own reports on these say more
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
}

void test(const std::vector<uint8_t>& bytes, unsigned timeout) {
  input = bytes;
  ::alarm(timeout);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  ::alarm(0);
}

void fuzz_for(const Options& options) {
  fuzz::Random random(options.seed);
  mutation_random = fuzz::Random(options.seed + 1);
  std::vector<std::vector<uint8_t>> kept(1);
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  uint64_t runs = 0;
  while ((options.runs == 0 || runs < options.runs) && (options.seconds == 0 || seconds() < options.seconds)) {
    std::vector<uint8_t> bytes = random.pick(kept);
    const size_t size = bytes.size();
    bytes.resize(options.max_length);
    bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(), static_cast<unsigned>(random.next())));
    test(bytes, options.timeout);
    ++runs;
    if (kept.size() < kMostKept) {
      kept.push_back(std::move(bytes));
    } else {
      kept[random.below(kept.size())] = std::move(bytes);
    }
  }
  std::fprintf(stderr, "Done %llu runs in %.0f second(s)\n", static_cast<unsigned long long>(runs), seconds());
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  bytes = fuzz::mutate_bytes(std::move(bytes), mutation_random);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  watch();
  for (const std::string& name : options.files) {
    std::ifstream file(name, std::ios::binary);
    if (!file) fuzz::fail("cannot read " + name);
    test({std::istreambuf_iterator<char>(file), {}}, options.timeout);
  }
  if (options.files.empty()) fuzz_for(options);
}
