// What every program that links Rushlight carries for gdb: rushlight.py, the printers beside this file, and the layouts
// of the types that they read, which a release build would not describe otherwise (this file alone is compiled with
// -g).
#include "autograd/meta.h"
#include "autograd/saved.h"

// gdb looks for scripts in the section .debug_gdb_scripts, which programs do not load into memory. An entry is 4 for
// Python text, a name and the text, up to a zero: "The .debug_gdb_scripts section" in gdb's manual.
__asm__(
    ".pushsection \".debug_gdb_scripts\", \"MS\",@progbits,1\n"
    ".byte 4\n"
    ".ascii \"rushlight.py\\n\"\n"
    ".incbin \"" RUSH_GDB_PRINTERS
    "\"\n"
    ".byte 0\n"
    ".popsection\n");

namespace rush {
namespace {
struct TypesThatPrintersRead {
  Tensor tensor;
  AutogradMeta meta;
  Node* node;
  Saved saved;
  Scalar scalar;
  DispatchKey key;
};
}  // namespace
}  // namespace rush

// The linker is told to look for this, so that it takes this file out of a static library.
extern "C" {
extern rush::TypesThatPrintersRead* rush_gdb_printers;
rush::TypesThatPrintersRead* rush_gdb_printers = nullptr;
}
