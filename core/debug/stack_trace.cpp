#include "core/debug/stack_trace.h"

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
#include <string_view>

#include "core/debug/source_line.h"
#include "core/error/error.h"
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

  // The symbol of the function that covers `address`, counted from the start of the file's image; null when there is
  // none.
  const char* symbol_at(uint64_t address) const {
    const auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                       [](uint64_t where, const Function& each) { return where < each.start; });
    if (next == functions_.begin()) return nullptr;
    const Function& function = *std::prev(next);
    return address < function.start + function.size ? &names_[function.name] : nullptr;
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

// A call, by the address to return to.
struct Call {
  std::string symbol;  // mangled; empty where the file has none
  std::string place;   // "program+0x1f2a"
  bool known = false;  // whether a file was found
};

// Not by several threads at once.
Call look_up(void* return_address) {
  static auto& tables = *new std::map<std::string, SymbolTable>;
  Dl_info module{};
  link_map* map = nullptr;
  // The call is before the address to return to, which may already belong to the next function.
  char* address = static_cast<char*>(return_address) - 1;
  if (!dladdr1(address, &module, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) {
    return {{}, hexadecimal(reinterpret_cast<uint64_t>(address)), false};
  }
  const bool is_program = map->l_name[0] == '\0';
  const std::string path = is_program ? "/proc/self/exe" : map->l_name;
  const uint64_t offset = reinterpret_cast<uint64_t>(address) - map->l_addr;
  const char* symbol = tables.try_emplace(path, path).first->second.symbol_at(offset);
  if (!symbol) symbol = module.dli_sname;
  const std::string file = module.dli_fname ? module.dli_fname : path;
  return {symbol ? symbol : "", str(file.substr(file.rfind('/') + 1), "+", hexadecimal(offset)), true};
}

// Looked up once: for each address the dynamic linker goes through all symbols that the program exports, a quarter of
// a millisecond where it exports the library's, and a profile puts thousands of stacks into words.
const Call& find_call(void* return_address) {
  static auto& known = *new std::map<void*, Call>;  // whose elements stay where they are
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  const auto found = known.find(return_address);
  return found != known.end() ? found->second : known.emplace(return_address, look_up(return_address)).first->second;
}

// Whether a mangled name begins with one of these namespaces: "_ZN4rush", also of what is local to their functions,
// "_ZZN4rush"; a demangled one begins with what a template returns.
bool is_in_namespace(std::string_view symbol, std::initializer_list<std::string_view> names) {
  if (!symbol.starts_with("_Z")) return false;
  symbol.remove_prefix(2);
  const auto skip = [&](std::string_view letters) {
    symbol.remove_prefix(std::min(symbol.find_first_not_of(letters), symbol.size()));
  };
  skip("Z");
  if (symbol.starts_with("Th") || symbol.starts_with("Tv")) {  // a thunk: "Thn16_N4rush..."
    symbol.remove_prefix(2);
    skip("nv_0123456789");
  }
  const bool is_nested = symbol.starts_with('N');
  skip("N");
  if (is_nested) skip("VKRO");
  return std::ranges::any_of(names, [&](std::string_view name) { return symbol.starts_with(name); });
}

// Whether it belongs to namespace rush or std, or is reserved for the C library: not to the program.
bool is_library_symbol(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return symbol.starts_with('_') || symbol.starts_with("GOMP_") || symbol == "clone3";
  return is_in_namespace(symbol, {"4rush", "St", "Sa", "Ss", "Sb", "9__gnu_cxx", "10__cxxabiv1"});
}

// Whether a call was made by the program itself, or by a library of its own.
bool is_outside_library(const Call& call) {
  if (call.symbol.empty() || is_library_symbol(call.symbol)) return false;
  for (const std::string_view runtime : {"libc.so", "libgomp.so", "libomp.so", "libstdc++.so", "libpthread.so"}) {
    if (call.place.starts_with(runtime)) return false;
  }
  return true;
}

void remove_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part)) text.erase(at, part.size());
}

// Where the name begins in "void check<45ul>": what a function template returns stands before it.
size_t name_start(std::string_view text) {
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '(' || text[i] == '{') ++depth;
    if (text[i] == '>' || text[i] == ')' || text[i] == '}') --depth;
    if (text[i] == ' ' && depth == 0 && !text.substr(0, i).ends_with("operator")) start = i + 1;
  }
  return start;
}

// "train" of "(anonymous namespace)::train(rush::Tensor const&, int)", and no more than fits beside others on a line.
std::string short_name(const std::string& symbol) {
  constexpr size_t kLongest = 60;
  std::string name = demangle(symbol.c_str());
  remove_all(name, "(anonymous namespace)::");
  int depth = 0;
  for (size_t i = name.rfind(')'); i != name.npos && i > 0; --i) {  // the brackets of the parameters, the last ones
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) {
      name.resize(i);
      break;
    }
  }
  // A lambda within another lambda's function is named by both lambdas.
  constexpr std::string_view kCall = "operator()", kWithin = " const::";
  for (size_t end = name.find(kWithin); end != name.npos; end = name.find(kWithin)) {
    const size_t call = std::min(name.rfind(kCall, end), end);
    name.erase(call, end + kWithin.size() - call);
  }
  name.erase(0, name_start(name));
  return name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
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
  std::vector<std::string> texts;
  for (void* address : return_addresses_) {
    const Call& call = find_call(address);
    const std::string function = call.symbol.empty() ? std::string() : demangle(call.symbol.c_str()) + " ";
    texts.push_back(call.known ? str(function, "(", call.place, ")") : call.place);
  }
  return texts;
}

std::vector<std::string> StackTrace::frames_outside_library() const {
  constexpr size_t kMost = 4;
  std::vector<std::string> texts;
  for (void* address : return_addresses_) {
    const Call& call = find_call(address);
    if (!is_outside_library(call)) continue;
    texts.push_back(str(short_name(call.symbol), " (", call.place, ")"));
    if (texts.size() == kMost || call.symbol == "main") break;
  }
  return texts;
}

const void* StackTrace::caller_outside_library() const {
  for (void* address : return_addresses_) {
    if (is_outside_library(find_call(address))) return address;
  }
  return nullptr;
}

const void* StackTrace::caller_with_line() const {
  for (void* address : return_addresses_) {
    const Call& call = find_call(address);
    if (call.symbol.empty() || is_in_namespace(call.symbol, {"4rush"})) continue;
    if (is_outside_library(call) || source_line(address).line > 0) return address;
  }
  return nullptr;
}

std::string join_frames(const std::vector<std::string>& frames) {
  std::string text;
  for (const std::string& frame : frames) text += (text.empty() ? "" : " < ") + frame;
  return text;
}

}  // namespace rush
