// How files are refused.
#pragma once
#include <string>

#include "core/error/error.h"
#include "tests/temporary_folder.h"

namespace rush::testing {

// The message with which `load` refuses a file of this content, after the checks that every refusal must pass; "" if it
// does not.
template <class Load>
std::string load_failure(const Load& load, const std::string& content) {
  static TemporaryFolder folder;
  const std::string path = folder.write("case", content);
  std::string message;
  try {
    load(path);
    return "";
  } catch (const IOError& error) {
    message = error.what();
  } catch (const NotImplementedError& error) {
    message = error.what();
  }
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.substr(0, path.size() + 2) == path + ": ");
  return message.substr(path.size() + 2);
}

// The message, of one line, of the E that `function` throws.
template <class E, class F>
std::string refusal(const F& function) {
  try {
    function();
  } catch (const E& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace rush::testing
