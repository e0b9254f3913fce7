// What the caching allocator asks of one device. Behind an interface, so that its decisions are tested without a GPU.
#pragma once
#include <cstddef>
#include <string>

#include "core/device/backend.h"

namespace rush::cuda {

class MemoryDriver {
 public:
  virtual ~MemoryDriver() = default;

  // Memory aligned to 512 bytes; null when the device has no more.
  virtual void* allocate(size_t nbytes) = 0;
  virtual void free(void* data) = 0;
  virtual MemoryInfo info() = 0;

  // An event at the end of what the stream has now. It is used up by the first reached() that is true, or by wait().
  virtual void* record_event(void* stream) = 0;
  virtual bool reached(void* event) = 0;
  virtual void wait(void* event) = 0;

  // Fills memory with a byte that makes every floating-point number a NaN, in the stream's order.
  virtual void poison(void* data, size_t nbytes, void* stream) = 0;

  // Tells the programmer.
  virtual void report(const std::string& line) = 0;

  // Virtual memory. Addresses and sizes are multiples of granularity().
  virtual size_t granularity() = 0;
  // Null when there is no such range of addresses.
  virtual void* reserve_addresses(size_t nbytes) = 0;
  // Puts memory behind the addresses; false when the device has no more.
  virtual bool map(void* start, size_t nbytes) = 0;
  // Takes away what one call of map with these arguments put there.
  virtual void unmap(void* start, size_t nbytes) = 0;
};

// The driver of a device, made on first use and never destroyed.
MemoryDriver& memory_driver(int device);

}  // namespace rush::cuda
