#include "backends/cuda/jit/fused_loop.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cuda/jit/kernel.h"
#include "backends/cuda/jit/loop_text.h"
#include "core/str.h"

namespace rush::cuda::jit {

namespace {

// Before the loop itself writes it.
bool is_read(const LoopDescription& loop, size_t place) {
  for (const LoopDescription::Step& step : loop.steps) {
    if (std::find(step.places.begin() + 1, step.places.end(), place) != step.places.end()) return true;
    if (step.places[0] == place) return false;
  }
  return false;
}

// Note [Positions of a channel]
// In a batch norm of images whose channels lie innermost, the numbers of a channel are the same at every position. A
// thread that takes one position of a few channels reads more of these than of the image. So it takes several: where an
// operand repeats in dimension 1, and not in dimension 0, it is read once for all of them, and what is computed from it
// alone, such as a root, is computed once.
constexpr int kPositions = 4;

bool repeats_over_positions(const LoopDescription& loop, size_t place) { return loop.places[place].strides[1] == 0; }

// How many elements of dimension 1 a thread takes.
int positions_of(const LoopDescription& loop, const Externals& externals) {
  constexpr int64_t kFewest = 1024;  // of fewer, few threads would be left
  const bool pays =
      loop.shape.size() >= 2 && loop.shape[1] >= kFewest &&
      std::ranges::any_of(
          externals.device,
          [&](size_t place) { return !repeats_along_lanes(loop, place) && repeats_over_positions(loop, place); }) &&
      std::ranges::none_of(externals.device, [&](size_t place) {
        return is_written(loop, place) && repeats_over_positions(loop, place);
      });
  return pays ? kPositions : 1;
}

// One kernel on one lane.
std::string step_text(const LoopDescription& loop, const LoopDescription::Step& step) {
  const std::string inputs = inputs_text(loop, step, [](size_t) { return "[l]"; });
  return at_program_line(step, str("    v", step.places[0], "[l] = ", functor_call(loop, step, inputs)));
}

std::string steps_text(const LoopDescription& loop) {
  std::string text = "#pragma unroll\n  for (int l = 0; l < n; ++l) {\n";
  for (const LoopDescription::Step& step : loop.steps) text += step_text(loop, step);
  return text + "  }\n";
}

// The address of the r-th of a thread's positions.
std::string position_text(const Externals& externals, size_t place) {
  const auto e = std::ranges::find(externals.device, place) - externals.device.begin();
  return str("(at", place, " + r * where.strides[", e, "][1])");
}

std::string load_number_text(const LoopDescription& loop, size_t place) {
  const char* const type = type_of(loop, place);
  return str("  {\n    const opmath_t<", type, "> number = *reinterpret_cast<const ", type, "*>(at", place,
             ");\n    for (int l = 0; l < n; ++l) v", place, "[l] = number;\n  }\n");
}

class FusedKernel final : public ElementWiseLoop {
 public:
  explicit FusedKernel(LoopDescription description)
      : loop_(std::move(description)), externals_(loop_), lanes_(most_lanes()) {
    if (loop_.shape.empty()) loop_.shape.push_back(1);
    for (LoopDescription::Place& place : loop_.places) {
      if (!place.is_inner && place.strides.empty()) place.strides.push_back(0);
    }
    positions_ = positions_of(loop_, externals_);
  }

  void prepare() override { kernel(lanes_).load(); }
  void run(char* const* data) override {
    const int lanes = are_aligned(loop_, externals_.device, data, lanes_) ? lanes_ : 1;
    run_part(data, loop_.shape, lanes);
  }

 private:
  int most_lanes() const {
    const int64_t run = loop_.shape.empty() ? 1 : loop_.shape[0];
    int64_t narrowest = kVectorBytes;
    for (const size_t place : externals_.device) {
      if (!repeats_along_lanes(loop_, place)) narrowest = std::min(narrowest, element_size(loop_.places[place].dtype));
    }
    for (int lanes = static_cast<int>(std::min<int64_t>(kVectorBytes / narrowest, 8)); lanes > 1; lanes /= 2) {
      const auto fits = [&](size_t place) {
        return repeats_along_lanes(loop_, place) ? !is_written(loop_, place) : fits_lanes(loop_, place, lanes);
      };
      if (run % lanes == 0 && std::ranges::all_of(externals_.device, fits)) return lanes;
    }
    return 1;
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
    for (const size_t place : externals_.device) {
      beyond[place] += half * loop_.places[place].strides[d];
    }
    run_part(beyond.data(), second, lanes);
  }

