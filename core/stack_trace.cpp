#include "core/stack_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/io/input_file.h"
#include "core/str.h"

namespace rush {

namespace {

// The functions of one program or library file, by address. The dynamic linker knows only those that are exported,
// which a program's own are not. Of the file, which debug information makes large, only the tables are read.
class SymbolTable {
 public:
  // Empty if the file has no symbols, or cannot be read: a stack without names is better than none.
  explicit SymbolTable(const std::string& path) {
    try {
      read(io::InputFile(path));
    } catch (const IOError&) {
      functions_.clear();
    }
  }

  // The function that covers `address`, counted from the start of the file's image; empty when there is none.
  std::string function_at(uint64_t address) const {
    const auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                       [](uint64_t where, const Function& each) { return where < each.start; });
    if (next == functions_.begin()) return {};
    const Function& function = *std::prev(next);
    return address < function.start + function.size ? demangle(&names_[function.name]) : std::string();
  }

 private:
  struct Function {
    uint64_t start, size;
    size_t name;  // where in names_
  };

  // `count` objects from `offset`. Throws IOError when the file ends before.
  template <class T>
  static std::vector<T> read_array(const io::InputFile& file, uint64_t offset, uint64_t count) {
    RUSH_CHECK_IO(offset <= file.size() && count <= (file.size() - offset) / sizeof(T), file.path(), ": ends early");
    std::vector<T> values(count);
    file.read(offset, values.data(), count * sizeof(T));
    return values;
  }

  void read(const io::InputFile& file) {
    const auto header = read_array<ElfW(Ehdr)>(file, 0, 1)[0];
    if (!std::equal(ELFMAG, ELFMAG + SELFMAG, header.e_ident)) return;
    const auto sections = read_array<ElfW(Shdr)>(file, header.e_shoff, header.e_shnum);
    for (const ElfW(Shdr) & section : sections) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
      const ElfW(Shdr)& strings = sections[section.sh_link];
      names_ = read_array<char>(file, strings.sh_offset, strings.sh_size);
      names_.push_back('\0');
      for (const auto& symbol : read_array<ElfW(Sym)>(file, section.sh_offset, section.sh_size / sizeof(ElfW(Sym)))) {
        if ((symbol.st_info & 0xF) != STT_FUNC || symbol.st_name >= names_.size()) continue;
        functions_.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
      }
      break;  // a file has one such table
    }
    std::sort(functions_.begin(), functions_.end(),
              [](const Function& a, const Function& b) { return a.start < b.start; });
  }

  std::vector<Function> functions_;  // by start
  std::vector<char> names_;
};

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string demangle(const char* symbol) {
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string text = status == 0 ? readable : symbol;
  std::free(readable);
  return text;
}

StackTrace StackTrace::capture() {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  StackTrace trace;
  trace.return_addresses_.assign(addresses + std::min(count, 1), addresses + count);  // without this function
  return trace;
}

std::vector<std::string> StackTrace::frames() const {
  // Kept for the next call: a snapshot of memory puts thousands of stacks into words.
  static auto& tables = *new std::map<std::string, SymbolTable>;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  std::vector<std::string> texts;
  for (void* address : return_addresses_) {
    Dl_info module{};
    link_map* map = nullptr;
    // The call is before the address to return to, which may already belong to the next function.
    char* call = static_cast<char*>(address) - 1;
    if (!dladdr1(call, &module, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) {
      texts.push_back(hexadecimal(reinterpret_cast<uint64_t>(call)));
      continue;
    }
    const bool is_program = map->l_name[0] == '\0';
    const std::string path = is_program ? "/proc/self/exe" : map->l_name;
    const uint64_t offset = reinterpret_cast<uint64_t>(call) - map->l_addr;
    std::string function = tables.try_emplace(path, path).first->second.function_at(offset);
    if (function.empty() && module.dli_sname) function = demangle(module.dli_sname);
    const std::string file = module.dli_fname ? module.dli_fname : path;
    texts.push_back(
        str(function, function.empty() ? "(" : " (", file.substr(file.rfind('/') + 1), "+", hexadecimal(offset), ")"));
  }
  return texts;
}

}  // namespace rush
