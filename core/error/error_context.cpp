#include "core/error/error_context.h"

#include <algorithm>
#include <utility>

namespace rush {

std::vector<std::string> ErrorContext::describe() {
  std::vector<std::string> texts;
  std::vector<Describe> spoken;
  // A text that fails to be made would otherwise describe itself again.
  const ErrorContext* const first = std::exchange(innermost, nullptr);
  struct Restore {
    const ErrorContext* first;
    ~Restore() { innermost = first; }
  } restore{first};
  for (const ErrorContext* each = first; each; each = each->outer_) {
    if (std::find(spoken.begin(), spoken.end(), each->describe_) != spoken.end()) continue;
    spoken.push_back(each->describe_);
    std::string text = each->describe_(each->subject_);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace rush
