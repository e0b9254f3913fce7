// c10::DispatchKeySet: a set of libtorch's dispatch keys. Of a tensor's it has those of its device, its layout and
// autograd.
#pragma once
#include "c10/macros/Macros.h"

#include <bit>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace c10 {

#define RUSH_DISPATCH_KEYS                                                                                            \
  Undefined, CPU, CUDA, XPU, MPS, Meta, QuantizedCPU, QuantizedCUDA, MkldnnCPU, SparseCPU, SparseCUDA, SparseCsrCPU,  \
      SparseCsrCUDA, BackendSelect, Python, Functionalize, ADInplaceOrView, AutogradOther, AutogradCPU, AutogradCUDA, \
      AutogradXPU, AutogradMPS, AutogradMeta, Tracer, AutocastCPU, AutocastXPU, AutocastMPS, AutocastCUDA,            \
      FuncTorchBatched, PythonTLSSnapshot, Autograd, CompositeImplicitAutograd, CompositeExplicitAutograd
#define RUSH_TEXT_OF(...) #__VA_ARGS__
#define RUSH_EXPANDED_TEXT_OF(...) RUSH_TEXT_OF(__VA_ARGS__)
/// In libtorch's order of priority. The last three stand for several keys each, and are in no set.
enum class DispatchKey : uint16_t { RUSH_DISPATCH_KEYS, Autocast = AutocastCUDA, CatchAll = CompositeImplicitAutograd };
inline std::string toString(DispatchKey key) {
  std::string_view names = RUSH_EXPANDED_TEXT_OF(RUSH_DISPATCH_KEYS);
  for (int i = 0; i < static_cast<int>(key); ++i) names.remove_prefix(names.find(' ') + 1);
  return std::string(names.substr(0, names.find(',')));
}
#undef RUSH_EXPANDED_TEXT_OF
#undef RUSH_TEXT_OF
#undef RUSH_DISPATCH_KEYS
inline std::ostream& operator<<(std::ostream& out, DispatchKey key) { return out << toString(key); }

class DispatchKeySet {
 public:
  constexpr DispatchKeySet() = default;
  constexpr explicit DispatchKeySet(DispatchKey key) : bits_(bit(key)) {}
  constexpr explicit DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey key : keys) bits_ |= bit(key);
  }
  constexpr bool has(DispatchKey key) const { return bits_ & bit(key); }
  constexpr bool has_any(DispatchKeySet other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool has_all(DispatchKeySet other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool isSupersetOf(DispatchKeySet other) const { return has_all(other); }
  constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr DispatchKeySet add(DispatchKey key) const { return from_bits(bits_ | bit(key)); }
  [[nodiscard]] constexpr DispatchKeySet remove(DispatchKey key) const { return from_bits(bits_ & ~bit(key)); }
  constexpr DispatchKeySet operator|(DispatchKeySet other) const { return from_bits(bits_ | other.bits_); }
  constexpr DispatchKeySet operator&(DispatchKeySet other) const { return from_bits(bits_ & other.bits_); }
  constexpr DispatchKeySet operator-(DispatchKeySet other) const { return from_bits(bits_ & ~other.bits_); }
  constexpr bool operator==(const DispatchKeySet&) const = default;
  constexpr DispatchKey highestPriorityTypeId() const { return static_cast<DispatchKey>(std::bit_width(bits_)); }
  constexpr uint64_t raw_repr() const { return bits_; }

 private:
  // Undefined is no key of any set.
  static constexpr uint64_t bit(DispatchKey key) { return (uint64_t{1} << static_cast<unsigned>(key)) >> 1; }
  static constexpr DispatchKeySet from_bits(uint64_t bits) {
    DispatchKeySet set;
    set.bits_ = bits;
    return set;
  }
  uint64_t bits_ = 0;
};

/// "DispatchKeySet(CPU, AutogradCPU)"
inline std::ostream& operator<<(std::ostream& out, DispatchKeySet set) {
  out << "DispatchKeySet(";
  const char* separator = "";
  for (unsigned key = 1; key <= static_cast<unsigned>(std::bit_width(set.raw_repr())); ++key) {
    if (!set.has(static_cast<DispatchKey>(key))) continue;
    out << separator << static_cast<DispatchKey>(key);
    separator = ", ";
  }
  return out << ")";
}

}  // namespace c10
