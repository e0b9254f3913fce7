// What every program that links Rushlight carries for gdb: the scripts beside this file, and the layouts of the types
// that they read, which a release build would not describe otherwise (this file alone is compiled with -g).
#include "autograd/meta.h"
#include "autograd/saved.h"

// gdb looks for scripts in the section .debug_gdb_scripts, which programs do not load into memory. An entry is 4 for
// Python text, a name and the text, up to a zero: "The .debug_gdb_scripts section" in gdb's manual.
#define RUSH_SCRIPT(name) ".byte 4\n.ascii \"" name "\\n\"\n.incbin \"" RUSH_GDB_FOLDER "/" name "\"\n.byte 0\n"
__asm__(".pushsection \".debug_gdb_scripts\", \"MS\",@progbits,1\n" RUSH_SCRIPT("rushlight.py")
            RUSH_SCRIPT("rushlight_commands.py") RUSH_SCRIPT("rushlight_skips.py") ".popsection\n");
#undef RUSH_SCRIPT

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
[[gnu::used]] TypesThatPrintersRead* layouts = nullptr;
}  // namespace
}  // namespace rush

// rushlight.cpp refers to this, so that the linker takes this file out of a static library.
extern "C" {
extern const char rush_gdb_scripts;
const char rush_gdb_scripts = 0;
}
