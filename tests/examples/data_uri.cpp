#include "examples/data_uri.h"

#include <doctest/doctest.h>

TEST_CASE("data_uri: base64 of the file (RFC 4648, section 10)") {
  const char* const kCoded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t size = 0; size < 7; ++size) {
    CHECK(examples::data_uri("text/plain", std::string("foobar").substr(0, size)) ==
          std::string("data:text/plain;base64,") + kCoded[size]);
  }
  CHECK(examples::data_uri("image/png", "\x89PNG\xff").ends_with(",iVBOR/8="));
}
