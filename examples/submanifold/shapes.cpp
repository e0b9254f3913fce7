#include "examples/submanifold/shapes.h"

#include <algorithm>
#include <cmath>

#include "examples/grey_image.h"
#include "rushlight.h"

namespace examples {

using namespace rush;

namespace {

constexpr double kTurn = 6.283185307179586;
constexpr int64_t kPoints = 512;  // that a shape is made of
constexpr auto kKinds = static_cast<int64_t>(kShapeNames.size());

// What the formulas are made of: a random number in [0, 1) for each of the points of `count` shapes, (count, kPoints).
struct Draw {
  int64_t count;
  TensorOptions options;

  Tensor one() const { return rand({count, kPoints}, options); }
  // One of n whole numbers, as a float.
  Tensor one_of(int64_t n) const { return (one() * n).floor(); }
};

// All are about as large as a ball of radius 1: (count, kPoints, 3).
Tensor circle(const Draw& draw) {
  const Tensor angle = draw.one() * kTurn;
  return stack({angle.cos(), angle.sin(), zeros_like(angle)}, 2);
}
Tensor helix(const Draw& draw) {
  const Tensor height = draw.one() * 2 - 1, angle = height * (1.5 * kTurn);
  return stack({angle.cos() * 0.6, angle.sin() * 0.6, height * 0.8}, 2);
}
Tensor knot(const Draw& draw) {
  const Tensor t = draw.one() * kTurn;
  return stack({t.sin() + (t * 2).sin() * 2, t.cos() - (t * 2).cos() * 2, (t * 3).sin()}, 2) / 3;
}
// The points of `along`, with another axis as the first by turns: (count, kPoints, 3).
Tensor by_axes(const Draw& draw, const Tensor& along) {
  const Tensor first = draw.one_of(3).to(kInt64).unsqueeze(2);  // (count, kPoints, 1)
  const Tensor order = (first + arange(3, first.options())).remainder(3);
  return along.gather(2, order);
}
Tensor cross(const Draw& draw) {
  const Tensor at = draw.one() * 2 - 1;
  return by_axes(draw, stack({at, zeros_like(at), zeros_like(at)}, 2));
}
Tensor cube(const Draw& draw) {
  const Tensor at = draw.one() * 2 - 1;
  return by_axes(draw, stack({at, draw.one_of(2) * 2 - 1, draw.one_of(2) * 2 - 1}, 2)) * 0.6;
}
Tensor sphere(const Draw& draw) {
  const Tensor height = draw.one() * 2 - 1, angle = draw.one() * kTurn;
  const Tensor radius = (1 - height.square()).sqrt();
  return stack({radius * angle.cos(), radius * angle.sin(), height}, 2) * 0.8;
}

// Turns about a random axis, evenly distributed: (n, 3, 3), of three orthogonal rows.
Tensor random_turns(int64_t n, const TensorOptions& options) {
  const auto unit = [](const Tensor& v) { return v / v.norm(2, {1}, true); };
  const Tensor x = unit(randn({n, 3}, options)), other = randn({n, 3}, options);
  const Tensor y = unit(other - x * (x * other).sum({1}, true));
  return stack({x, y, linalg_cross(x, y)}, 1);
}

}  // namespace

Shapes make_shapes(int64_t count, Device device) {
  RUSH_CHECK_VALUE(count > 0, "make_shapes: expected a positive number of shapes, got ", count);
  const Draw draw{count, TensorOptions(kFloat32).device(device)};
  const Tensor pure = cat({circle(draw), helix(draw), knot(draw), cross(draw), cube(draw), sphere(draw)});
  const int64_t all = pure.size(0);
  const Tensor size = rand({all, 1, 1}, draw.options) * 0.3 + 0.7;
  const Tensor turned = pure.bmm(random_turns(all, draw.options)) * size + randn(pure.sizes(), draw.options) * 0.01;
  const Tensor places = ((turned + 1) * (0.5 * kShapeGrid)).floor().clamp(0, kShapeGrid - 1).to(kInt64);
  const TensorOptions whole = TensorOptions(kInt64).device(device);
  const Tensor number = arange(all, whole).repeat_interleave(kPoints);                       // (points)
  const Tensor indices = cat({number.unsqueeze(0), places.view({-1, 3}).t().contiguous()});  // (4, points)
  const DimVector sizes = {all, kShapeGrid, kShapeGrid, kShapeGrid, 1};
  // Points of one place are one site.
  const Tensor at = sparse_coo_tensor(indices, ones({indices.size(1), 1}, draw.options), sizes).coalesce().indices();
  Shapes shapes;
  shapes.sites = sparse_coo_tensor(at, ones({at.size(1), 1}, draw.options), sizes, {}, true);
  shapes.labels = arange(kKinds, whole).repeat_interleave(count);
  return shapes;
}

std::string draw_shapes(const Shapes& shapes, int64_t columns) {
  constexpr int kScale = 3, kGap = 4, kSpace = 8, kSide = kScale * static_cast<int>(kShapeGrid), kStep = kSide + kGap;
  constexpr uint8_t kPaper = 255, kInk = 0;
  const int64_t count = shapes.labels.size(0) / kKinds;
  RUSH_CHECK_VALUE(columns > 0 && columns <= count, "draw_shapes: asked for ", columns,
                   " shapes of each kind, there are ", count);
  const Tensor dense =
      shapes.sites.cpu().to_dense().squeeze(4).view({kKinds, count, kShapeGrid, kShapeGrid, kShapeGrid});
  const Tensor nearness = linspace(0.3, 1, kShapeGrid) * 255;
  const Tensor seen =
      (dense.narrow(1, 0, columns) * nearness).amax({4}).to(kUInt8).contiguous();  // (kinds, columns, height, width)
  int names_width = 0;
  for (const char* name : kShapeNames) names_width = std::max(names_width, width_of_text(name));
  const int left = kSpace + names_width + kSpace;
  GreyImage image(left + static_cast<int>(columns) * kStep - kGap + kSpace,
                  2 * kSpace + static_cast<int>(kKinds) * kStep - kGap, kPaper);
  for (int64_t kind = 0; kind < kKinds; ++kind) {
    const int y = kSpace + static_cast<int>(kind) * kStep;
    image.write(kSpace, y + (kSide - GreyImage::kLetterHeight) / 2, kShapeNames[static_cast<size_t>(kind)], kInk);
    for (int64_t column = 0; column < columns; ++column) {
      const Tensor one = seen[kind][column];
      const std::span<const uint8_t> pixels(one.data_ptr<uint8_t>(), static_cast<size_t>(one.numel()));
      image.paste(left + static_cast<int>(column) * kStep, y, static_cast<int>(kShapeGrid), pixels, kScale);
    }
  }
  return image.png();
}

}  // namespace examples
