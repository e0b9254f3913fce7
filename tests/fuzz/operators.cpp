// Calls every operator by name with random arguments: it returns, or throws an Error and leaves what it would have
// written as it was. Calls are made in a child process, so that a crash or a hang ends only that; every failure is
// printed with the arguments and a number with which -case repeats it.
//   fuzz_operators [-max_total_time=SECONDS] [-runs=N] [-seed=N] [-only=aten::NAME] [-case=NUMBER] [-device=cuda]
// With -device=cuda every call is made on the GPU too, and must do there what it does on the CPU.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/devices.h"
#include "core/dispatch/registry.h"
#include "core/ops/factory/factories.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor_impl.h"
#include "core/threads/parallel.h"
#include "tests/fuzz/both_devices.h"
#include "tests/fuzz/exact_allocator.h"
#include "tests/fuzz/random_arguments.h"
#include "tests/fuzz/sparse_parts.h"

namespace {

using namespace rush;
using Clock = std::chrono::steady_clock;

constexpr auto kHang = std::chrono::seconds(20);
constexpr int64_t kMostRead = 1 << 20;  // elements of a result that are looked at
constexpr int kFailed = 86;             // a child's exit status

struct Options {
  double seconds = 0;
  uint64_t runs = 0, seed = 1, one_case = 0;
  std::string only;
  Device device = kCPU;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals), value = equals == text.npos ? "" : text.substr(equals + 1);
    if (name == "-max_total_time") {
      options.seconds = std::atof(value.c_str());
    } else if (name == "-runs") {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-case") {
      options.one_case = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-only") {
      options.only = value;
    } else if (name == "-device") {
      options.device = Device(value);
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], text.c_str());
      std::exit(2);
    }
  }
  return options;
}

// ---- one call
// --------------------------------------------------------------------------------------------------------

[[noreturn]] void failed(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::fflush(stderr);
  std::_Exit(kFailed);
}

// The memory and geometry of the tensors that a call may write.
class Snapshot {
 public:
  Snapshot(const OpBase& op, const Stack& stack) {
    for (const size_t i : fuzz::written_arguments(op)) {
      if (i >= stack.size() || !stack[i].is<Tensor>() || !stack[i].as<Tensor>().defined()) continue;
      tensors_.push_back(stack[i].as<Tensor>());
      states_.push_back(state(tensors_.back()));
    }
  }
  bool unchanged() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (state(tensors_[i]) != states_[i]) return false;
    }
    return true;
  }

 private:
  static std::string state(const Tensor& t) {
    std::string state = str(t.scalar_type(), t.sizes(), t.strides(), t.storage_offset(), t.requires_grad(), ':');
    const StorageImpl& storage = *t.storage();
    if (storage.data()) state.append(static_cast<const char*>(storage.data()), storage.nbytes());
    return state;
  }
  std::vector<Tensor> tensors_;
  std::vector<std::string> states_;
};

// Reads every element, so that one outside the memory is noticed.
void check_result(const Tensor& result) {
  if (!result.defined()) return;
  if (result.layout() != kStrided) {
    for (const Tensor& part : fuzz::parts_of(result)) check_result(part);
    return;
  }
  const int64_t extent = storage_extent(result.sizes(), result.strides(), result.storage_offset());
  if (result.is_meta()) return;
  if (extent < 0 || extent > static_cast<int64_t>(result.storage()->nbytes()) / result.element_size()) {
    failed("a result exceeds its memory");
  }
  if (result.numel() <= kMostRead) result.detach().clone();
}

void check_results(const Stack& results) {
  std::vector<Tensor> tensors;
  for (const Value& value : results) {
    if (value.is<Tensor>()) tensors.push_back(value.as<Tensor>());
    if (value.is<std::vector<Tensor>>()) {
      for (const Tensor& each : value.as<std::vector<Tensor>>()) tensors.push_back(each);
    }
  }
  for (const Tensor& tensor : tensors) check_result(tensor);
  for (const Tensor& tensor : tensors) {
    if (tensor.requires_grad() && is_differentiable(tensor.scalar_type()) && tensor.numel() <= kMostRead) {
      tensor.backward(ones(tensor.sizes(), tensor.options().layout(kStrided)), true);
      break;
    }
  }
}

void check_error(const Error& error) {
  const std::string_view message = error.what();
  if (message.empty()) failed("an error has no message");
  if (message.find("internal assertion") != message.npos) failed(std::string(message));
}

struct Case {
  const OpBase* op;
  Stack arguments;

  Case(uint64_t number, const std::vector<const OpBase*>& operators) {
    op = pick(number, operators);
    arguments = fuzz::RandomArguments(number).make(*op);
  }
  static const OpBase* pick(uint64_t number, const std::vector<const OpBase*>& operators) {
    return fuzz::Random(number).pick(operators);
  }
};

