// Names of the running program: of functions, of thread-local arrays, and lines of machine code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace rush::grid {

// The function's qualified name, without its parameters.
std::string function_name(const void* function);

// A thread-local variable of the program itself, as the calling thread has it.
struct ThreadLocal {
  std::string name;  // empty for what the compiler added to the program's
  uintptr_t begin = 0;
  size_t size = 0;
};
// The one that holds the address, or the last one that begins before it; none (size 0) where the address is not in
// thread-local memory.
const ThreadLocal& thread_local_at(uintptr_t address);

// Whether the address is in the program's code, constants and static variables.
bool in_program(uintptr_t address);

// A return address as a distance from the beginning of the program, which fits 32 bits.
uint32_t offset_in_program(uintptr_t code);
uintptr_t code_at(uint32_t offset);

}  // namespace rush::grid
