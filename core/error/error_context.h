// ErrorContext: what a thread is in the middle of, which the errors and warnings made meanwhile say.
#pragma once
#include <string>
#include <vector>

namespace rush {

/// For the time of a scope. Costs two words written; the text is made only on demand. Scopes nest; of those
/// with the same `describe` the innermost one speaks.
class ErrorContext {
 public:
  /// The text about `subject`, which outlives the scope: "in Net.encoder.fc1". Empty: nothing to say.
  using Describe = std::string (*)(const void* subject);

  ErrorContext(Describe describe, const void* subject) : describe_(describe), subject_(subject), outer_(innermost) {
    innermost = this;
  }
  ~ErrorContext() { innermost = outer_; }
  ErrorContext(const ErrorContext&) = delete;
  ErrorContext& operator=(const ErrorContext&) = delete;

  /// That of this thread, innermost first.
  static std::vector<std::string> describe();

 private:
  static inline thread_local constinit const ErrorContext* innermost = nullptr;

  Describe describe_;
  const void* subject_;
  const ErrorContext* outer_;
};

}  // namespace rush
