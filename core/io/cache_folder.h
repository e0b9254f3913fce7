// Where what took long to make is kept for the next process.
#pragma once
#include <string>

namespace rush::io {

/// RUSH_CACHE_DIR, else rushlight in XDG_CACHE_HOME, else ~/.cache/rushlight; empty where none of these is set. The
/// environment is read at each call, and no folder is made.
std::string cache_folder();

}  // namespace rush::io
