// Reads a whole file into memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rush::io {

/// Returns the bytes of the regular file `path`.
/// Throws IOError (one line that starts with `path`) if it cannot be opened or read, or is no regular file: a directory
/// or an endless device must not be waited for.
std::vector<uint8_t> read_file(const std::string& path);

}  // namespace rush::io
