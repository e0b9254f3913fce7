#include "backends/cuda/jit/functor_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <typeinfo>
#include <unordered_map>

#include "backends/cuda/own_kernels/signature.h"
#include "backends/functors/activation.h"
#include "backends/functors/bessel.h"
#include "backends/functors/binary.h"
#include "backends/functors/compare.h"
#include "backends/functors/incomplete_gamma.h"
#include "backends/functors/special.h"
#include "backends/functors/ternary.h"
#include "backends/functors/unary.h"
#include "core/debug/stack_trace.h"
#include "core/ops/factory/factories.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/reduce/extrema.h"
#include "core/ops/view/copy.h"
#include "core/str.h"

namespace rush::cuda::jit {

namespace {

// A functor, as a row of the tables names it: "rush::functors::Mul", or a template in one of those of
// backends/functors/table.h, "rush::With<rush::functors::LeakyRelu>".
struct Entry {
  const char* header;
  std::string name;
};
using Entries = std::unordered_map<const void*, Entry>;

template <auto& kernel, class F, class Types, unsigned how>
void add(Entries& entries, Row<kernel, F, Types, how>, const char* header) {
  entries.emplace(&kernel, Entry{header, demangle(typeid(F).name())});
}
template <class... Rows>
void add(Entries& entries, Table<Rows...>, const char* header) {
  (add(entries, Rows(), header), ...);
}
template <class... Tables>
void add_all(Entries& entries, const char* header) {
  (add(entries, Tables(), header), ...);
}

const Entries& entries() {
  using namespace functors;
  static const Entries all = [] {
    Entries entries;
    add_all<ActivationTable, ActivationBackwardTable>(entries, "backends/functors/activation.h");
    add_all<BesselTable>(entries, "backends/functors/bessel.h");
    add_all<BinaryTable, PowerTable, LogAddExpTable>(entries, "backends/functors/binary.h");
    add_all<CompareTable, LogicTable>(entries, "backends/functors/compare.h");
    add_all<IncompleteGammaTable>(entries, "backends/functors/incomplete_gamma.h");
    add_all<SpecialTable>(entries, "backends/functors/special.h");
    add_all<TernaryTable>(entries, "backends/functors/ternary.h");
    add_all<UnaryTable, UnaryMathTable, TrigonometryTable>(entries, "backends/functors/unary.h");
    return entries;
  }();
  return all;
}

// As C++ writes it, exactly.
std::string text_of(const Scalar& number) {
  if (number.is_boolean()) return number.toBool() ? "true" : "false";
  if (number.is_integral(false)) return str("int64_t(", static_cast<uint64_t>(number.toLong()), "ull)");
  const double value = number.toDouble();
  return str("__longlong_as_double(", std::bit_cast<uint64_t>(value), "ull)");
}

bool is_16_bit_float(ScalarType dtype) { return dtype == kFloat16 || dtype == kBFloat16; }

// Types that the generated sources know.
bool is_known(ScalarType dtype) {
  constexpr ScalarType kKnown[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kBool,
                                   kUInt8,   kInt8,    kInt16,   kInt32,    kInt64};
  return std::ranges::find(kKnown, dtype) != std::end(kKnown);
}

std::string math_name(ScalarType dtype) { return is_16_bit_float(dtype) ? "float" : cpp_name(dtype); }

// With those of its numbers that are given.
std::string with_numbers(const std::string& functor, const std::vector<std::optional<Scalar>>& numbers,
                         const std::string& type) {
  std::string list;
  for (const std::optional<Scalar>& number : numbers) {
    if (!list.empty() && number) list += ", ";
    if (number) list += type.empty() ? text_of(*number) : str("static_cast<", type, ">(", text_of(*number), ")");
  }
  return str(functor, '{', list, '}');
}

// Which functor a kernel takes that has a function of its own beside the tables, because a number decides.
std::optional<FunctorText> beside_the_tables(const IteratorCall& call, ArrayRef<ScalarType> dtypes,
                                             const std::string& math) {
  const std::vector<std::optional<Scalar>> numbers = call.numbers();
  const void* const kernel = call.kernel_address();
  constexpr const char* kBinary = "backends/functors/binary.h";
  constexpr const char* kTernary = "backends/functors/ternary.h";
  constexpr const char* kUnary = "backends/functors/unary.h";
  const auto of_math = [&](const char* header, const char* name) {
    return FunctorText{header, with_numbers(str("functors::", name, '<', math, '>'), numbers, math)};
  };
  if (kernel == &kernels::add) {
    return numbers[0]->equal(1) ? FunctorText{kBinary, "functors::Add{}"} : of_math(kBinary, "AddScaled");
  }
  if (kernel == &kernels::dropout_backward) return of_math("backends/functors/random.h", "DropoutBackward");
  if (kernel == &kernels::where) return FunctorText{kTernary, "functors::Where{}"};
  if (kernel == &kernels::pow_scalar) {
    const bool is_float = is_floating_point(dtypes[1]);
    if (numbers[0]->equal(2)) return FunctorText{kBinary, "functors::Square{}"};
    if (numbers[0]->equal(3)) return FunctorText{kBinary, "functors::Cube{}"};
    if (is_float && numbers[0]->equal(0.5)) return FunctorText{kUnary, "functors::Sqrt{}"};
    if (is_float && numbers[0]->equal(-0.5)) return FunctorText{kUnary, "functors::Rsqrt{}"};
    if (is_float && numbers[0]->equal(-1)) return FunctorText{kUnary, "functors::Reciprocal{}"};
    return of_math(kBinary, "PowScalar");
  }
  if (kernel == &kernels::clamp_scalar) {
    return of_math(kTernary, !numbers[1] ? "ClampMin" : !numbers[0] ? "ClampMax" : "ClampScalar");
  }
  if (kernel == &kernels::copy) {
    return FunctorText{"backends/functors/convert.h", str("Converted<", cpp_name(dtypes[0]), ">{}")};
  }
  constexpr const char* kReduce = "backends/functors/reduce.h";
  if (kernel == &kernels::mean) return FunctorText{kReduce, str("functors::Mean<", math, ">(columns)")};
  if (kernel == &kernels::amax) return FunctorText{kReduce, str("functors::Max<", math, ">{}")};
  if (kernel == &kernels::amin) return FunctorText{kReduce, str("functors::Min<", math, ">{}")};
  if (kernel == &kernels::sum || kernel == &kernels::prod) {
    const char* const name = kernel == &kernels::sum ? "Sum" : "Prod";
    return FunctorText{
        kReduce, str("functors::", name, "<", math, ", ", is_integral(dtypes[1], true) ? "int64_t" : math, ">{}")};
  }
  if (kernel == &kernels::fill && !numbers[0]->is_complex()) {
    const std::string type = cpp_name(dtypes[0]), number = str("static_cast<", math, ">(", text_of(*numbers[0]), ')');
    return FunctorText{"backends/functors/convert.h",
                       str("Constant<", type, ">{static_cast<", type, ">(", number, ")}")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FunctorText> functor_text(const IteratorCall& call, ArrayRef<ScalarType> dtypes) {
  if (!std::ranges::all_of(dtypes, is_known)) return std::nullopt;
  const ScalarType common = dtypes[dtypes.size() > 1 ? 1 : 0];
  const std::string math = math_name(common);
  const auto found = entries().find(call.kernel_address());
  if (found == entries().end()) return beside_the_tables(call, dtypes, math);
  const auto& [header, name] = found->second;
  const std::vector<std::optional<Scalar>> numbers = call.numbers();
  const auto inside = [&](std::string_view open) { return name.substr(open.size(), name.size() - open.size() - 1); };
  if (constexpr std::string_view kOfMath = "rush::With<"; name.starts_with(kOfMath))
    return FunctorText{header, with_numbers(str(inside(kOfMath), '<', math, '>'), numbers, math)};
  if (constexpr std::string_view kOfStorage = "rush::OfStorage<"; name.starts_with(kOfStorage))
    return FunctorText{header, with_numbers(str(inside(kOfStorage), '<', cpp_name(common), '>'), numbers, "")};
  return FunctorText{header, with_numbers(name, numbers, "")};
}

}  // namespace rush::cuda::jit
