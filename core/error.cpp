#include "core/error.h"

#include <algorithm>

namespace rush {

namespace {
std::string one_line(std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return message;
}
}  // namespace

Error::Error(std::string message) : std::runtime_error(one_line(std::move(message))) {}

namespace detail {
template void throw_error<Error>(std::string);
template void throw_error<ValueError>(std::string);
template void throw_error<TypeError>(std::string);
template void throw_error<IndexError>(std::string);
template void throw_error<NotImplementedError>(std::string);
template void throw_error<IOError>(std::string);

void fail_internal(const char* condition, const char* file, int line, const std::string& message) {
  throw Error(str("internal assertion failed, please report it: ", condition, " (", file, ":", line, ")",
                  message.empty() ? "" : ": ", message));
}
}  // namespace detail

}  // namespace rush
