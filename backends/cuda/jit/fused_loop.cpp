#include "backends/cuda/jit/fused_loop.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "backends/cuda/jit/functor_text.h"
#include "backends/cuda/jit/kernel.h"
#include "backends/cuda/own_kernels/signature.h"
#include "core/error/error.h"
#include "core/str.h"

namespace rush::cuda::jit {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kVectorBytes = 16;

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
)";

// What of a place is where in the kernel's parameters.
struct Externals {
  std::vector<int> device, host;  // places

  explicit Externals(const LoopDescription& loop) {
    for (size_t i = 0; i < loop.places.size(); ++i) {
      if (loop.places[i].is_inner) continue;
      (loop.places[i].is_host_number ? host : device).push_back(static_cast<int>(i));
    }
  }
};

bool is_written(const LoopDescription& loop, int place) {
  return std::ranges::any_of(loop.steps, [&](const LoopDescription::Step& step) { return step.places[0] == place; });
}
// Before the loop itself writes it.
bool is_read(const LoopDescription& loop, int place) {
  for (const LoopDescription::Step& step : loop.steps) {
    if (std::find(step.places.begin() + 1, step.places.end(), place) != step.places.end()) return true;
    if (step.places[0] == place) return false;
  }
  return false;
}

std::vector<ScalarType> dtypes_of(const LoopDescription& loop, const LoopDescription::Step& step) {
  std::vector<ScalarType> dtypes;
  for (const int place : step.places) dtypes.push_back(loop.places[static_cast<size_t>(place)].dtype);
  return dtypes;
}

const char* type_of(const LoopDescription& loop, int place) {
  return cpp_name(loop.places[static_cast<size_t>(place)].dtype);
}

// One kernel on one lane.
std::string step_text(const LoopDescription& loop, const LoopDescription::Step& step) {
  const std::optional<FunctorText> functor = functor_text(*step.call, dtypes_of(loop, step));
  RUSH_INTERNAL_ASSERT(functor, step.call->kernel(), " cannot be fused");
  std::string inputs;
  for (size_t i = 1; i < step.places.size(); ++i) inputs += str(i > 1 ? ", " : "", "v", step.places[i], "[l]");
  const int out = step.places[0];
  return str("    v", out, "[l] = settled(static_cast<", type_of(loop, out), ">(", functor->object, "(", inputs,
             ")), where.zero);  // ", step.call->kernel(), "\n");
}

std::string load_text(const LoopDescription& loop, int place, bool repeats) {
  const char* const type = type_of(loop, place);
  if (repeats) {
    return str("  {\n    const opmath_t<", type, "> number = *reinterpret_cast<const ", type, "*>(at", place,
               ");\n    for (int l = 0; l < n; ++l) v", place, "[l] = number;\n  }\n");
  }
  return str("  {\n    const auto lanes = *reinterpret_cast<const Lanes<", type, ", n>*>(at", place,
             ");\n    for (int l = 0; l < n; ++l) v", place, "[l] = lanes.lane[l];\n  }\n");
}

std::string store_text(const LoopDescription& loop, int place) {
  const char* const type = type_of(loop, place);
  return str("  {\n    Lanes<", type, ", n> lanes;\n    for (int l = 0; l < n; ++l) lanes.lane[l] = static_cast<", type,
             ">(v", place, "[l]);\n    *reinterpret_cast<Lanes<", type, ", n>*>(at", place, ") = lanes;\n  }\n");
}

// The address of a thread's first element of each operand.
std::string addresses_text(const LoopDescription& loop, const Externals& externals) {
  std::string text;
  for (size_t e = 0; e < externals.device.size(); ++e) {
    text += str("  char* at", externals.device[e], " = where.data[", e, "];\n");
  }
  const size_t dims = std::max<size_t>(loop.shape.size(), 1);
  text += "  Index rest = index;\n";
  for (size_t d = 0; d < dims; ++d) {
    if (d + 1 < dims) {
      text += str("  const Index i", d, " = rest % where.shape[", d, "];\n  rest /= where.shape[", d, "];\n");
    } else {
      text += str("  const Index i", d, " = rest;\n");
    }
    for (size_t e = 0; e < externals.device.size(); ++e) {
      const DimVector& strides = loop.places[static_cast<size_t>(externals.device[e])].strides;
      if (d < strides.size() && strides[d] == 0) continue;
      text += str("  at", externals.device[e], " += i", d, " * where.strides[", e, "][", d, "];\n");
    }
  }
  return text;
}

