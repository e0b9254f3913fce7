// Every collective against one process: dtypes, sizes, strides, groups, and whether it is waited for at once.
#include "core/distributed/collectives.h"

#include <doctest/doctest.h>

#include "backends/cuda/devices.h"
#include "tests/distributed/rank_inputs.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::testing;

constexpr ScalarType kDtypes[] = {kUInt8,   kInt8,    kInt16,     kInt32,       kInt64,        kFloat16,
                                  kFloat32, kFloat64, kComplex64, kComplex128,  kBool,         kBFloat16,
                                  kUInt16,  kUInt32,  kUInt64,    kFloat8_e5m2, kFloat8_e4m3fn};
constexpr ReduceOp kOps[] = {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX};
constexpr int64_t kSizes[] = {0, 1, 7, 64, 1037};

// NCCL reduces fewer: docs/distributed.md.
bool is_left_out_by_nccl(ReduceOp op, ScalarType dtype) {
  if (dtype == kInt16 || dtype == kUInt16 || dtype == kUInt32 || dtype == kUInt64) return true;
  return element_size(dtype) == 1 ? op == ReduceOp::AVG : is_complex(dtype) && op == ReduceOp::PRODUCT;
}

bool is_defined(ReduceOp op, ScalarType dtype) {
  if (on_gpus() && is_left_out_by_nccl(op, dtype)) return false;
  if (op == ReduceOp::AVG) return is_floating_point(dtype) || is_complex(dtype);
  return !is_complex(dtype) || (op != ReduceOp::MIN && op != ReduceOp::MAX);
}

// All processes, those of even ranks, and all but the first, in which ranks are others than among all.
const std::vector<Group>& groups() {
  static const std::vector<Group> all = [] {
    std::vector<int> even, later;
    for (int rank = 0; rank < get_world_size(); ++rank) {
      if (rank % 2 == 0) even.push_back(rank);
      if (rank > 0) later.push_back(rank);
    }
    return std::vector<Group>{world(), new_group(even), new_group(later)};
  }();
  return all;
}

// One way in which collectives are called.
struct Setting {
  Group group;
  ScalarType dtype;
  int64_t numel;
  bool is_strided, is_async;

  Tensor give(const Tensor& t) const { return is_strided ? strided(t) : t.clone(); }
  Tensor own() const { return give(input_of(get_rank(), numel, dtype)); }
  Tensor to_fill(int64_t count) const { return give(empty({count}, dtype).copy_(zeros({count}, kFloat32))); }
  std::vector<Tensor> list_to_fill() const {
    std::vector<Tensor> list;
    for (int i = 0; i < group->size(); ++i) list.push_back(to_fill(numel));
    return list;
  }
  std::vector<Tensor> inputs() const { return inputs_of(group->ranks(), numel, dtype); }
  int root() const { return group->ranks().back(); }
  bool is_root() const { return get_rank() == root(); }
  int64_t place() const { return group->rank(); }
};

template <class Test>
void in_every_setting(const Test& test) {
  for (const Group& group : groups()) {
    if (!group) continue;
    for (const ScalarType dtype : kDtypes) {
      for (const int64_t numel : kSizes) {
        if (get_world_size() > 4 && numel % 10 != 7) continue;  // two cores have so many processes take turns
        for (const bool is_strided : {false, true}) {
          const bool is_async = is_strided != (numel % 2 == 0);
          INFO("group of ", group->size(), ", ", name(dtype), ", ", numel, " elements, strided ", is_strided);
          test(Setting{group, dtype, numel, is_strided, is_async});
        }
      }
    }
  }
}

void end(const WorkPtr& work, const Setting& s) {
  if (s.is_async) work->wait();
  if (on_gpus()) cuda::synchronize();  // it is the current stream that has waited
  CHECK(work->is_completed());
}

TEST_CASE("all_reduce and reduce give what one process computes in the order of ranks") {
  in_every_setting([](const Setting& s) {
    for (const ReduceOp op : kOps) {
      if (!is_defined(op, s.dtype)) continue;
      INFO(name(op));
      const Tensor expected = reduced(s.inputs(), op);
      const Tensor everywhere = s.own(), at_root = s.own();
      end(all_reduce(everywhere, op, s.group, s.is_async), s);
      CHECK(same_bits(everywhere, expected));
      end(reduce(at_root, s.root(), op, s.group, s.is_async), s);
      CHECK(same_bits(at_root, s.is_root() ? expected : s.own()));
    }
  });
}

