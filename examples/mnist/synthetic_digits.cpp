#include "examples/mnist/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/threads/parallel.h"

namespace examples {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): tiny, and unlike <random>'s distributions the same in every standard library.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : state_(mix(mix(seed + 1) ^ ~stream)) {}

  uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15); }
  float uniform(float low, float high) { return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24f); }
  size_t index(size_t count) { return bits() % count; }
  // Nearly normal: twelve uniform variables have variance 1. Bounded by 6 sigma, so no digit is ever torn apart.
  float normal(float sigma) {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(0, 1);
    return sigma * sum;
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

// ------------------------------------------------------------------------------------- how digits are written

struct Point {
  float x, y;
};

enum class Line { Straight, Curved };

struct Stroke {
  Line line;
  std::vector<Point> points;  // x to the right and y downwards, both from 0 to 100
};

using Glyph = std::vector<Stroke>;

constexpr Line S = Line::Straight, C = Line::Curved;

// Per digit, the ways to write it. Strokes that meet share a point; the same point gets the same jitter.
const std::array<std::vector<Glyph>, 10>& glyphs() {
  // clang-format off
  static const std::array<std::vector<Glyph>, 10> table = {{
      // 0: an oval; begun at the top right with the ends crossing; left open
      {{{C, {{50, 0}, {27, 18}, {18, 50}, {27, 84}, {50, 100}, {74, 83}, {83, 50}, {73, 16}, {50, 0}}}},
       {{C, {{66, 10}, {45, 2}, {24, 25}, {17, 60}, {32, 94}, {58, 98}, {80, 70}, {78, 30}, {58, 6}, {40, 10}}}},
       {{C, {{52, 3}, {28, 20}, {16, 55}, {30, 92}, {58, 98}, {82, 68}, {80, 28}, {64, 8}}}}},
      // 1: a bar (the most common); with a flag; with a flag and a foot
      {{{S, {{50, 0}, {50, 100}}}},
       {{S, {{53, 0}, {50, 50}, {50, 100}}}},
       {{S, {{34, 20}, {52, 0}, {52, 100}}}},
       {{S, {{34, 22}, {52, 0}, {52, 98}}}, {S, {{30, 99}, {74, 98}}}}},
      // 2: straight foot; looped foot; curved foot
      {{{C, {{20, 24}, {34, 5}, {60, 1}, {77, 20}, {68, 46}, {42, 75}, {17, 97}}},
        {S, {{17, 97}, {84, 95}}}},
       {{C, {{20, 18}, {42, 1}, {70, 8}, {74, 34}, {54, 66}, {30, 94}, {14, 92}, {20, 76}, {42, 78}, {62, 93},
             {90, 92}}}},
       {{C, {{22, 20}, {40, 2}, {68, 7}, {74, 30}, {56, 60}, {20, 94}}},
        {C, {{20, 94}, {42, 85}, {66, 96}, {88, 88}}}}},
      // 3: two bows that touch; with a small loop between; with a flat top
      {{{C, {{22, 12}, {46, 0}, {72, 12}, {70, 34}, {42, 47}}},
        {C, {{42, 47}, {72, 55}, {79, 78}, {54, 99}, {20, 90}}}},
       {{C, {{25, 8}, {52, 1}, {74, 16}, {64, 38}, {40, 48}, {46, 53}, {62, 50}, {79, 68}, {68, 93}, {42, 100},
             {18, 88}}}},
       {{S, {{20, 4}, {74, 2}, {46, 40}}},
        {C, {{46, 40}, {72, 50}, {78, 76}, {54, 98}, {20, 90}}}}},
      // 4: open; open and round; closed; one long stem
      {{{S, {{26, 2}, {16, 50}, {82, 50}}}, {S, {{74, 4}, {66, 100}}}},
       {{C, {{22, 4}, {16, 34}, {34, 54}, {62, 50}, {78, 40}}},
        {S, {{80, 0}, {72, 50}, {70, 100}}}},
       {{S, {{64, 1}, {12, 64}, {88, 62}}}, {S, {{64, 1}, {60, 100}}}},
       {{C, {{30, 6}, {20, 30}, {18, 50}}}, {S, {{18, 50}, {80, 44}}}, {S, {{66, 12}, {52, 100}}}}},
      // 5: bar, neck and belly; without a corner, like an S; with a long bar
      {{{S, {{80, 1}, {34, 3}, {28, 44}}},
        {C, {{28, 44}, {54, 36}, {78, 54}, {74, 84}, {48, 100}, {17, 92}}}},
       {{C, {{78, 3}, {50, 2}, {32, 16}, {34, 40}, {60, 52}, {76, 72}, {60, 95}, {34, 99}, {16, 88}}}},
       {{S, {{36, 10}, {28, 46}}},
        {C, {{28, 46}, {56, 42}, {72, 62}, {62, 90}, {38, 100}, {16, 90}}},
        {S, {{36, 10}, {62, 5}, {92, 4}}}}},
      // 6: a bow with a loop; a straight back; a small low loop
      {{{C, {{68, 0}, {40, 20}, {23, 55}, {29, 88}, {52, 100}, {75, 86}, {72, 62}, {50, 53}, {27, 70}}}},
       {{C, {{46, 0}, {28, 36}, {22, 70}, {36, 96}, {60, 98}, {76, 80}, {66, 60}, {44, 62}, {28, 84}}}},
       {{C, {{60, 0}, {36, 28}, {20, 66}, {28, 95}, {56, 100}, {82, 84}, {76, 68}, {50, 70}, {32, 92}}}}},
      // 7: plain; with a bar; with a serif; in one bend
      {{{S, {{16, 6}, {80, 3}}}, {C, {{80, 3}, {64, 36}, {50, 68}, {42, 100}}}},
       {{S, {{18, 5}, {80, 3}}},
        {C, {{80, 3}, {64, 36}, {50, 68}, {42, 100}}},
        {S, {{34, 52}, {80, 48}}}},
       {{S, {{16, 22}, {20, 5}, {78, 3}}}, {C, {{78, 3}, {70, 34}, {62, 66}, {60, 100}}}},
       {{C, {{16, 20}, {30, 6}, {58, 10}, {78, 6}, {72, 30}, {56, 62}, {44, 100}}}}},
      // 8: a crossing line from the top right; from the centre; two rings
      {{{C, {{74, 14}, {50, 0}, {28, 15}, {34, 36}, {54, 50}, {74, 70}, {70, 92}, {48, 100}, {26, 88}, {30, 66},
             {52, 48}, {72, 30}, {74, 14}}}},
       {{C, {{50, 48}, {30, 34}, {32, 10}, {52, 0}, {74, 12}, {70, 34}, {50, 48}, {28, 66}, {24, 88}, {48, 100},
             {74, 90}, {72, 66}, {50, 48}}}},
       {{C, {{50, 0}, {30, 10}, {30, 34}, {50, 45}, {70, 34}, {70, 10}, {50, 0}}},
        {C, {{50, 45}, {26, 58}, {24, 86}, {50, 100}, {76, 86}, {74, 58}, {50, 45}}}}},
      // 9: a ring with a straight stem; with a bent stem; in one line, the stem leaning back
      {{{C, {{74, 16}, {52, 0}, {27, 12}, {24, 36}, {46, 48}, {68, 36}, {74, 16}}},
        {S, {{74, 16}, {70, 100}}}},
       {{C, {{74, 20}, {54, 1}, {28, 12}, {26, 38}, {50, 48}, {74, 20}}},
        {C, {{74, 20}, {74, 55}, {64, 88}, {40, 100}, {24, 92}}}},
       {{C, {{76, 8}, {50, 2}, {26, 20}, {28, 40}, {50, 44}, {72, 22}, {76, 8}}},
        {C, {{76, 8}, {66, 42}, {52, 74}, {44, 100}}}}},
  }};
  // clang-format on
  return table;
}

// ------------------------------------------------------------------------------------------- from glyph to ink

struct Segment {
  Point from, to;
};

// A slow bend of the whole digit, the same for points that coincide.
class Bend {
 public:
  explicit Bend(Random& random) {
    for (Wave& wave : waves_) {
      wave = {random.uniform(1, 5), random.uniform(1, 5), random.uniform(0, 6.2832f), random.normal(.034f)};
    }
  }
  Point operator()(Point p) const { return {p.x + waves_[0](p) + waves_[1](p), p.y + waves_[2](p) + waves_[3](p)}; }

 private:
  struct Wave {
    float fx, fy, phase, amplitude;
    float operator()(Point p) const { return amplitude * std::sin(fx * p.x + fy * p.y + phase); }
  };
  std::array<Wave, 4> waves_;
};

// Turns, slants and stretches around the origin.
struct LinearMap {
  float xx, xy, yx, yy;

  static LinearMap random(Random& random) {
    const float angle = random.normal(.13f), slant = random.normal(.2f) - .12f;  // most hands lean to the right
    const float width = std::exp(random.normal(.16f));
    const float c = std::cos(angle), s = std::sin(angle);
    // rotation * slant * stretch
    return {c * width, c * slant - s, s * width, s * slant + c};
  }
  Point operator()(Point p) const { return {xx * p.x + xy * p.y, yx * p.x + yy * p.y}; }
};

// Catmull-Rom: a curve through all points whose tangents are the chords of their neighbours.
void append_curve(std::span<const Point> p, std::vector<Segment>* out) {
  constexpr int kSteps = 5;
  for (size_t i = 0; i + 1 < p.size(); ++i) {
    const Point a = p[i == 0 ? 0 : i - 1], b = p[i], c = p[i + 1], d = p[std::min(i + 2, p.size() - 1)];
    auto blend = [](float a, float b, float c, float d, float t) {
      return b + .5f * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
    };
    Point from = b;
    for (int step = 1; step <= kSteps; ++step) {
      const float t = static_cast<float>(step) / kSteps;
      const Point to{blend(a.x, b.x, c.x, d.x, t), blend(a.y, b.y, c.y, d.y, t)};
      out->push_back({from, to});
      from = to;
    }
  }
}

void append_straight(std::span<const Point> p, std::vector<Segment>* out) {
  for (size_t i = 0; i + 1 < p.size(); ++i) out->push_back({p[i], p[i + 1]});
}

// One person's version of a glyph, in a box of no particular size.
std::vector<Segment> write(const Glyph& glyph, Random& random) {
  const Bend bend(random);
  const LinearMap map = LinearMap::random(random);
  std::vector<Segment> segments;
  std::vector<std::pair<Point, Point>> moved;  // glyph points seen so far and where they went
  for (const Stroke& stroke : glyph) {
    std::vector<Point> points;
    for (Point p : stroke.points) {
      auto seen = std::find_if(moved.begin(), moved.end(), [p](const std::pair<Point, Point>& pair) {
        return pair.first.x == p.x && pair.first.y == p.y;
      });
      if (seen == moved.end()) {
        const Point jittered{p.x / 100 + random.normal(.026f), p.y / 100 + random.normal(.026f)};
        seen = moved.insert(moved.end(), {p, map(bend(jittered))});
      }
      points.push_back(seen->second);
    }
    if (stroke.line == Line::Curved) {
      append_curve(points, &segments);
    } else {
      append_straight(points, &segments);
    }
  }
  return segments;
}

// Scales the digit so that its longer side has `size` pixels and puts its centre of mass near the middle of the image.
void fit(std::vector<Segment>* segments, float size, Random& random) {
  Point low = segments->front().from, high = low;
  float mass = 0, x = 0, y = 0;
  for (const Segment& s : *segments) {
    for (Point p : {s.from, s.to}) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    const float length = std::hypot(s.to.x - s.from.x, s.to.y - s.from.y);
    mass += length;
    x += length * (s.from.x + s.to.x) / 2;
    y += length * (s.from.y + s.to.y) / 2;
  }
  const float scale = size / std::max(high.x - low.x, high.y - low.y);
  const Point centre{kDigitSize / 2.f + random.uniform(-.6f, .6f), kDigitSize / 2.f + random.uniform(-.6f, .6f)};
  auto place = [&](Point p) { return Point{centre.x + scale * (p.x - x / mass), centre.y + scale * (p.y - y / mass)}; };
  for (Segment& s : *segments) s = {place(s.from), place(s.to)};
}

// Adds a segment drawn with a round pen: a pixel's ink is 1 where it is covered, and falls to 0 over `softness` pixels.
void draw(const Segment& s, float radius, float softness, std::span<float, kDigitPixels> ink) {
  const float reach = radius + softness / 2;
  auto first = [reach](float a, float b) { return std::max(0, static_cast<int>(std::min(a, b) - reach)); };
  auto last = [reach](float a, float b) {
    return std::min(kDigitSize - 1, static_cast<int>(std::ceil(std::max(a, b) + reach)));
  };
  const float dx = s.to.x - s.from.x, dy = s.to.y - s.from.y, length2 = std::max(dx * dx + dy * dy, 1e-6f);
  for (int row = first(s.from.y, s.to.y); row <= last(s.from.y, s.to.y); ++row) {
    for (int column = first(s.from.x, s.to.x); column <= last(s.from.x, s.to.x); ++column) {
      // From the pixel's centre to the nearest point of the segment.
      const float px = static_cast<float>(column) + .5f - s.from.x, py = static_cast<float>(row) + .5f - s.from.y;
      const float along = std::clamp((px * dx + py * dy) / length2, 0.f, 1.f);
      const float ex = px - along * dx, ey = py - along * dy;
      const float cover = std::clamp((reach - std::sqrt(ex * ex + ey * ey)) / softness, 0.f, 1.f);
      float& pixel = ink[static_cast<size_t>(row * kDigitSize + column)];
      pixel = std::max(pixel, cover);
    }
  }
}

void draw_digit(size_t digit, Random random, std::span<uint8_t, kDigitPixels> out) {
  const std::vector<Glyph>& ways = glyphs()[digit];
  std::vector<Segment> segments = write(ways[random.index(ways.size())], random);
  const float radius = std::clamp(1.35f + random.normal(.42f), .8f, 2.6f), softness = random.uniform(1, 1.5f);
  fit(&segments, random.uniform(18.8f, 20.2f) - 2 * radius, random);

  // The pen is pressed harder in some places than in others.
  const float pressure = random.uniform(0, .2f), rhythm = random.uniform(.1f, .5f), start = random.uniform(0, 6.2832f);
  std::array<float, kDigitPixels> ink{};
  for (size_t i = 0; i < segments.size(); ++i) {
    const float press = 1 + pressure * std::sin(rhythm * static_cast<float>(i) + start);
    draw(segments[i], radius * press, softness, ink);
  }

  const float grain = random.uniform(0, .18f);  // paper and scanner: ink is uneven, paper stays white
  for (size_t i = 0; i < kDigitPixels; ++i) {
    const float value = ink[i] > 0 ? ink[i] * (1.04f - random.uniform(0, grain)) : 0;
    out[i] = static_cast<uint8_t>(255 * std::min(value, 1.f) + .5f);
  }
}

}  // namespace

Digits draw_digits(size_t count, uint64_t seed) {
  Digits digits{std::vector<uint8_t>(count * kDigitPixels), std::vector<int64_t>(count)};
  constexpr int64_t kDigitsPerThread = 100;
  rush::parallel_for(0, static_cast<int64_t>(count), kDigitsPerThread, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      Random random(seed, i);
      const size_t digit = random.index(10);
      digits.labels[i] = static_cast<int64_t>(digit);
      uint8_t* pixels = digits.pixels.data() + i * kDigitPixels;
      draw_digit(digit, random, std::span<uint8_t, kDigitPixels>(pixels, kDigitPixels));
    }
  });
  return digits;
}

}  // namespace examples
