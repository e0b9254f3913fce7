// The emulated grid: kernels that are right, and such as it has to stop.
#include <doctest/doctest.h>

#include <functional>
#include <numeric>

#include "tests/labs/grid/grid.h"
#include "tests/labs/grid/kernel.h"

using namespace rush;
using namespace rush::grid;

namespace rush::labs {  // where the kernels' shared_memory is

// The text of what stops the launch; empty when nothing does.
std::string stopped(FaultKind kind, const std::function<void()>& work) {
  try {
    work();
  } catch (const Fault& fault) {
    CHECK(fault.kind == kind);
    return fault.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Traffic& traffic_of(const std::string& memory, Use use) {
  for (const Traffic& each : traffic()) {
    if (each.memory == memory && each.use == use) return each;
  }
  throw std::runtime_error("no access to " + memory);
}

// ---- where a thread is, and what it may access ----

__global__ void number_kernel(int* out, int64_t n) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int64_t i = int64_t{block} * blockDim.x * blockDim.y * blockDim.z + thread;
  if (i < n) out[i] = static_cast<int>(i);
}

TEST_CASE("every thread of every block runs once, in all dimensions") {
  const int n = 2 * 3 * 2 * 4 * 5 * 3;
  Buffer<int> out("out", n);
  launch(number_kernel, dim3(2, 3, 2), dim3(4, 5, 3))(out.data(), n - 1);
  std::vector<int> expected(n);
  std::iota(expected.begin(), expected.end(), 0);
  expected[n - 1] = 0;
  CHECK(out.values() == expected);
}

TEST_CASE("a launch that CUDA refuses is refused") {
  Buffer<int> out("out", 1);
  for (const auto& [grid, block] : {std::pair{dim3(1), dim3(1025)}, {dim3(0), dim3(32)}, {dim3(1, 65536), dim3(32)}}) {
    const auto work = [&, grid = grid, block = block] { launch(number_kernel, grid, block)(out.data(), 1); };
    CHECK(contains(stopped(FaultKind::Configuration, work), "launch of rush::labs::"));
  }
}

__global__ void shifted_copy_kernel(const float* in, float* out, int64_t shift) {
  out[threadIdx.x] = in[threadIdx.x + shift];
}

TEST_CASE("accesses outside of a buffer are stopped before they happen, however far away") {
  Buffer<float> in("in", 64), out("out", 64);
  for (int64_t shift : {int64_t{1}, int64_t{-1}, int64_t{1} << 31, -(int64_t{1} << 31)}) {
    const std::string text =
        stopped(FaultKind::OutOfBounds, [&] { launch(shifted_copy_kernel, 1, 64)(in.data(), out.data(), shift); });
    const int64_t first_wrong = shift == 1 ? 64 : shift;
    CHECK(contains(text, "reads element " + std::to_string(first_wrong) + " of in, at tests.cpp:"));
    CHECK(contains(text, "; it has 64 elements"));
    CHECK(contains(text, shift == 1 ? "block 0, thread 63 " : "block 0, thread 0 "));
  }
  std::vector<float> host(64);
  CHECK(
      contains(stopped(FaultKind::OutOfBounds, [&] { launch(shifted_copy_kernel, 1, 64)(host.data(), out.data(), 0); }),
               "no buffer of the device"));
}

TEST_CASE("a grid of more threads than 2^31 is run by its last blocks") {
  const int64_t n = (int64_t{1} << 31) + 100;
  Buffer<int> out("out", n);
  const OnlyLastBlocks few(1);
  launch(number_kernel, static_cast<unsigned>((n + 255) / 256), 256)(out.data(), n);
  CHECK(out[n - 1] == static_cast<int>(n - 1));
  CHECK(out[0] == 0);
}

__global__ void unfinished_kernel() { to_do("begin here"); }

TEST_CASE("what a thread throws comes out of the launch, and the next launch works") {
  CHECK_THROWS_WITH(launch(unfinished_kernel, 1, 64)(), "begin here");
  Buffer<int> out("out", 64);
  launch(number_kernel, 1, 64)(out.data(), 64);
  CHECK(out[63] == 63);
}

// ---- barriers and races ----

__global__ void reverse_kernel(int* data, bool with_barrier) {
  __shared__ int held[1024];
  held[threadIdx.x] = data[threadIdx.x];
  if (with_barrier) __syncthreads();
  data[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

TEST_CASE("1024 threads meet at a barrier; without it the race is found, with both lines") {
  Buffer<int> data("data", 1024);
  std::iota(data.data(), data.data() + 1024, 0);
  launch(reverse_kernel, 1, 1024)(data.data(), true);
  for (int i = 0; i < 1024; ++i) CHECK(data[i] == 1023 - i);

  const std::string text = stopped(FaultKind::Race, [&] { launch(reverse_kernel, 1, 1024)(data.data(), false); });
  CHECK(contains(text, "race in rush::labs::"));
  CHECK(contains(text, "reverse_kernel: block 0, thread 512 writes element 512 of held, at tests.cpp:"));
  CHECK(contains(text, "and block 0, thread 511 reads it, at tests.cpp:"));
}

__global__ void reused_kernel(int* out, int missing) {
  __shared__ int held[64];
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    held[threadIdx.x] = round;
    if (missing != 0) __syncthreads();
    sum += held[63 - threadIdx.x];
    if (missing != 1) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST_CASE("a barrier that is missing after a write, and one before the next write, are told apart") {
  Buffer<int> out("out", 64);
  launch(reused_kernel, 1, 64)(out.data(), 2);
  CHECK(out[5] == 1);
  CHECK(stopped(FaultKind::Race, [&] { launch(reused_kernel, 1, 64)(out.data(), 0); }) != "");
  CHECK(stopped(FaultKind::RaceOfNext, [&] { launch(reused_kernel, 1, 64)(out.data(), 1); }) != "");
}

__global__ void pair_kernel(const float* in, float* out, int first) {
  *reinterpret_cast<float2*>(out + 2 * threadIdx.x) = *reinterpret_cast<const float2*>(in + 2 * threadIdx.x + first);
}

TEST_CASE("a vector's address is a multiple of its size") {
  Buffer<float> in("in", 65), out("out", 64);
  in[63] = 7;
  launch(pair_kernel, 1, 32)(in.data(), out.data(), 0);
  CHECK(out[63] == 7);
  CHECK(contains(stopped(FaultKind::Misaligned, [&] { launch(pair_kernel, 1, 32)(in.data(), out.data(), 1); }),
                 "thread 0 reads element 1 of in, at tests.cpp:"));
}

__global__ void neighbour_kernel(int* out, bool of_warp) {
  __shared__ int held[64];
  held[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = held[of_warp ? threadIdx.x ^ 1U : threadIdx.x ^ 32U];
}

TEST_CASE("__syncwarp orders the accesses of a warp, and not those of a block") {
  Buffer<int> out("out", 64);
  launch(neighbour_kernel, 1, 64)(out.data(), true);
  CHECK(out[2] == 3);
  CHECK(stopped(FaultKind::Race, [&] { launch(neighbour_kernel, 1, 64)(out.data(), false); }) != "");
}

__global__ void unwritten_kernel(int* out) {
  __shared__ int held[64];
  if (threadIdx.x > 0) held[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = held[threadIdx.x];
}

TEST_CASE("shared memory that no thread of the block has written is not read") {
  Buffer<int> out("out", 64);
  CHECK(contains(stopped(FaultKind::Unwritten, [&] { launch(unwritten_kernel, 2, 64)(out.data()); }),
                 "block 0, thread 0 reads element 0 of held"));
}

__global__ void same_element_kernel(int* out, bool per_block) {
  if (threadIdx.x == 0) out[per_block ? blockIdx.x : 0] = 1;
}

TEST_CASE("blocks that write the same element are a race") {
  Buffer<int> out("out", 2);
  launch(same_element_kernel, 2, 32)(out.data(), true);
  const std::string text =
      stopped(FaultKind::RaceOfBlocks, [&] { launch(same_element_kernel, 2, 32)(out.data(), false); });
  CHECK(contains(text, "block 1, thread 0 writes element 0 of out"));
  CHECK(contains(text, "block 0, thread 0 writes it"));
}

__global__ void read_then_write_kernel(int* data) {
  if (blockIdx.x == 0 || threadIdx.x > 1) return;
  if (data[0] == 0 && blockIdx.x == 2) data[0] = 1;
}

TEST_CASE("a block that writes what another has read is a race, also after reads of its own") {
  Buffer<int> data("data", 1);
  CHECK(stopped(FaultKind::RaceOfBlocks, [&] { launch(read_then_write_kernel, 3, 32)(data.data()); }) != "");
}

__global__ void atomic_kernel(int* counts, float* sum, unsigned* largest, bool and_read) {
  atomicAdd(&counts[threadIdx.x % 2], 1);
  atomicAdd(sum, 0.5F);
  atomicMax(largest, blockIdx.x * blockDim.x + threadIdx.x);
  if (and_read && blockIdx.x == 1) counts[0] = counts[1];
}

TEST_CASE("atomics of all blocks meet in one element; a plain read beside them is a race") {
  Buffer<int> counts("counts", 2);
  Buffer<float> sum("sum", 1);
  Buffer<unsigned> largest("largest", 1);
  launch(atomic_kernel, 3, 64)(counts.data(), sum.data(), largest.data(), false);
  CHECK(counts.values() == std::vector<int>{96, 96});
  CHECK(sum[0] == 96.0F);
  CHECK(largest[0] == 191);
  CHECK(traffic_of("sum", Use::Atomic).requests == 192);
  const auto work = [&] { launch(atomic_kernel, 3, 64)(counts.data(), sum.data(), largest.data(), true); };
  CHECK(stopped(FaultKind::RaceOfBlocks, work) != "");
}

// ---- divergence ----

__global__ void branch_kernel(int which) {
  if (which == 0 && threadIdx.x >= 40) return;
  if (which == 1 && threadIdx.x >= 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  if (which == 2 && threadIdx.x < 16) __shfl_down_sync(0xffffffffU, 1, 1);
  if (which == 3 && threadIdx.x < 16) __shfl_sync(0x0000ffffU, 1, 20);
  if (which == 4) __shfl_sync(0x0000ffffU, 1, 0);
}

TEST_CASE("a barrier or an exchange that not all come to is divergence") {
  const auto text = [](int which) {
    return stopped(FaultKind::Divergence, [&] { launch(branch_kernel, 1, 64)(which); });
  };
  CHECK(contains(text(0), "thread 0 waits at __syncthreads in line "));
  CHECK(contains(text(0), "thread 40 has left the kernel"));
  CHECK(contains(text(1), "thread 40 waits at __syncthreads in line "));
  CHECK(contains(text(2), "thread 15 waits at __shfl_down_sync in line "));
  CHECK(contains(text(2), "for lane 16, which has left or is not in the mask"));
  CHECK(contains(text(3), "thread 0 waits at __shfl_sync in line "));
  CHECK(contains(text(3), "for lane 20, which has left or is not in the mask"));
  CHECK(contains(text(4), "thread 16 waits at __shfl_sync"));
  CHECK(text(5) == "");
}

// ---- what the lanes of a warp exchange ----

__global__ void exchange_kernel(double* out) {
  constexpr unsigned kAll = 0xffffffffU;
  const int lane = static_cast<int>(threadIdx.x);
  double* mine = out + lane * 8;
  const double value = lane + 0.25;
  mine[0] = __shfl_sync(kAll, value, 5);
  mine[1] = __shfl_sync(kAll, value, 5, 8);
  mine[2] = __shfl_down_sync(kAll, value, 3);
  mine[3] = __shfl_down_sync(kAll, value, 3, 8);
  mine[4] = __shfl_up_sync(kAll, value, 3);
  mine[5] = __shfl_xor_sync(kAll, value, 16);
  mine[6] = __ballot_sync(kAll, lane % 3 == 0);
  mine[7] = __any_sync(kAll, lane == 31) * 4 + __all_sync(kAll, lane < 31) * 2 + __all_sync(kAll, lane < 32);
}

__global__ void leaving_kernel(int* out, unsigned left) {
  if (left >> threadIdx.x & 1U) return;
  const int value = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x), 16);
  out[threadIdx.x] = value + 100 * __all_sync(0xffffffffU, 1);
}

TEST_CASE("lanes that have left are not waited for, wherever they stand in the warp") {
  for (unsigned left : {0U, 1U, 1U << 31U, 0x80000001U}) {
    Buffer<int> out("out", 32);
    launch(leaving_kernel, 1, 32)(out.data(), left);
    CHECK(out[7] == 116);
    CHECK(out[31] == (left >> 31U ? 0 : 116));
  }
  Buffer<int> out("out", 32);
  CHECK(contains(stopped(FaultKind::Divergence, [&] { launch(leaving_kernel, 1, 32)(out.data(), 1U << 16U); }),
                 "thread 0 waits at __shfl_sync in line "));
}

TEST_CASE("shuffles and votes give each lane what CUDA gives it") {
  Buffer<double> out("out", 32 * 8);
  launch(exchange_kernel, 1, 32)(out.data());
  unsigned thirds = 0;
  for (int lane = 0; lane < 32; lane += 3) thirds |= 1U << lane;
  for (int lane = 0; lane < 32; ++lane) {
    const double expected[8] = {5.25,
                                lane / 8 * 8 + 5.25,
                                (lane + 3 < 32 ? lane + 3 : lane) + 0.25,
                                (lane % 8 + 3 < 8 ? lane + 3 : lane) + 0.25,
                                (lane >= 3 ? lane - 3 : lane) + 0.25,
                                (lane ^ 16) + 0.25,
                                static_cast<double>(thirds),
                                5.0};
    for (int i = 0; i < 8; ++i) CHECK(out[lane * 8 + i] == expected[i]);
  }
}

// ---- shared memory, sectors and banks ----

__global__ void dynamic_kernel(int* out, int64_t last) {
  extern __shared__ int shared_memory[];
  shared_memory[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = shared_memory[last - threadIdx.x];
}

TEST_CASE("dynamic shared memory has as many bytes as the launch asks for") {
  Buffer<int> out("out", 64);
  launch(dynamic_kernel, 1, 64, 64 * sizeof(int))(out.data(), 63);
  CHECK(out[0] == 63);
  const auto work = [&] { launch(dynamic_kernel, 1, 64, 63 * sizeof(int))(out.data(), 62); };
  CHECK(contains(stopped(FaultKind::OutOfBounds, work), "writes element 63 of shared_memory"));
}

__global__ void strided_read_kernel(const float* in, float* out, int64_t stride) {
  __shared__ float held[1024];
  for (int i = 0; i < 32; ++i) held[i * 32 + threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x * stride] + held[threadIdx.x * stride];
}

TEST_CASE("sectors and bank conflicts by stride") {
  Buffer<float> in("in", 1024), out("out", 32);
  struct Expected {
    int64_t stride, sectors, least, passes;
  };
  for (const Expected& e :
       {Expected{0, 1, 1, 1}, {1, 4, 4, 1}, {2, 8, 4, 2}, {8, 32, 4, 8}, {32, 32, 4, 32}, {31, 32, 4, 1}}) {
    launch(strided_read_kernel, 1, 32)(in.data(), out.data(), e.stride);
    CHECK(traffic_of("in", Use::Load).requests == 1);
    CHECK(traffic_of("in", Use::Load).sectors == e.sectors);
    CHECK(traffic_of("in", Use::Load).least_sectors == e.least);
    CHECK(traffic_of("held", Use::Load).passes == e.passes);
    CHECK(traffic_of("held", Use::Store).requests == 32);
    CHECK(traffic_of("held", Use::Store).passes == 32);
  }
}

__device__ __attribute__((noinline)) float load(const float* from) { return *from; }

__global__ void load_kernel(const float* in, float* out) {
  __shared__ float held[32];
  held[threadIdx.x] = load(in + threadIdx.x);
  out[threadIdx.x] = load(held + threadIdx.x);
}

TEST_CASE("a function that reads several arrays is counted for each") {
  Buffer<float> in("in", 32), out("out", 32);
  launch(load_kernel, 1, 32)(in.data(), out.data());
  CHECK(traffic_of("in", Use::Load).sectors == 4);
  CHECK(traffic_of("held", Use::Load).sectors == 0);
  CHECK(traffic_of("held", Use::Load).passes == 1);
}

__global__ void bytes_kernel(uint8_t* out) {
  __shared__ uint8_t held[64];
  held[threadIdx.x] = static_cast<uint8_t>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = held[63 - threadIdx.x];
}

TEST_CASE("threads that write different bytes of a word are no race") {
  Buffer<uint8_t> out("out", 64);
  launch(bytes_kernel, 1, 64)(out.data());
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 63 - i);
}

__global__ void vector_kernel(const float4* in, float4* out) {
  __shared__ float4 held[64];
  held[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[63 - threadIdx.x];
}

TEST_CASE("16 bytes a lane are four requests of shared memory, without conflicts") {
  Buffer<float4> in("in", 64), out("out", 64);
  in[0].w = 3;
  launch(vector_kernel, 1, 64)(in.data(), out.data());
  CHECK(out[63].w == 3);
  CHECK(traffic_of("held", Use::Load).requests == 8);
  CHECK(traffic_of("held", Use::Load).passes == 8);
  CHECK(traffic_of("in", Use::Load).sectors == 32);
  CHECK(traffic_of("in", Use::Load).least_sectors == 32);
}

__device__ float4 reversed(float4 from) { return {from.w, from.z, from.y, from.x}; }

__global__ void assigned_kernel(const float4* in, float4* out) {
  __shared__ float4 held[32];
  held[threadIdx.x] = reversed(in[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = reversed(held[31 - threadIdx.x]);
}

TEST_CASE("a vector to which a function's result is assigned is seen, and counted once") {
  Buffer<float4> in("in", 32), out("out", 32);
  in[0].w = 3;
  launch(assigned_kernel, 1, 32)(in.data(), out.data());
  CHECK(out[31].w == 3);
  CHECK(traffic_of("held", Use::Store).passes == 4);
  CHECK(traffic_of("out", Use::Store).sectors == 16);
}

__global__ void extremes_kernel(const float* in, float* out) {
  float largest = 0, least = 0;
  for (int i = static_cast<int>(threadIdx.x); i < 64; i += 32) {
    largest = max(largest, in[i]);
    least = min(least, in[i]);
  }
  out[threadIdx.x] = largest - least;
}

TEST_CASE("max and min read an element once") {
  Buffer<float> in("in", 64), out("out", 32);
  for (int i = 0; i < 64; ++i) in[i] = i % 3 == 0 ? 1.F : -1.F;
  launch(extremes_kernel, 1, 32)(in.data(), out.data());
  CHECK(out[0] == 2);
  for (const Traffic& each : traffic()) {
    if (each.memory == "in") CHECK(each.requests == 2);
  }
}

}  // namespace rush::labs
