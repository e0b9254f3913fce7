// The checker of the labs. usage: rush_lab LAB [FUNCTION CALL]
// Makes the exercises' calls in order, or one of them alone, for a debugger. It ends at the first wrong one, with
// status 1, and a last line "at FUNCTION CALL", from which tools/lab says where to set a breakpoint.
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

// What a signal handler prints: the call that is being made.
char in_call[2048];

void announce(const Exercise& exercise, size_t number) {
  const std::string text =
      str("  WRONG  ", exercise.function, "\n         call ", number + 1, ": ", exercise.calls[number].text,
          "\n         ended by a signal\nat ", exercise.function, " ", number + 1, "\n");
  std::strncpy(in_call, text.c_str(), sizeof(in_call) - 1);
}

extern "C" void report_call(int) {
  const ssize_t written = write(STDOUT_FILENO, in_call, std::strlen(in_call));
  _exit(written > 0 ? 3 : 4);
}

std::string fault_of(const Call& call) {
  try {
    return call.fault();
  } catch (const std::exception& error) {
    return str("it threw: ", error.what());
  }
}

std::string mistake_of(const Exercise& exercise) {
  try {
    return exercise.mistake();
  } catch (const std::exception&) {
    return {};  // a function that throws gives nothing to compare
  }
}

int report(const Exercise& exercise, size_t number, const std::string& fault) {
  std::printf("  WRONG  %s\n         call %zu: %s\n         %s\n", exercise.function.c_str(), number + 1,
              exercise.calls[number].text.c_str(), fault.c_str());
  std::fflush(stdout);
  const std::string mistake = mistake_of(exercise);
  if (!mistake.empty()) std::printf("         a mistake known by name: %s\n", mistake.c_str());
  std::printf("at %s %zu\n", exercise.function.c_str(), number + 1);
  return 1;
}

int check(const Exercise& exercise) {
  for (size_t i = 0; i < exercise.calls.size(); ++i) {
    announce(exercise, i);
    const std::string fault = fault_of(exercise.calls[i]);
    if (!fault.empty()) return report(exercise, i, fault);
  }
  std::printf("  right  %s: %zu calls\n", exercise.function.c_str(), exercise.calls.size());
  std::fflush(stdout);
  return 0;
}

std::vector<Exercise> exercises_of(const std::string& lab) {
  if (lab == "1") return geometry_exercises();
  if (lab == "2") return loop_exercises();
  if (lab == "8") return optimizer_exercises();
  return {};
}

int check_one(const std::vector<Exercise>& exercises, const std::string& function, size_t call) {
  for (const Exercise& exercise : exercises) {
    if (exercise.function != function || call < 1 || call > exercise.calls.size()) continue;
    announce(exercise, call - 1);
    const std::string fault = fault_of(exercise.calls[call - 1]);
    if (!fault.empty()) return report(exercise, call - 1, fault);
    std::puts("  right");
    return 0;
  }
  std::fputs("rush_lab: there is no such call\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  set_error_stacks(false);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTERM}) std::signal(signal, report_call);
  const std::vector<Exercise> exercises = exercises_of(argc > 1 ? argv[1] : "");
  if (exercises.empty() || (argc != 2 && argc != 4)) {
    std::fputs("usage: rush_lab LAB [FUNCTION CALL]\n", stderr);
    return 2;
  }
  if (argc == 4) return check_one(exercises, argv[2], std::strtoul(argv[3], nullptr, 10));
  for (const Exercise& exercise : exercises) {
    if (const int status = check(exercise)) return status;
  }
  return 0;
}