TEST_CASE("reduce_scatter gives each rank its block of the sum") {
  in_every_setting([](const Setting& s) {
    for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::AVG}) {
      if (!is_defined(op, s.dtype)) continue;
      // Block i of rank r is the input of rank r + i, so that blocks differ.
      const auto blocks_of = [&](int rank) {
        std::vector<Tensor> blocks;
        for (int i = 0; i < s.group->size(); ++i) blocks.push_back(s.give(input_of(rank + i, s.numel, s.dtype)));
        return blocks;
      };
      std::vector<Tensor> mine;
      for (const int rank : s.group->ranks()) mine.push_back(blocks_of(rank)[static_cast<size_t>(s.place())]);
      const Tensor of_list = s.to_fill(s.numel), of_tensor = s.to_fill(s.numel);
      end(reduce_scatter(of_list, blocks_of(get_rank()), op, s.group, s.is_async), s);
      CHECK(same_bits(of_list, reduced(mine, op)));
      end(reduce_scatter_tensor(of_tensor, s.give(cat(blocks_of(get_rank()), 0)), op, s.group, s.is_async), s);
      CHECK(same_bits(of_tensor, reduced(mine, op)));
    }
  });
}

TEST_CASE("broadcast, all_gather, gather and scatter move elements as they are") {
  in_every_setting([](const Setting& s) {
    const std::vector<Tensor> inputs = s.inputs();
    const Tensor sent = s.own();
    end(broadcast(sent, s.root(), s.group, s.is_async), s);
    CHECK(same_bits(sent, inputs.back()));

    const std::vector<Tensor> list = s.list_to_fill();
    end(all_gather(list, s.own(), s.group, s.is_async), s);
    const Tensor whole = s.to_fill(s.numel * s.group->size());
    end(all_gather_into_tensor(whole, s.own(), s.group, s.is_async), s);
    CHECK(same_bits(whole, cat(inputs, 0)));

    const std::vector<Tensor> gathered = s.is_root() ? s.list_to_fill() : std::vector<Tensor>();
    end(gather(s.own(), gathered, s.root(), s.group, s.is_async), s);
    for (size_t i = 0; i < inputs.size(); ++i) {
      CHECK(same_bits(list[i], inputs[i]));
      if (s.is_root()) CHECK(same_bits(gathered[i], inputs[i]));
    }

    std::vector<Tensor> given;
    for (size_t i = 0; s.is_root() && i < inputs.size(); ++i) given.push_back(s.give(inputs[i]));
    const Tensor part = s.to_fill(s.numel);
    end(scatter(part, given, s.root(), s.group, s.is_async), s);
    CHECK(same_bits(part, inputs[static_cast<size_t>(s.place())]));
  });
}

TEST_CASE("texts of any length come from every member, in their order") {
  const auto text_of = [](int rank) { return std::string(static_cast<size_t>(rank) * 700, static_cast<char>(rank)); };
  const Group first = new_group({0});
  for (const Group& group : {world(), first}) {
    if (!group) continue;
    const std::vector<std::string> texts = all_gather_texts(text_of(get_rank()), group);
    REQUIRE(texts.size() == group->ranks().size());
    for (size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == text_of(group->ranks()[i]));
  }
  CHECK_THROWS_WITH_AS(all_gather_texts("", nullptr), doctest::Contains("no member of the group"), DistributedError);
}

TEST_CASE("all_to_all sends each rank its tensors, also where they have different sizes") {
  in_every_setting([](const Setting& s) {
    // From the process of place i to that of place j go i + 2 j + numel elements.
    const auto message = [&](int64_t i, int64_t j) {
      return input_of(static_cast<int>(10 * i + j), s.numel == 0 ? 0 : i + 2 * j + s.numel, s.dtype);
    };
    std::vector<Tensor> inputs, outputs;
    std::vector<int64_t> leaving, arriving;
    for (int64_t other = 0; other < s.group->size(); ++other) {
      inputs.push_back(s.give(message(s.place(), other)));
      outputs.push_back(s.to_fill(message(other, s.place()).numel()));
      leaving.push_back(inputs.back().numel());
      arriving.push_back(outputs.back().numel());
    }
    const Tensor input = s.give(cat(inputs, 0)), output = s.to_fill(cat(outputs, 0).numel());
    end(all_to_all(outputs, inputs, s.group, s.is_async), s);
    end(all_to_all_single(output, input, arriving, leaving, s.group, s.is_async), s);
    for (int64_t other = 0; other < s.group->size(); ++other) {
      CHECK(same_bits(outputs[static_cast<size_t>(other)], message(other, s.place())));
    }
    CHECK(same_bits(output, cat(outputs, 0)));
  });
}

TEST_CASE("tensors of several shapes are reduced together") {
  for (const bool is_async : {false, true}) {
    std::vector<Tensor> tensors, expected;
    for (const int64_t numel : {5, 0, 12}) {
      tensors.push_back(strided(input_of(get_rank(), numel, kBFloat16)).view({numel, 1}));
      expected.push_back(reduced(inputs_of(world()->ranks(), numel, kBFloat16), ReduceOp::AVG).view({numel, 1}));
    }
    all_reduce_coalesced(tensors, ReduceOp::AVG, world(), is_async)->wait();
    for (size_t i = 0; i < tensors.size(); ++i) CHECK(same_bits(tensors[i], expected[i]));
  }
}

