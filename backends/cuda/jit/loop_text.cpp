#include "backends/cuda/jit/loop_text.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>

#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/jit/functor_text.h"
#include "backends/cuda/own_kernels/signature.h"
#include "core/debug/source_line.h"
#include "core/error/error.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"
#include "core/str.h"

namespace rush::cuda::jit {

namespace {

constexpr const char* kPreamble = R"(
using namespace rush;
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Lanes {
  T lane[n];
};
template <class T>
struct Constant {
  T value;
  __device__ T operator()() const { return value; }
};
template <class To>
struct Converted {
  template <class From>
  __device__ To operator()(From value) const { return functors::converted<To>(value); }
};
// The number that memory would hold. `zero` is 0, which no compiler knows: so none contracts a product that went through
// here with a sum that follows.
inline __device__ float settled(float value, uint32_t zero) { return __uint_as_float(__float_as_uint(value) ^ zero); }
inline __device__ double settled(double value, uint32_t zero) {
  return __hiloint2double(__double2hiint(value) ^ zero, __double2loint(value));
}
template <class T>
inline __device__ opmath_t<T> settled(T value, uint32_t) {
  if constexpr (is_reduced_float_v<T>) return static_cast<float>(value);
  else return value;
}
// What step kStep reads where others read it, too: no compiler knows that it is the same. One that computed a product of
// two functors once would contract it in neither.
template <int kStep>
inline __device__ float own(float value) {
  asm("// step %1" : "+f"(value) : "n"(kStep));
  return value;
}
template <int kStep>
inline __device__ double own(double value) {
  asm("// step %1" : "+d"(value) : "n"(kStep));
  return value;
}
template <int kStep, class T>
inline __device__ T own(T value) { return value; }
)";

FunctorText functor_of(const LoopDescription& loop, const LoopDescription::Step& step) {
  std::vector<ScalarType> dtypes;
  for (const size_t place : step.places) dtypes.push_back(loop.places[place].dtype);
  const std::optional<FunctorText> functor = functor_text(*step.call, dtypes);
  RUSH_INTERNAL_ASSERT(functor, step.call->kernel(), " cannot be fused");
  return *functor;
}

// How many steps read the place.
std::ptrdiff_t readers_of(const LoopDescription& loop, size_t place) {
  return std::ranges::count_if(loop.steps, [&](const LoopDescription::Step& step) {
    return std::find(step.places.begin() + 1, step.places.end(), place) != step.places.end();
  });
}

// Whether a sum that reads the output could be contracted with a product that makes it.
bool may_be_contracted(const LoopDescription& loop, const LoopDescription::Step& step) {
  const void* const kernel = step.call->kernel_address();
  if (kernel == &kernels::add || kernel == &kernels::copy) return false;  // they end in no product
  return has_reader(loop, step.places[0]);
}

}  // namespace

Externals::Externals(const LoopDescription& loop) {
  for (size_t i = 0; i < loop.places.size(); ++i) {
    if (loop.places[i].is_inner) continue;
    (loop.places[i].is_host_number ? host : device).push_back(i);
  }
}

const char* type_of(const LoopDescription& loop, size_t place) { return cpp_name(loop.places[place].dtype); }

bool is_written(const LoopDescription& loop, size_t place) {
  return std::ranges::any_of(loop.steps, [&](const LoopDescription::Step& step) { return step.places[0] == place; });
}

bool has_reader(const LoopDescription& loop, size_t place) { return readers_of(loop, place) > 0; }

bool repeats_along_lanes(const LoopDescription& loop, size_t place) {
  const DimVector& strides = loop.places[place].strides;
  return strides.empty() || strides[0] == 0;
}

