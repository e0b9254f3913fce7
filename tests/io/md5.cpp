#include "core/io/md5.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

std::string md5(std::string_view text) {
  return rush::io::md5_hex({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace

TEST_CASE("md5: the test suite of RFC 1321, appendix A.5") {
  CHECK(md5("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(md5("abc") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(md5("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(md5("abcdefghijklmnopqrstuvwxyz") == "c3fcd3d76192e4007dfb496cca67e13b");
  CHECK(md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == "d174ab98d277d9f5a5611c2c9f419d9f");
  CHECK(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_CASE("md5: lengths around the end of a block, where the padding changes") {
  CHECK(md5(std::string(55, 'a')) == "ef1772b6dff9a122358552954ad0df65");
  CHECK(md5(std::string(56, 'a')) == "3b0c8ac703f828b04c6c197006d17218");
  CHECK(md5(std::string(63, 'a')) == "b06521f39153d618550606be297466d5");
  CHECK(md5(std::string(64, 'a')) == "014842d480b571495a4a0363793f7367");
  CHECK(md5(std::string(65, 'a')) == "c743a45e0d2e6a95cb859adae0248435");
  CHECK(md5(std::string(1000000, 'a')) == "7707d6ae4e027c70eea2a935c2296f21");
}