TEST_CASE("messages that cross each other arrive, each at its tag") {
  if (on_gpus()) return;  // NCCL has no tags
  const int size = get_world_size(), rank = get_rank(), next = (rank + 1) % size, previous = (rank + size - 1) % size;
  in_every_setting([&](const Setting& s) {
    if (s.group != world()) return;
    const Tensor first = s.to_fill(s.numel), second = s.to_fill(s.numel);
    // All begin to receive before any sends, and in another order.
    const WorkPtr works[] = {irecv(second, previous, world(), 2), irecv(first, previous, world(), 1),
                             isend(s.own(), next, world(), 1),
                             isend(s.give(input_of(100 + rank, s.numel, s.dtype)), next, world(), 2)};
    for (const WorkPtr& work : works) work->wait();
    CHECK(same_bits(first, input_of(previous, s.numel, s.dtype)));
    CHECK(same_bits(second, input_of(100 + previous, s.numel, s.dtype)));
  });
}

TEST_CASE("send and recv wait for the message") {
  const Tensor token = zeros({3}, kInt32);
  if (get_rank() > 0) recv(token, get_rank() - 1);
  token.add_(1);
  if (get_rank() + 1 < get_world_size()) send(token, get_rank() + 1);
  CHECK(token.select(0, 2).item<int>() == get_rank() + 1);
}

TEST_CASE("the caller computes while a collective goes on, and several end in any order") {
  std::vector<Tensor> tensors;
  std::vector<WorkPtr> works;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(full({1000}, get_rank() + i, kFloat32));
    works.push_back(all_reduce(tensors.back(), ReduceOp::SUM, world(), /*async_op=*/true));
  }
  const int size = get_world_size();
  for (int i = 19; i >= 0; --i) {
    works[static_cast<size_t>(i)]->wait();
    CHECK(tensors[static_cast<size_t>(i)].eq(size * (size - 1) / 2 + i * size).all().item<bool>());
  }
  barrier();
}

TEST_CASE("what is wrong with a call is said before anything is sent") {
  CHECK_THROWS_WITH_AS(all_reduce(ones({2}), ReduceOp::SUM, nullptr), doctest::Contains("this process is no member"),
                       DistributedError);
  CHECK_THROWS_WITH_AS(all_reduce(ones({2}, kInt64), ReduceOp::AVG), doctest::Contains("a mean of integers"),
                       TypeError);
  CHECK_THROWS_WITH_AS(all_reduce(ones({2}, kComplex64), ReduceOp::MAX), doctest::Contains("no max of complex"),
                       TypeError);
  CHECK_THROWS_AS(all_reduce(Tensor()), TypeError);
  CHECK_THROWS_WITH_AS(broadcast(ones({2}), get_world_size()), doctest::Contains("is not among the"), ValueError);
  CHECK_THROWS_WITH_AS(all_gather({ones({2})}, ones({2})), doctest::Contains("expected a tensor for each of"),
                       ValueError);
  CHECK_THROWS_WITH_AS(all_gather_into_tensor(ones({3}), ones({2})), doctest::Contains("has no block of shape"),
                       ValueError);
  CHECK_THROWS_WITH_AS(all_gather_into_tensor(ones({2 * get_world_size()}), ones({2}, kInt32)),
                       doctest::Contains("tensors are of"), TypeError);
  CHECK_THROWS_WITH_AS(all_to_all_single(ones({2}), ones({2}), {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}),
                       doctest::Contains("do not split the output"), ValueError);
  if (!on_gpus()) {  // NCCL has no tags
    CHECK_THROWS_WITH_AS(send(ones({2}), 0, world(), 1 << 20), doctest::Contains("expected a tag"), ValueError);
  }
  CHECK_THROWS_WITH_AS(new_group({0, 0}), doctest::Contains("is there twice"), ValueError);
  CHECK_THROWS_WITH_AS(new_group({99}), doctest::Contains("expected ranks from 0"), ValueError);
  CHECK_THROWS_WITH_AS(init_process_group("mpi"), doctest::Contains("there is a process group already"),
                       DistributedError);
}

TEST_CASE("a message of another length than its tensor is an error, which wait throws") {
  if (on_gpus()) return;  // NCCL does not compare lengths
  if (get_rank() == 0) send(ones({3}), 1, world(), 7);
  if (get_rank() == 1) {
    CHECK_THROWS_WITH_AS(recv(ones({4}), 0, world(), 7), doctest::Contains("recv of rank 1"), DistributedError);
  }
  barrier();
}

}  // namespace
