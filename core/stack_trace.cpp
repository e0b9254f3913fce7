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
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "core/str.h"

namespace rush {

namespace {

// The functions of one program or library file, by address. The dynamic linker knows only those that are exported,
// which a program's own are not.
class SymbolTable {
 public:
  explicit SymbolTable(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto* header = at<ElfW(Ehdr)>(bytes, 0, 1);
    if (!header || !std::equal(ELFMAG, ELFMAG + SELFMAG, bytes.begin())) return;
    const auto* sections = at<ElfW(Shdr)>(bytes, header->e_shoff, header->e_shnum);
    if (!sections) return;
    for (size_t i = 0; i < header->e_shnum; ++i) {
      const ElfW(Shdr)& section = sections[i];
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) continue;
      const size_t count = section.sh_size / sizeof(ElfW(Sym));
      const auto* symbols = at<ElfW(Sym)>(bytes, section.sh_offset, count);
      const ElfW(Shdr)& strings = sections[section.sh_link];
      const char* names = at<char>(bytes, strings.sh_offset, strings.sh_size);
      if (symbols && names) add(symbols, count, std::string(names, strings.sh_size));
    }
  }

  // The function that covers `address`, counted from the start of the file's image; empty when there is none.
  std::string function_at(uint64_t address) const {
    auto next = functions_.upper_bound(address);
    if (next == functions_.begin()) return {};
    const auto& [start, function] = *std::prev(next);
    return address < start + function.size ? demangle(function.name.c_str()) : std::string();
  }

 private:
  struct Function {
    uint64_t size;
    std::string name;
  };

  // `count` objects from `offset`, or null when the file ends before.
  template <class T>
  static const T* at(const std::vector<char>& bytes, uint64_t offset, uint64_t count) {
    const bool fits = offset <= bytes.size() && count <= (bytes.size() - offset) / sizeof(T);
    return fits ? reinterpret_cast<const T*>(bytes.data() + offset) : nullptr;
  }

  void add(const ElfW(Sym) * symbols, size_t count, const std::string& names) {
    for (size_t i = 0; i < count; ++i) {
      if ((symbols[i].st_info & 0xF) != STT_FUNC || symbols[i].st_name >= names.size()) continue;
      functions_[symbols[i].st_value] = {symbols[i].st_size, names.c_str() + symbols[i].st_name};
    }
  }

  std::map<uint64_t, Function> functions_;
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