std::string kernel_name(const LoopDescription& loop) {
  constexpr size_t kLongest = 64;
  std::string name = "fused";
  for (const LoopDescription::Step& step : loop.steps) {
    const std::string more = str('_', step.call->kernel());
    if (name.size() + more.size() > kLongest) break;
    name += more;
  }
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

std::string prologue_text(const LoopDescription& loop, const Externals& externals, int lanes) {
  const size_t dims = std::max<size_t>(loop.shape.size(), 1);
  std::set<std::string> headers = {"backends/functors/convert.h"};
  for (const LoopDescription::Step& step : loop.steps) headers.insert(functor_of(loop, step).header);
  if (loop.has_rows()) headers.insert("backends/cuda/kernels/reduce/block_combine.h");
  std::string text;
  for (const std::string& header : headers) text += str("#include \"", header, "\"\n");
  text += kPreamble;
  return text + str("using Index = uint32_t;\nconstexpr int n = ", lanes, ";\nstruct Where {\n  char* data[",
                    std::max<size_t>(externals.device.size(), 1), "];\n  int64_t strides[",
                    std::max<size_t>(externals.device.size(), 1), "][", dims, "];\n  Index shape[", dims,
                    "];\n  uint64_t numbers[", std::max<size_t>(externals.host.size(), 1),
                    "];\n  uint32_t zero;\n};\n");
}

std::string addresses_text(const LoopDescription& loop, const Externals& externals, size_t first_dim, const char* index,
                           int positions) {
  std::string text;
  for (size_t e = 0; e < externals.device.size(); ++e) {
    text += str("  char* at", externals.device[e], " = where.data[", e, "];\n");
  }
  const size_t dims = std::max<size_t>(loop.shape.size(), 1);
  text += str("  Index rest = ", index, ";\n");
  for (size_t d = first_dim; d < dims; ++d) {
    if (d + 1 < dims) {
      text += str("  const Index i", d, " = rest % where.shape[", d, "];\n  rest /= where.shape[", d, "];\n");
    } else {
      text += str("  const Index i", d, " = rest;\n");
    }
    for (size_t e = 0; e < externals.device.size(); ++e) {
      const DimVector& strides = loop.places[externals.device[e]].strides;
      if (d < strides.size() && strides[d] == 0) continue;
      const std::string step = d == 1 && positions > 1 ? str(positions, " * ") : "";
      text += str("  at", externals.device[e], " += i", d, " * ", step, "where.strides[", e, "][", d, "];\n");
    }
  }
  return text;
}

std::string inputs_text(const LoopDescription& loop, const LoopDescription::Step& step,
                        const std::function<const char*(size_t)>& lane) {
  std::string text;
  for (size_t i = 1; i < step.places.size(); ++i) {
    const size_t place = step.places[i];
    const std::string value = str('v', place, lane(place));
    const bool is_shared = readers_of(loop, place) > 1;
    text += str(i > 1 ? ", " : "", is_shared ? str("own<", &step - loop.steps.data(), ">(", value, ')') : value);
  }
  return text;
}

std::string functor_object(const LoopDescription& loop, const LoopDescription::Step& step) {
  return functor_of(loop, step).object;
}

std::string functor_call(const LoopDescription& loop, const LoopDescription::Step& step, const std::string& inputs) {
  const std::string value =
      str("static_cast<", type_of(loop, step.places[0]), ">(", functor_object(loop, step), "(", inputs, "))");
  return str(may_be_contracted(loop, step) ? str("settled(", value, ", where.zero)") : value, ";  // ",
             step.call->kernel(), "\n");
}

std::string at_program_line(const LoopDescription::Step& step, const std::string& statement) {
  const SourceLine where = source_line(step.called_before);
  return where.line == 0 ? statement : line_directive(where.line, where.file) + statement + kOwnLines;
}

std::string declaration_text(const LoopDescription& loop, size_t place) {
  const char* const type = type_of(loop, place);
  return has_reader(loop, place) ? str("  opmath_t<", type, "> v", place, "[n];\n")
                                 : str("  ", type, " v", place, "[n];\n");
}

std::string load_text(const LoopDescription& loop, size_t place, const std::string& at) {
  const char* const type = type_of(loop, place);
  return str("  {\n    const auto lanes = *reinterpret_cast<const Lanes<", type, ", n>*>(", at,
             ");\n    for (int l = 0; l < n; ++l) v", place, "[l] = lanes.lane[l];\n  }\n");
}

std::string store_text(const LoopDescription& loop, size_t place, const std::string& at) {
  const char* const type = type_of(loop, place);
  return str("  {\n    Lanes<", type, ", n> lanes;\n    for (int l = 0; l < n; ++l) lanes.lane[l] = static_cast<", type,
             ">(v", place, "[l]);\n    *reinterpret_cast<Lanes<", type, ", n>*>(", at, ") = lanes;\n  }\n");
}

int64_t alignment(const LoopDescription& loop, size_t place, int lanes) {
  return std::min(kVectorBytes, element_size(loop.places[place].dtype) * lanes);
}

bool fits_lanes(const LoopDescription& loop, size_t place, int lanes) {
  const LoopDescription::Place& p = loop.places[place];
  return p.strides[0] == element_size(p.dtype) &&
         std::all_of(p.strides.begin() + 1, p.strides.end(),
                     [&](int64_t stride) { return stride % alignment(loop, place, lanes) == 0; });
}

bool are_aligned(const LoopDescription& loop, const std::vector<size_t>& places, char* const* data, int lanes) {
  return std::ranges::all_of(places, [&](size_t place) {
    return repeats_along_lanes(loop, place) ||
           reinterpret_cast<uintptr_t>(data[place]) % static_cast<uintptr_t>(alignment(loop, place, lanes)) == 0;
  });
}

std::vector<uint64_t> where_of(const LoopDescription& loop, const Externals& externals, char* const* data,
                               const DimVector& shape, int lanes, int positions) {
  const size_t dims = shape.size(), device = std::max<size_t>(externals.device.size(), 1);
  const size_t sizes_at = device * (1 + dims), numbers_at = sizes_at + (dims + 1) / 2;
  // As the source declares it: each array begins at a multiple of 8 bytes. What is not set is 0, as `zero` at the end.
  std::vector<uint64_t> where(numbers_at + std::max<size_t>(externals.host.size(), 1) + 1, 0);
  for (size_t e = 0; e < externals.device.size(); ++e) {
    const size_t place = externals.device[e];
    where[e] = reinterpret_cast<uint64_t>(data[place]);
    for (size_t d = 0; d < dims; ++d) {
      const int64_t stride = loop.places[place].strides[d];
      where[device + e * dims + d] = static_cast<uint64_t>(d == 0 ? stride * lanes : stride);
    }
  }
  for (size_t d = 0; d < dims; ++d) {
    const int64_t steps = d == 0 ? shape[d] / lanes : d == 1 ? (shape[d] + positions - 1) / positions : shape[d];
    const auto size = static_cast<uint32_t>(steps);
    std::memcpy(reinterpret_cast<char*>(where.data() + sizes_at) + d * sizeof(size), &size, sizeof(size));
  }
  for (size_t h = 0; h < externals.host.size(); ++h) {
    const size_t place = externals.host[h];
    std::memcpy(&where[numbers_at + h], data[place], static_cast<size_t>(element_size(loop.places[place].dtype)));
  }
  return where;
}

}  // namespace rush::cuda::jit
