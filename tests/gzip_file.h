// Makes gzip content for tests of readers.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <span>
#include <vector>

namespace rush::testing {

inline std::vector<uint8_t> gzip(std::span<const uint8_t> content) {
  constexpr int kGzipFormat = 15 + 16;
  z_stream z{};
  REQUIRE(deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipFormat, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<uint8_t> out(deflateBound(&z, content.size()));
  z.next_in = const_cast<Bytef*>(content.data());
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

}  // namespace rush::testing
