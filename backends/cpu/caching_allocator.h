// The CPU's caching allocator.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/allocator.h"

namespace rush::cpu {

// Note [The CPU caching allocator]
// Fresh pages cost more than the arithmetic on them: the kernel zeroes each one at its first touch. So freed blocks are
// kept and handed out again. Sizes are rounded up to classes, eight for each doubling, which wastes at most an eighth.
// Blocks up to kSmall live in lists that belong to one thread and take no lock; when such a list grows past kKept
// blocks, and when its thread ends, blocks move to the central lists, where the large ones are from the start. When the
// system has no more memory, the central lists are given back and the request is tried again.
//
// Under AddressSanitizer kept blocks are poisoned, and so is the slack of a block in use, so that reading a freed
// tensor or past the end of one is reported as with plain malloc.
inline constexpr size_t kSmall = 64 * 1024;
inline constexpr uint32_t kKept = 64;

// The class that `nbytes` belongs to, and the size of its blocks: a multiple of 64. nbytes > 0.
size_t size_class(size_t nbytes);
size_t class_size(size_t size_class);

}  // namespace rush::cpu
