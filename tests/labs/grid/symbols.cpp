#include "tests/labs/grid/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "tests/labs/grid/grid.h"

namespace rush::grid {
namespace {

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 ? text.get() : name;
}

// Without the names of its function and namespaces. A compiler's guard, which says whether a variable is initialised,
// has no name.
std::string variable_name(const char* mangled) {
  const std::string qualified = demangle(mangled);
  return std::string_view(mangled).substr(0, 4) == "_ZGV" ? "" : qualified.substr(qualified.rfind(':') + 1);
}

// Where the program lies in memory: the first object that the loader lists.
struct Layout {
  uintptr_t base = 0, begin = UINTPTR_MAX, end = 0, thread_local_begin = 0, thread_local_end = 0;
};
int read_layout(dl_phdr_info* info, size_t, void* result) {
  auto& layout = *static_cast<Layout*>(result);
  layout.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      layout.begin = std::min<uintptr_t>(layout.begin, layout.base + header.p_vaddr);
      layout.end = std::max<uintptr_t>(layout.end, layout.base + header.p_vaddr + header.p_memsz);
    } else if (header.p_type == PT_TLS) {
      layout.thread_local_begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
      layout.thread_local_end = layout.thread_local_begin + header.p_memsz;
    }
  }
  return 1;  // no further objects
}

// The program's symbol table, which a linker leaves in unless it is told to strip it.
class Symbols {
 public:
  Symbols() {
    dl_iterate_phdr(read_layout, &layout);
    const int file = open("/proc/self/exe", O_RDONLY);
    const off_t size = lseek(file, 0, SEEK_END);
    void* memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot read the symbols of /proc/self/exe");
    const auto* bytes = static_cast<const char*>(memory);
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes);
    const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes + header->e_shoff);
    for (int s = 0; s < header->e_shnum; ++s) {
      if (sections[s].sh_type == SHT_SYMTAB) read(bytes, sections[s], sections[sections[s].sh_link]);
    }
  }

  Layout layout;
  std::unordered_map<uintptr_t, const char*> functions;  // mangled, by address; the file stays in memory
  std::map<uintptr_t, ThreadLocal> thread_locals;        // by where they begin

 private:
  void read(const char* bytes, const ElfW(Shdr) & table, const ElfW(Shdr) & names) {
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof(ElfW(Sym)); ++i) {
      const char* name = bytes + names.sh_offset + symbols[i].st_name;
      const int type = ELF64_ST_TYPE(symbols[i].st_info);
      if (symbols[i].st_shndx == SHN_UNDEF) continue;
      if (type == STT_FUNC) functions.emplace(layout.base + symbols[i].st_value, name);
      if (type != STT_TLS) continue;
      const uintptr_t begin = layout.thread_local_begin + symbols[i].st_value;
      thread_locals[begin] = {variable_name(name), begin, symbols[i].st_size};
    }
  }
};

const Symbols& symbols() {
  static const Symbols only;
  return only;
}

}  // namespace

std::string function_name(const void* function) {
  const auto found = symbols().functions.find(reinterpret_cast<uintptr_t>(function));
  if (found == symbols().functions.end()) return "an unknown kernel";
  const std::string name = demangle(found->second);
  return name.substr(0, name.find('('));
}

const ThreadLocal& thread_local_at(uintptr_t address) {
  static const ThreadLocal none;
  const Symbols& known = symbols();
  if (address < known.layout.thread_local_begin || address >= known.layout.thread_local_end) return none;
  const auto next = known.thread_locals.upper_bound(address);
  return next == known.thread_locals.begin() ? none : std::prev(next)->second;
}

bool in_program(uintptr_t address) { return address >= symbols().layout.begin && address < symbols().layout.end; }

uint32_t offset_in_program(uintptr_t code) { return static_cast<uint32_t>(code - symbols().layout.base); }
uintptr_t code_at(uint32_t offset) { return symbols().layout.base + offset; }

struct ClosePipe {
  void operator()(FILE* pipe) const { pclose(pipe); }
};

// "file.cu:12" of what addr2line says of a line.
static std::string place_in(const std::string& line) {
  const std::string place = line.substr(line.rfind('/') + 1);
  return place.substr(0, place.find_first_of(" \n"));  // " (discriminator 2)" follows in loops
}

// Of functions that are inline in each other the innermost; but what kernel.h does for a kernel is done in its line.
std::string place_of(uintptr_t code) {
  char command[96], line[1024] = {};
  // One byte back: a call returns to what follows it, which may belong to the next line.
  std::snprintf(command, sizeof(command), "addr2line -i -e /proc/%d/exe 0x%zx 2>/dev/null", getpid(),
                static_cast<size_t>(code - symbols().layout.base - 1));
  const std::unique_ptr<FILE, ClosePipe> output(popen(command, "r"));
  std::string place;
  while (output && std::fgets(line, sizeof(line), output.get()) && (place.empty() || place.find("kernel.h:") == 0)) {
    place = place_in(line);
  }
  return place.empty() || place[0] == '?' ? "an unknown line" : place;
}

}  // namespace rush::grid