bool repeats_along_lanes(const LoopDescription& loop, int place) {
  const DimVector& strides = loop.places[static_cast<size_t>(place)].strides;
  return strides.empty() || strides[0] == 0;
}

}  // namespace

std::string source_text(const LoopDescription& loop, int lanes) {
  const Externals externals(loop);
  const size_t dims = std::max<size_t>(loop.shape.size(), 1);
  std::set<std::string> headers = {"backends/functors/convert.h"};
  for (const LoopDescription::Step& step : loop.steps) {
    if (const auto functor = functor_text(*step.call, dtypes_of(loop, step))) headers.insert(functor->header);
  }
  std::string text;
  for (const std::string& header : headers) text += str("#include \"", header, "\"\n");
  text += kPreamble;
  text += str("using Index = uint32_t;\nconstexpr int n = ", lanes, ";\nstruct Where {\n  char* data[",
              std::max<size_t>(externals.device.size(), 1), "];\n  int64_t strides[",
              std::max<size_t>(externals.device.size(), 1), "][", dims, "];\n  Index shape[", dims,
              "];\n  uint64_t numbers[", std::max<size_t>(externals.host.size(), 1), "];\n  uint32_t zero;\n};\n");
  text += str("extern \"C\" __global__ void __launch_bounds__(", kThreads,
              ") fused(const __grid_constant__ Where where, Index count) {\n"
              "  const Index index = blockIdx.x * ",
              kThreads, "u + threadIdx.x;\n  if (index >= count) return;\n");
  text += addresses_text(loop, externals);
  for (size_t i = 0; i < loop.places.size(); ++i) {
    text += str("  opmath_t<", cpp_name(loop.places[i].dtype), "> v", i, "[n];\n");
  }
  for (size_t h = 0; h < externals.host.size(); ++h) {
    const int place = externals.host[h];
    text += str("  for (int l = 0; l < n; ++l) v", place, "[l] = *reinterpret_cast<const ", type_of(loop, place),
                "*>(&where.numbers[", h, "]);\n");
  }
  for (const int place : externals.device) {
    if (is_read(loop, place)) text += load_text(loop, place, repeats_along_lanes(loop, place));
  }
  text += "#pragma unroll\n  for (int l = 0; l < n; ++l) {\n";
  for (const LoopDescription::Step& step : loop.steps) text += step_text(loop, step);
  text += "  }\n";
  for (const int place : externals.device) {
    if (is_written(loop, place)) text += store_text(loop, place);
  }
  return text + "}\n";
}

namespace {

class FusedKernel final : public ElementWiseLoop {
 public:
  explicit FusedKernel(LoopDescription description)
      : loop_(std::move(description)), externals_(loop_), lanes_(most_lanes()) {
    if (loop_.shape.empty()) loop_.shape.push_back(1);
    for (LoopDescription::Place& place : loop_.places) {
      if (!place.is_inner && place.strides.empty()) place.strides.push_back(0);
    }
  }

  void run(char* const* data) override {
    const int lanes = std::ranges::all_of(externals_.device,
                                          [&](int place) {
                                            return repeats_along_lanes(loop_, place) ||
                                                   reinterpret_cast<uintptr_t>(data[place]) %
                                                           static_cast<uintptr_t>(alignment(place, lanes_)) ==
                                                       0;
                                          })
                          ? lanes_
                          : 1;
    run_part(data, loop_.shape, lanes);
  }

 private:
  // A vector of a place is read at addresses that are multiples of this.
  int64_t alignment(int place, int lanes) const {
    return std::min(kVectorBytes, element_size(loop_.places[static_cast<size_t>(place)].dtype) * lanes);
  }

