// Shapes in space to tell apart, made of formulas: curves and surfaces, as the sites of a grid that they pass through.
#pragma once

#include <array>

#include "core/tensor.h"

namespace examples {

inline constexpr int64_t kShapeGrid = 32;  // places along each side of the grid

/// The kinds of shapes, by their labels: a circle, a helix of three turns, a trefoil knot, three lines that cross, the
/// edges of a cube, and a sphere.
inline constexpr std::array<const char*, 6> kShapeNames = {"circle", "helix", "knot", "cross", "cube", "sphere"};

struct Shapes {
  rush::Tensor sites;   // (N, kShapeGrid, kShapeGrid, kShapeGrid, 1), COO and coalesced: 1 where a shape is
  rush::Tensor labels;  // (N), places in kShapeNames
};

/// `count` shapes of each kind, in the order of the kinds, of random size, turned and a bit noisy. Random numbers are
/// the device's default generator's.
Shapes make_shapes(int64_t count, rush::Device device);

/// Pictures of the first `columns` shapes of each kind, a row for each beside its name, as a PNG file: seen along an
/// axis of the grid, what is near is bright. Throws rush::ValueError unless there are as many.
std::string draw_shapes(const Shapes& shapes, int64_t columns);

}  // namespace examples
