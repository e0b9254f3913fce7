// Kernels that only move elements: what counts is an element's size, not its type.
#pragma once
#include "backends/cpu/loops.h"

namespace rush::cpu {

struct Bytes16 {
  uint64_t parts[2];
};

// The instance of Loop::run for elements of `bytes` bytes, as unsigned integers of that size.
template <class Loop>
auto pick_bytes(int64_t bytes) {
  switch (bytes) {
    case 1: return &Loop::template run<uint8_t>;
    case 2: return &Loop::template run<uint16_t>;
    case 4: return &Loop::template run<uint32_t>;
    case 8: return &Loop::template run<uint64_t>;
    default: return &Loop::template run<Bytes16>;
  }
}

}  // namespace rush::cpu
