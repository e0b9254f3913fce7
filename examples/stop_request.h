// Lets a training loop end in order when somebody asks it to.
#pragma once

#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace examples {

/// Ends a program that a signal asked to stop, once its run is saved: run_program prints what() and lets the signal end
/// the process.
class Stopped : public std::exception {
 public:
  Stopped(int signal, std::string message) : signal_(signal), message_(std::move(message)) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int signal_;
  std::string message_;
};

/// While one exists, the first SIGINT, SIGTERM or SIGHUP does not end the process but is noted, for a loop that
/// finishes its step, saves and calls `end`. A second one ends the process at once. Signals that were ignored stay so:
/// SIGHUP under nohup. Only one may exist at a time.
class StopRequest {
 public:
  StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest();

  /// Whether such a signal came, or stdout takes no more. Flushes stdout.
  bool pending() const;

  /// Calls save() and throws Stopped; rush::IOError where stdout takes no more, another process was asked to stop, or
  /// save() throws that. The message says why, then `done`, "after step 12", and how to go on: by `resume_command`;
  /// where that is empty, the run has no checkpoint.
  [[noreturn]] void end(const std::string& done, const std::string& resume_command,
                        const std::function<void()>& save) const;

 private:
  struct Old {
    int signal;
    struct sigaction action;
  };
  std::vector<Old> old_;
};

/// The command that goes on with the run of this one: the same words, quoted for a shell, with --resume.
std::string resume_command(int argc, char** argv);

}  // namespace examples
