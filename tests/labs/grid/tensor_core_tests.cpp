// Tensor cores of the emulated grid: whole products, computed from fragments, against loops.
#include <doctest/doctest.h>

#include <string>

#include "tests/labs/grid/grid.h"
#include "tests/labs/grid/tensor_core.h"

using namespace rush::grid;

namespace rush::labs {

// Neighbours differ, and all are numbers of 8 bits.
static std::vector<__nv_bfloat16> some_numbers(int count, int seed) {
  std::vector<__nv_bfloat16> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(__float2bfloat16(static_cast<float>((i * 37 + seed) % 101 - 50)));
  return numbers;
}

// One product of fragments that the lanes read element by element, as the PTX manual has them.
static __global__ void fragments_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  uint32_t a_words[4], b_words[2];
  for (int w = 0; w < 4; ++w) {
    const int row = g + w % 2 * 8, column = 2 * t + w / 2 * 8;
    a_words[w] = a[row * 16 + column].bits | uint32_t{a[row * 16 + column + 1].bits} << 16U;
  }
  for (int w = 0; w < 2; ++w) {
    const int row = 2 * t + w * 8;
    b_words[w] = b[row * 8 + g].bits | uint32_t{b[(row + 1) * 8 + g].bits} << 16U;
  }
  float sums[4];
  for (int e = 0; e < 4; ++e) sums[e] = d[(g + e / 2 * 8) * 8 + 2 * t + e % 2];
  multiply_fragments(sums, a_words, b_words[0], b_words[1]);
  for (int e = 0; e < 4; ++e) d[(g + e / 2 * 8) * 8 + 2 * t + e % 2] = sums[e];
}

// The same by load_matrices; with two products of 8 columns each, of B (16, 16).
static __global__ void loaded_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  __shared__ __align__(16) __nv_bfloat16 a_tile[16][24];
  __shared__ __align__(16) __nv_bfloat16 b_tile[16][24];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    a_tile[i / 16][i % 16] = a[i];
    b_tile[i / 16][i % 16] = b[i];
  }
  __syncthreads();
  uint32_t a_words[4], b_words[4];
  load_matrices(a_words, &a_tile[lane % 16][lane / 16 * 8]);
  load_transposed_matrices(b_words, &b_tile[lane % 16][lane / 16 * 8]);
  for (int half = 0; half < 2; ++half) {
    float sums[4] = {};
    multiply_fragments(sums, a_words, b_words[2 * half], b_words[2 * half + 1]);
    for (int e = 0; e < 4; ++e) d[(lane / 4 + e / 2 * 8) * 16 + 8 * half + 2 * (lane % 4) + e % 2] = sums[e];
  }
}

// The rows of the product, on top of `before` in each element.
static std::vector<float> product(const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b, int columns,
                                  float before) {
  std::vector<float> d;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = before;
      for (int k = 0; k < 16; ++k) {
        sum += __bfloat162float(a[static_cast<size_t>(row * 16 + k)]) *
               __bfloat162float(b[static_cast<size_t>(k * columns + column)]);
      }
      d.push_back(sum);
    }
  }
  return d;
}

TEST_CASE("fragments that lanes hold as PTX says are multiplied, on top of the accumulator") {
  const auto a = some_numbers(256, 3), b = some_numbers(128, 11);
  const Buffer<__nv_bfloat16> device_a("a", a), device_b("b", b);
  const Buffer<float> d("d", std::vector<float>(128, 5));
  launch(fragments_kernel, 1, 32)(device_a.data(), device_b.data(), d.data());
  CHECK(d.values() == product(a, b, 8, 5));
}

TEST_CASE("load_matrices and its transposed form load fragments without conflicts of banks") {
  const auto a = some_numbers(256, 3), b = some_numbers(256, 11);
  const Buffer<__nv_bfloat16> device_a("a", a), device_b("b", b);
  const Buffer<float> d("d", 256);
  launch(loaded_kernel, 1, 32)(device_a.data(), device_b.data(), d.data());
  CHECK(d.values() == product(a, b, 16, 0));
  for (const Traffic& each : traffic()) {
    if (each.memory != "a_tile" || each.use != Use::Load) continue;
    CHECK(each.requests == 4);
    CHECK(each.passes == 4);
  }
}

static __global__ void wrong_kernel(int which, const __nv_bfloat16* in) {
  __shared__ __align__(16) __nv_bfloat16 tile[33][8];
  for (int i = 0; i < 8; ++i) tile[threadIdx.x][i] = in[i];
  __syncthreads();
  uint32_t words[4] = {};
  float sums[4] = {};
  if (which == 1 && threadIdx.x == 31) return;
  if (which == 2 && threadIdx.x >= 16) return load_matrices(words, tile[threadIdx.x]);
  if (which == 3) load_matrices(words, &tile[threadIdx.x][1]);
  if (which == 4) load_matrices(words, in);
  if (which == 5) load_matrices(words, tile[threadIdx.x + 1]);
  if (which <= 2) multiply_fragments(sums, words, 0, 0);
}

TEST_CASE("a warp's instruction without all lanes, or of a wrong address, is stopped") {
  const Buffer<__nv_bfloat16> in("in", 8);
  const auto check = [&](int which, FaultKind kind, const std::string& part) {
    try {
      launch(wrong_kernel, 1, 32)(which, in.data());
      CHECK(part.empty());
    } catch (const Fault& fault) {
      const std::string text = fault.what();
      CAPTURE(text);
      CHECK(fault.kind == kind);
      CHECK(text.find(part) != std::string::npos);
    }
  };
  check(0, {}, "");
  check(1, FaultKind::Divergence, "thread 0 calls multiply_fragments in line ");
  check(2, FaultKind::Divergence, "waits at multiply_fragments in line ");
  check(3, FaultKind::Misaligned, "an access of 16 bytes needs an address that is a multiple of 16");
  check(4, FaultKind::OutOfBounds, "reads an address that is not in shared memory");
  check(5, FaultKind::Unwritten, "has written before");
}

}  // namespace rush::labs
