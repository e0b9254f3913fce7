// Library: operators that a program, or a shared library that it loads, adds to those of Rushlight.
#pragma once
#include "core/dispatch/registry.h"
#include "core/library/by_device.h"
#include "core/library/identity.h"
#include "core/library/signature.h"

namespace rush {

// Note [Operators from outside]
// A program that adds operators gives a function to add_operators; a shared library has one, which RUSH_OPERATORS
// defines and load_library calls. The function only notes what is to be registered: a Library. When it has returned,
// all of it is checked, and then registered, so that a mistake leaves the registry as it was, and a shared library that
// is refused can be closed again.
//
// An operator from outside needs no front of its own: it has a function for each type of device, and Functions::front
// looks in their table. The function for meta tensors, which computes sizes and dtypes without data, is one of them.

/// What a library registers, noted by its RUSH_OPERATORS. Each operator is an object, `constinit rush::Op<...>
/// op{schema}` at namespace scope; its functions are of its signature, and may be lambdas without captures.
class Library {
 public:
  /// The function of `op` on a type of device. torch.library.register_kernel.
  template <auto& op>
  void register_kernel(DeviceType device, library::detail::Sig<op>* fn,
                       SourceLocation where = SourceLocation::current()) {
    note<op>(Kind::Kernel, device, fn, where, [](Registry& registry, const Step& step) {
      using Table = library::detail::ByDevice<op>;
      Table::table[static_cast<int>(step.device)] = reinterpret_cast<typename Table::Fn>(step.fn);
      registry.native(op, Table::front, step.where);
    });
  }
  /// The function of `op` for tensors on meta, which have no data: it returns tensors on meta of the sizes, strides and
  /// dtypes that the kernels give. torch.library.register_fake.
  template <auto& op>
  void register_fake(library::detail::Sig<op>* fn, SourceLocation where = SourceLocation::current()) {
    register_kernel<op>(kMeta, fn, where);
  }
  /// The body of an operator that is made of calls to others. It serves all devices, and needs neither a meta function
  /// nor a derivative.
  template <auto& op>
  void register_composite(library::detail::Sig<op>* body, SourceLocation where = SourceLocation::current()) {
    note<op>(Kind::Composite, kCPU, body, where, [](Registry& registry, const Step& step) {
      registry.composite(op, reinterpret_cast<library::detail::Sig<op>*>(step.fn), step.where);
    });
  }
  /// The derivative of `op`, a lambda without captures: (gradients of the results..., arguments...) -> gradients of the
  /// tensor arguments, a Tensor, a tuple of them, or a vector; an undefined one stands for zero. The gradient of a list
  /// is a list, that of a number 0. It may take the results behind the arguments. What it calls is recorded, for second
  /// derivatives. autograd/library/register_autograd.h defines it. torch.library.register_autograd.
  template <auto& op, class Derivative>
  void register_autograd(Derivative, SourceLocation where = SourceLocation::current());
  /// Another operator as the derivative, whose own derivative gives the second ones.
  template <auto& op, auto& derivative>
  void register_autograd(SourceLocation where = SourceLocation::current());

 private:
  friend void add_operators(void (*body)(Library&));

  enum class Kind : uint8_t { Kernel, Composite, Autograd };
  struct Step {
    OpBase* op;
    Kind kind;
    DeviceType device;
    void (*fn)();
    SourceLocation where;
    library::Signature signature;
    void (*apply)(Registry&, const Step&);
    std::string_view name() const { return op->name(); }
  };

  template <auto& op>
  void note(Kind kind, DeviceType device, library::detail::Sig<op>* fn, SourceLocation where,
            void (*apply)(Registry&, const Step&)) {
    steps_.push_back({&op, kind, device, reinterpret_cast<void (*)()>(fn), where,
                      library::signature_of<library::detail::Sig<op>>(), apply});
  }
  void check(const Registry& registry) const;
  void check_step(size_t i) const;
  void commit(Registry& registry) const;

  std::vector<Step> steps_;
};

/// Registers the operators that `body` notes, all or none of them: see Note [Operators from outside]. Not while other
/// threads call operators by name. Throws ValueError where a schema cannot be parsed, a name has no namespace ("my::")
/// or is taken, something is given twice, or a derivative has no kernel; TypeError where a schema and a C++ type
/// differ; and what `body` throws.
void add_operators(void (*body)(Library&));

/// Opens a shared library and registers its operators; without effect for one that is loaded already. It stays open
/// until the process ends. Throws IOError where the file cannot be read or is no shared library; ValueError where it
/// has no RUSH_OPERATORS, was built against another version of Rushlight or with a copy of it inside, or where the
/// program does not export what it needs; and what add_operators throws. torch.ops.load_library.
void load_library(const std::string& path);

namespace library::detail {
// Throws NotImplementedError unless there is one.
const OpBase& operator_named(std::string_view name);

// What load_library looks for in a shared library: by its name, and before that by the mark in the identity.
struct Entry {
  Identity identity;
  Registry& (*registry)();  // as the library finds it: ours, unless it has a copy
  void (*body)(Library&);
};
}  // namespace library::detail

/// The operator of a name, to be called by its C++ type: find_operator<Tensor(const Tensor&, double)>("my::scale").
/// Throws NotImplementedError where there is none, and TypeError where its schema has another type.
template <class Sig>
const Op<Sig>& find_operator(std::string_view name) {
  const OpBase& op = library::detail::operator_named(name);
  library::check_signature(op, library::signature_of<Sig>());
  return static_cast<const Op<Sig>&>(op);
}

}  // namespace rush

/// The one entry point of a shared library of operators: RUSH_OPERATORS(library) { library.register_kernel<op>(...); }
#define RUSH_OPERATORS(argument)                                                                           \
  static void rush_note_operators(::rush::Library&);                                                       \
  extern "C" [[gnu::visibility("default")]] const ::rush::library::detail::Entry rush_operators_entry;     \
  const ::rush::library::detail::Entry rush_operators_entry{::rush::library::kIdentity, &::rush::registry, \
                                                            &rush_note_operators};                         \
  static void rush_note_operators([[maybe_unused]] ::rush::Library& argument)
