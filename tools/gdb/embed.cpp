// Puts rushlight.py, the printers beside this file, into every program that links Rushlight, where gdb looks for
// scripts: the section .debug_gdb_scripts
// (https://sourceware.org/gdb/current/onlinedocs/gdb.html/dotdebug_005fgdb_005fscripts- section.html), which programs
// do not load into memory. An entry is 4 for Python text, a name and the text, up to a zero.
__asm__(
    ".pushsection \".debug_gdb_scripts\", \"MS\",@progbits,1\n"
    ".byte 4\n"
    ".ascii \"rushlight.py\\n\"\n"
    ".incbin \"" RUSH_GDB_PRINTERS
    "\"\n"
    ".byte 0\n"
    ".popsection\n");

// The linker is told to look for this, so that it takes this file out of a static library.
extern "C" {
extern const char rush_gdb_printers;
const char rush_gdb_printers = 0;
}
