// The checker of the labs. usage: rush_lab LAB [CALL]
// Makes the exercises' calls in order, or the one of that number alone, for a debugger. It ends at the first wrong one,
// with status 1, and a last line "at FUNCTION CALL", from which tools/lab says where to set a breakpoint.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "core/error/error.h"
#include "tests/labs/exercise.h"

using namespace rush;
using namespace rush::labs;

namespace {

// What a signal handler prints: the call that is being made, and where it is.
char in_call[2048], at_call[256];

std::string wrong_call(const Exercise& exercise, const Call& call, const std::string& fault) {
  return str("  WRONG  ", exercise.function, "\n         ", call.text, "\n         ", fault, "\n");
}

// The number counts the calls of all the lab's exercises, from 1.
std::string place(const std::string& function, size_t number) { return str("at ", function, " ", number, "\n"); }

void announce(const Exercise& exercise, const Call& call, size_t number) {
  const std::string at = place(exercise.function, number);
  const std::string text = wrong_call(exercise, call, "ended by a signal") + at;
  std::strncpy(in_call, text.c_str(), sizeof(in_call) - 1);
  std::strncpy(at_call, at.c_str(), sizeof(at_call) - 1);
}

extern "C" void report_call(int) {
  const ssize_t written = write(STDOUT_FILENO, in_call, std::strlen(in_call));
  _exit(written > 0 ? 3 : 4);
}

// What throws out of a function that is noexcept ends here.
[[noreturn]] void report_exception() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    std::printf("  WRONG  it threw, out of a function that may not: %s\n%s", error.what(), at_call);
    std::fflush(stdout);
    _exit(1);
  } catch (...) {  // reported as a signal
  }
  std::abort();
}

// The handler has a stack of its own, so that it also reports a call that has used up the other.
void report_signals() {
  static char stack[64 << 10];
  stack_t handlers = {};
  handlers.ss_sp = stack;
  handlers.ss_size = sizeof(stack);
  sigaltstack(&handlers, nullptr);
  struct sigaction action = {};
  action.sa_handler = report_call;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTERM}) sigaction(signal, &action, nullptr);
}

std::string fault_of(const Call& call) {
  try {
    return call.fault();
  } catch (const std::exception& error) {
    return str("it threw: ", error.what());
  }
}

KnownMistake mistake_of(const Exercise& exercise) {
  try {
    return exercise.mistake();
  } catch (const std::exception&) {
    return {};  // a function that throws gives nothing to compare
  }
}

// Whether the call is right; prints what is wrong.
bool check(const Exercise& exercise, const Call& call, size_t number) {
  announce(exercise, call, number);
  const std::string fault = fault_of(call);
  if (fault.empty()) return true;
  std::fputs(wrong_call(exercise, call, fault).c_str(), stdout);
  std::fflush(stdout);
  const KnownMistake mistake = mistake_of(exercise);
  if (!mistake.name.empty()) std::printf("         a mistake known by name: %s\n", mistake.name.c_str());
  std::fputs(place(mistake.function.empty() ? exercise.function : mistake.function, number).c_str(), stdout);
  return false;
}

struct LabExercises {
  const char* lab;
  std::vector<Exercise> (*make)();  // null: they are not linked into this program
};
const LabExercises kLabs[] = {
    {"1", geometry_exercises},   {"2", loop_exercises},    {"3", operator_exercises},      {"4", call_exercises},
    {"5", engine_exercises},     {"6", product_exercises}, {"7", module_exercises},        {"8", optimizer_exercises},
    {"9", allocator_exercises},  {"10", kernel_exercises}, {"11", stream_exercises},       {"12", matmul_exercises},
    {"13", attention_exercises}, {"14", scaler_exercises}, {"15", graphed_step_exercises}, {"16", fusion_exercises},
    {"17", ring_exercises},
};

std::vector<Exercise> exercises_of(const std::string& lab) {
  for (const LabExercises& each : kLabs) {
    if (lab == each.lab && each.make) return each.make();
  }
  return {};
}

// The calls of all exercises, or the one of that number alone; 0 stands for all.
int check_calls(const std::vector<Exercise>& exercises, size_t only) {
  size_t number = 0;
  for (const Exercise& exercise : exercises) {
    for (const Call& call : exercise.calls) {
      ++number;
      if ((only == 0 || only == number) && !check(exercise, call, number)) return 1;
    }
    if (only == 0) std::printf("  right  %s: %zu calls\n", exercise.function.c_str(), exercise.calls.size());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  set_error_stacks(false);
  report_signals();
  std::set_terminate(report_exception);
  const std::vector<Exercise> exercises = exercises_of(argc > 1 ? argv[1] : "");
  if (exercises.empty() || argc > 3) {
    std::fputs("usage: rush_lab LAB [CALL]\n", stderr);
    return 2;
  }
  return check_calls(exercises, argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0);
}