void call(const OpBase& op, Stack stack, Device device) {
  if (!device.is_cpu()) {
    const std::string what = fuzz::difference(op, stack, device);
    if (!what.empty()) failed(what);
    return;
  }
  manual_seed(1);
  const Snapshot before(op, stack);
  bool returned = false;
  try {
    op.call_boxed(stack);
    returned = true;
    check_results(stack);
  } catch (const Error& error) {
    check_error(error);
    if (!returned && !before.unchanged()) failed(str("threw and changed its target: ", error.what()));
  } catch (const std::exception& error) {
    failed(str("an untyped exception: ", error.what()));
  }
}

// ---- many calls, in children
// -----------------------------------------------------------------------------------------

struct Progress {  // shared with the child
  std::atomic<uint64_t> case_number{0}, calls{0};
};

class Supervisor {
 public:
  Supervisor(Options options, std::vector<const OpBase*> operators)
      : options_(std::move(options)), operators_(std::move(operators)), numbers_(options_.seed) {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) failed("no shared memory");
    progress_ = new (memory) Progress;
  }

  // How many operators failed.
  size_t run() {
    const auto start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const auto over = [&] {
      return (options_.runs > 0 && progress_->calls >= options_.runs) ||
             (options_.seconds > 0 && seconds() > options_.seconds);
    };
    while (!over()) {
      const uint64_t first = numbers_.next();
      watch(spawn(first), over);
    }
    std::fprintf(stderr, "Done %llu runs in %.0f second(s): %zu operators failed\n",
                 static_cast<unsigned long long>(progress_->calls), seconds(), failures_.size());
    for (const auto& [name, count] : failures_) std::fprintf(stderr, "  %s: %zu\n", name.c_str(), count);
    return failures_.size();
  }

 private:
  struct Child {
    pid_t pid;
    int output;  // its stderr, a file in memory
  };

  Child spawn(uint64_t first) {
    const Child child{0, ::memfd_create("fuzz", 0)};
    std::fflush(stderr);
    const pid_t pid = ::fork();
    if (pid < 0) failed("cannot fork");
    if (pid > 0) return {pid, child.output};
    ::dup2(child.output, STDERR_FILENO);
    fuzz::Random random(first);
    for (uint64_t left = options_.runs > 0 ? options_.runs : ~uint64_t{0}; left > 0; --left) {
      const uint64_t number = random.next() >> 16;  // short enough to type
      if (!options_.only.empty() && Case::pick(number, operators_)->name() != options_.only) continue;
      progress_->case_number = number;
      const Case one(number, operators_);
      call(*one.op, one.arguments, options_.device);
      ++progress_->calls;
    }
    std::_Exit(0);
  }

  template <class Over>
  void watch(Child child, const Over& over) {
    uint64_t calls = progress_->calls;
    auto last = Clock::now();
    const char* stopped = nullptr;
    int status = 0;
    while (::waitpid(child.pid, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (progress_->calls != calls) {
        calls = progress_->calls;
        last = Clock::now();
      }
      if (Clock::now() - last > kHang) stopped = "hangs";
      if (stopped || over()) {
        ::kill(child.pid, SIGKILL);
        ::waitpid(child.pid, &status, 0);
        break;
      }
    }
    if (stopped)
      report(stopped, child.output);
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
      report(strsignal(WTERMSIG(status)), child.output);
    else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
      report("failed", child.output);
    else if (WIFSIGNALED(status) && !over())
      report("was killed", child.output);
    ::close(child.output);
  }

  void report(const char* how, int output) {
    const uint64_t number = progress_->case_number;
    const Case one(number, operators_);
    const std::string name(one.op->name());
    if (failures_[name]++ > 0) return;
    std::string text(8192, '\0');
    const ssize_t size = ::pread(output, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    std::fprintf(stderr, "==== %s %s; -case=%llu\n%s%s\n", name.c_str(), how, static_cast<unsigned long long>(number),
                 fuzz::describe(one.arguments).c_str(), text.c_str());
  }

  Options options_;
  std::vector<const OpBase*> operators_;
  fuzz::Random numbers_;
  Progress* progress_;
  std::map<std::string, size_t> failures_;
};

// Asked in a child: a process that has used the driver must not fork.
bool child_finds_gpu() {
  const pid_t pid = ::fork();
  if (pid < 0) failed("cannot fork");
  if (pid == 0) std::_Exit(cuda::is_available() ? 0 : 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  std::vector<const OpBase*> operators;
  for (const auto& [name, op] : registry().operators()) operators.push_back(op);
  if (!options.only.empty() && !registry().find(options.only)) {
    std::fprintf(stderr, "there is no operator named '%s'\n", options.only.c_str());
    return 2;
  }
  set_num_threads(1);
  static fuzz::ExactAllocator allocator;
  set_allocator(kCPU, &allocator);
  if (options.device.is_cuda() && !child_finds_gpu()) {
    std::fprintf(stderr, "skipped: no CUDA device\n");
    return 0;
  }
  if (options.one_case > 0) {
    const Case one(options.one_case, operators);
    std::fprintf(stderr, "%s\n%s", one.op->schema(), fuzz::describe(one.arguments).c_str());
    call(*one.op, one.arguments, options.device);
    std::fprintf(stderr, "passed\n");
    return 0;
  }
  return Supervisor(options, operators).run() == 0 ? 0 : 1;
}