  void launch(char* const* data, const DimVector& shape, int lanes, int64_t count) {
    std::vector<uint64_t> where = where_of(loop_, externals_, data, shape, lanes, positions_);
    auto positions = static_cast<uint32_t>(positions_ > 1 ? shape[1] : 1);
    if (positions_ > 1) count = count / shape[1] * ((shape[1] + positions_ - 1) / positions_);
    auto index_count = static_cast<uint32_t>(count);
    void* parameters[] = {where.data(), &index_count, &positions};
    const auto blocks = static_cast<uint32_t>((count + kLoopThreads - 1) / kLoopThreads);
    kernel(lanes).launch(name_.c_str(), {{blocks, 1, 1}, {kLoopThreads, 1, 1}}, parameters);
  }

  const Kernel& kernel(int lanes) {
    std::optional<Kernel>& kernel = lanes == 1 ? one_ : several_;
    if (!kernel) kernel.emplace(Source{name_, source_text(loop_, lanes), {name_}});
    return *kernel;
  }

  LoopDescription loop_;
  const Externals externals_;
  const int lanes_;
  const std::string name_ = kernel_name(loop_);
  int positions_ = 1;
  std::optional<Kernel> one_, several_;
};

}  // namespace

std::string source_text(const LoopDescription& loop, int lanes) {
  const Externals externals(loop);
  const int positions = positions_of(loop, externals);
  std::string text = prologue_text(loop, externals, lanes);
  text += str("extern \"C\" __global__ void __launch_bounds__(", kLoopThreads, ") ", kernel_name(loop),
              "(const __grid_constant__ Where where, Index count, Index positions) {\n"
              "  const Index index = blockIdx.x * ",
              kLoopThreads, "u + threadIdx.x;\n  if (index >= count) return;\n");
  text += addresses_text(loop, externals, 0, "index", positions);
  const auto moves = [&](size_t place) {  // from one position to the next
    return positions > 1 && !loop.places[place].is_host_number &&
           (loop.places[place].is_inner || !repeats_over_positions(loop, place));
  };
  for (size_t i = 0; i < loop.places.size(); ++i) {
    if (!moves(i)) text += declaration_text(loop, i);
  }
  for (size_t h = 0; h < externals.host.size(); ++h) {
    const size_t place = externals.host[h];
    text += str("  for (int l = 0; l < n; ++l) v", place, "[l] = *reinterpret_cast<const ", type_of(loop, place),
                "*>(&where.numbers[", h, "]);\n");
  }
  for (const size_t place : externals.device) {
    if (!is_read(loop, place) || moves(place)) continue;
    text += repeats_along_lanes(loop, place) ? load_number_text(loop, place) : load_text(loop, place, str("at", place));
  }
  if (positions == 1) {
    text += steps_text(loop);
    for (const size_t place : externals.device) {
      if (is_written(loop, place)) text += store_text(loop, place, str("at", place));
    }
    return text + "}\n";
  }
  // All reads go before the first write, which the compiler must take for one of what is read next.
  const auto for_each_position = [&](const std::string& body) {
    text += str("#pragma unroll\n  for (int r = 0; r < ", positions, "; ++r) {\n  if (i1 * ", positions,
                "u + r >= positions) break;\n", body, "  }\n");
  };
  std::string reads, rest;
  for (size_t i = 0; i < loop.places.size(); ++i) {
    if (!moves(i)) continue;
    rest += declaration_text(loop, i);
    if (loop.places[i].is_inner || !is_read(loop, i)) continue;
    const bool is_number = repeats_along_lanes(loop, i);
    const std::string type = is_number ? type_of(loop, i) : str("Lanes<", type_of(loop, i), ", n>");
    text += str("  ", type, " x", i, "[", positions, "];\n");
    reads += str("  x", i, "[r] = *reinterpret_cast<const ", type, "*>(", position_text(externals, i), ");\n");
    rest += str("  for (int l = 0; l < n; ++l) v", i, "[l] = x", i, is_number ? "[r];\n" : "[r].lane[l];\n");
  }
  rest += steps_text(loop);
  for (const size_t place : externals.device) {
    if (is_written(loop, place)) rest += store_text(loop, place, position_text(externals, place));
  }
  for_each_position(reads);
  for_each_position(rest);
  return text + "}\n";
}

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) {
  if (description.has_rows()) return fuse_rows(std::move(description));
  return std::make_unique<FusedKernel>(std::move(description));
}

}  // namespace rush::cuda::jit