  int most_lanes() const {
    const int64_t run = loop_.shape.empty() ? 1 : loop_.shape[0];
    int64_t narrowest = kVectorBytes;
    for (const int place : externals_.device) {
      if (!repeats_along_lanes(loop_, place))
        narrowest = std::min(narrowest, element_size(loop_.places[static_cast<size_t>(place)].dtype));
    }
    for (int lanes = static_cast<int>(std::min<int64_t>(kVectorBytes / narrowest, 8)); lanes > 1; lanes /= 2) {
      if (run % lanes == 0 && std::ranges::all_of(externals_.device, [&](int place) { return fits(place, lanes); }))
        return lanes;
    }
    return 1;
  }
  bool fits(int place, int lanes) const {
    const LoopDescription::Place& p = loop_.places[static_cast<size_t>(place)];
    if (repeats_along_lanes(loop_, place)) return !is_written(loop_, place);
    if (p.strides[0] != element_size(p.dtype)) return false;
    return std::all_of(p.strides.begin() + 1, p.strides.end(),
                       [&](int64_t stride) { return stride % alignment(place, lanes) == 0; });
  }

  // In parts that 32-bit indices count.
  void run_part(char* const* data, const DimVector& shape, int lanes) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (count / lanes <= std::numeric_limits<int32_t>::max()) return launch(data, shape, lanes, count / lanes);
    const auto longest = std::ranges::max_element(shape);
    const auto d = static_cast<size_t>(longest - shape.begin());
    int64_t half = shape[d] / 2;
    if (d == 0) half = half / lanes * lanes;
    DimVector first = shape, second = shape;
    first[d] = half;
    second[d] = shape[d] - half;
    run_part(data, first, lanes);
    std::vector<char*> beyond(data, data + loop_.places.size());
    for (const int place : externals_.device) {
      beyond[static_cast<size_t>(place)] += half * loop_.places[static_cast<size_t>(place)].strides[d];
    }
    run_part(beyond.data(), second, lanes);
  }

  void launch(char* const* data, const DimVector& shape, int lanes, int64_t count) {
    // Where, as the source declares it: each array begins at a multiple of 8 bytes.
    const size_t dims = shape.size(), device = std::max<size_t>(externals_.device.size(), 1);
    std::vector<uint64_t> where;
    for (size_t e = 0; e < device; ++e)
      where.push_back(e < externals_.device.size() ? reinterpret_cast<uint64_t>(data[externals_.device[e]]) : 0);
    for (size_t e = 0; e < device; ++e) {
      for (size_t d = 0; d < dims; ++d) {
        const int64_t stride =
            e < externals_.device.size() ? loop_.places[static_cast<size_t>(externals_.device[e])].strides[d] : 0;
        where.push_back(static_cast<uint64_t>(d == 0 ? stride * lanes : stride));
      }
    }
    std::vector<uint32_t> sizes;
    for (size_t d = 0; d < dims; ++d) sizes.push_back(static_cast<uint32_t>(d == 0 ? shape[d] / lanes : shape[d]));
    sizes.resize((sizes.size() + 1) / 2 * 2);
    const size_t at = where.size();
    where.resize(at + sizes.size() / 2);
    std::memcpy(where.data() + at, sizes.data(), sizes.size() * sizeof(uint32_t));
    for (const int place : externals_.host) {
      uint64_t number = 0;
      std::memcpy(&number, data[place],
                  static_cast<size_t>(element_size(loop_.places[static_cast<size_t>(place)].dtype)));
      where.push_back(number);
    }
    if (externals_.host.empty()) where.push_back(0);
    where.push_back(0);  // `zero`
    auto index_count = static_cast<uint32_t>(count);
    void* parameters[] = {where.data(), &index_count};
    const auto blocks = static_cast<uint32_t>((count + kThreads - 1) / kThreads);
    kernel(lanes).launch("fused", {{blocks, 1, 1}, {kThreads, 1, 1}}, parameters);
  }

  const Kernel& kernel(int lanes) {
    std::optional<Kernel>& kernel = lanes == 1 ? one_ : several_;
    if (!kernel) kernel.emplace(Source{"fused", source_text(loop_, lanes), {"fused"}});
    return *kernel;
  }

  LoopDescription loop_;
  const Externals externals_;
  const int lanes_;
  std::optional<Kernel> one_, several_;
};

}  // namespace

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) {
  return std::make_unique<FusedKernel>(std::move(description));
}

}  // namespace rush::cuda::jit
