// What processes that work together need of one process: the environment, the fake backend, and errors at the start.
#include <doctest/doctest.h>

#include <cstdlib>

#include "autograd/debug/gradcheck.h"
#include "core/distributed/collectives.h"
#include "core/distributed/environment.h"
#include "core/distributed/fake.h"
#include "core/distributed/functional.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "nn/modules.h"
#include "nn/parallel/distributed_data_parallel.h"

namespace rush::distributed {
namespace {

// The environment with these variables, and without others that a launcher may have set, until its end.
class Variables {
 public:
  explicit Variables(const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                             "RUSH_DISTRIBUTED_TIMEOUT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK", "PMI_RANK",
                             "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
      setenv(name, value, 1);
      names_.push_back(name);
    }
  }
  ~Variables() {
    for (const char* name : names_) unsetenv(name);
  }
  Variables(const Variables&) = delete;

 private:
  std::vector<const char*> names_;
};

struct FakeWorld {
  FakeWorld(int rank, int size) {
    InitOptions options;
    options.rank = rank;
    options.world_size = size;
    init_process_group("fake", options);
  }
  ~FakeWorld() {
    if (is_initialized()) destroy_process_group();
  }
};

TEST_CASE("ranks are read from the variables of each launcher") {
  {
    const Variables torchrun({{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node0"},
                              {"MASTER_PORT", "29500"}});
    const Environment environment = read_environment();
    CHECK(environment.launcher == "torchrun");
    CHECK(environment.rank == 5);
    CHECK(environment.world_size == 8);
    CHECK(environment.local_rank == 1);
    CHECK(environment.local_world_size == 4);
    CHECK(environment.master_addr == "node0");
    CHECK(environment.master_port == 29500);
    CHECK(!environment.started_by_mpi);
  }
  {
    // mpirun within an allocation of Slurm's, of which this is the first task.
    const Variables mpirun({{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_NTASKS", "1"}});
    const Environment environment = read_environment();
    CHECK(environment.launcher == "Open MPI");
    CHECK(environment.rank == 3);
    CHECK(environment.world_size == 4);
    CHECK(environment.local_rank == 1);
    CHECK(environment.started_by_mpi);
  }
  {
    const Variables slurm({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "3"}, {"SLURM_LOCALID", "1"}, {"PMIX_RANK", "2"}});
    const Environment environment = read_environment();
    CHECK(environment.launcher == "PMIx");
    CHECK(environment.rank == 2);
    CHECK(environment.local_rank == 1);
    CHECK(environment.started_by_mpi);
  }
  const Variables none({});
  CHECK(read_environment().launcher.empty());
  CHECK(!read_environment().rank);
}

TEST_CASE("nonsense in the environment is named") {
  const auto message = [](const std::vector<std::pair<const char*, const char*>>& variables) -> std::string {
    const Variables set(variables);
    try {
      read_environment();
    } catch (const DistributedError& error) {
      return error.msg();
    }
    return "";
  };
  CHECK(message({{"RANK", "0"}, {"WORLD_SIZE", "nan"}}) ==
        "the environment variable WORLD_SIZE is 'nan', which is no whole number");
  CHECK(message({{"RANK", "two"}}).find("RANK is 'two'") != std::string::npos);
  CHECK(message({{"RANK", ""}}).find("RANK is ''") != std::string::npos);
  CHECK(message({{"RANK", "99999999999999999999"}}).find("no whole number") != std::string::npos);
  CHECK(message({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).find("RANK is -1, expected a number from 0") !=
        std::string::npos);
  CHECK(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}) ==
        "the environment variable RANK is 2, expected a rank below WORLD_SIZE, which is 2");
  CHECK(message({{"RANK", "0"}, {"LOCAL_RANK", "4"}, {"LOCAL_WORLD_SIZE", "4"}}).find("LOCAL_RANK is 4") !=
        std::string::npos);
  CHECK(message({{"RANK", "0"}, {"WORLD_SIZE", "0"}}).find("WORLD_SIZE is 0") != std::string::npos);
  CHECK(message({{"MASTER_PORT", "70000"}}).find("MASTER_PORT is 70000") != std::string::npos);
  CHECK(message({{"RUSH_DISTRIBUTED_TIMEOUT", "0"}}).find("RUSH_DISTRIBUTED_TIMEOUT is 0") != std::string::npos);
  CHECK(message({{"RUSH_DISTRIBUTED_TIMEOUT", "1m"}}).find("'1m', which is no whole number") != std::string::npos);
  CHECK(message({{"PMI_RANK", "7"}, {"PMI_SIZE", "4"}}).find("PMI_SIZE, which is 4") != std::string::npos);
}

TEST_CASE("a backend joins from outside") {
  const Variables none({});
  const auto make = [](const InitOptions& options, const Group& control) {
    CHECK(!control);  // MPI has not started this process
    return make_fake_group(options.rank, options.world_size);
  };
  CHECK(!is_backend_available("stork"));
  register_backend("stork", make);
  CHECK(is_backend_available("stork"));
  CHECK(is_backend_available("fake"));
  for (const char* taken : {"stork", "mpi", "fake"}) CHECK_THROWS_AS(register_backend(taken, make), ValueError);
  InitOptions options;
  options.rank = 2;
  options.world_size = 5;
  init_process_group("stork", options);
  CHECK(get_rank() == 2);
  destroy_process_group();
}

TEST_CASE("what cannot start says what to do") {
  const Variables none({});
  const char* expected = is_mpi_available() ? "./rush launch -n 2 PROGRAM" : "-DRUSH_MPI=ON";
  CHECK_THROWS_WITH_AS(init_process_group("mpi"), doctest::Contains(expected), DistributedError);
  CHECK_THROWS_WITH_AS(init_process_group("pigeon"), doctest::Contains("there is no backend 'pigeon'; expected one of"),
                       ValueError);
  CHECK(!is_initialized());
  if (!is_mpi_available()) return;
  const Variables torchrun({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK_THROWS_WITH_AS(init_process_group("mpi"), doctest::Contains("(torchrun has)"), DistributedError);
  const auto starts_with = [](int64_t message_bytes, std::chrono::milliseconds timeout) {
    InitOptions options;
    options.message_bytes = message_bytes;
    options.timeout = timeout;
    init_process_group("fake", options);
  };
  using namespace std::chrono_literals;
  CHECK_THROWS_WITH_AS(starts_with(0, 1s), doctest::Contains("message_bytes is 0"), ValueError);
  CHECK_THROWS_WITH_AS(starts_with(int64_t{1} << 31, 1s), doctest::Contains("message_bytes is 2147483648"), ValueError);
  CHECK_THROWS_WITH_AS(starts_with(1024, 0s), doctest::Contains("the timeout is 0 ms"), ValueError);
  CHECK_THROWS_WITH_AS(starts_with(1024, std::chrono::milliseconds::max()), doctest::Contains("the timeout is"),
                       ValueError);
}

TEST_CASE("without a group nothing is sent") {
  CHECK_THROWS_WITH_AS(get_rank(), doctest::Contains("call init_process_group first"), DistributedError);
  CHECK_THROWS_AS(all_reduce(ones({2})), DistributedError);
  CHECK_THROWS_AS(functional::all_reduce(ones({2})), DistributedError);
  CHECK_THROWS_AS(new_group({0}), DistributedError);
  CHECK_THROWS_AS(destroy_process_group(), DistributedError);
  CHECK_THROWS_AS(nn::DistributedDataParallel(nn::Linear(2, 2)), DistributedError);
  {
    const FakeWorld fake(0, 2);
    CHECK_THROWS_WITH_AS(init_process_group("fake"), doctest::Contains("a process group already"), DistributedError);
    destroy_process_group();
    CHECK_THROWS_AS(barrier(), DistributedError);
  }
  CHECK_THROWS_WITH_AS(FakeWorld(4, 4), doctest::Contains("expected a rank from 0 to 3, got 4"), ValueError);
}

TEST_CASE("the fake backend is a world of any size on one process") {
  const FakeWorld fake(1000, 4096);
  CHECK(get_rank() == 1000);
  CHECK(get_world_size() == 4096);
  CHECK(functional::all_gather(ones({2, 3})).sizes() == IntArrayRef({8192, 3}));
  CHECK(functional::all_gather(ones({2, 3}).to(kMeta)).sizes() == IntArrayRef({8192, 3}));
  CHECK(functional::reduce_scatter(arange(8192)).eq(tensor({2000, 2001})).all().item<bool>());
  const Group pair = new_group({1000, 3});
  CHECK(get_rank(pair) == 1);
  CHECK(get_world_size(pair) == 2);
  CHECK(get_rank(new_group({1, 2})) == -1);
  CHECK(functional::all_to_all(tensor({1, 2, 3, 4}), {}, {}, pair).eq(tensor({0, 0, 3, 4})).all().item<bool>());
  CHECK(group_named(pair->name()) == pair);
  CHECK_THROWS_AS(group_named("99"), DistributedError);

  nn::DistributedDataParallel net(nn::Linear(3, 2));
  net(ones({4, 3})).sum().backward();
  CHECK(net->module()->weight.grad().eq(4).all().item<bool>());
}

TEST_CASE("operators are called by name, and say what is wrong with their arguments") {
  const FakeWorld fake(0, 4);
  CHECK(ops::all_gather_into_tensor(ones({1}), 4, "default").numel() == 4);
  CHECK_THROWS_WITH_AS(ops::all_gather_into_tensor(ones({1}), 3, "default"),
                       doctest::Contains("has 4 processes, not 3"), ValueError);
  CHECK_THROWS_WITH_AS(ops::all_reduce(ones({1}), "median", "default"), doctest::Contains("no reduction 'median'"),
                       ValueError);
  CHECK_THROWS_WITH_AS(ops::broadcast(ones({1}), 4, "default"), doctest::Contains("expected a rank from 0 to 3"),
                       ValueError);
  CHECK_THROWS_WITH_AS(functional::reduce_scatter(ones({6})), doctest::Contains("6 rows cannot be split among 4"),
                       ValueError);
  CHECK_THROWS_WITH_AS(functional::all_gather(ones({})), doctest::Contains("expected an input with rows"), ValueError);
}

// Among processes they are checked by tests/distributed/derivatives.
TEST_CASE("derivatives of collectives of one process") {
  const FakeWorld fake(0, 1);
  using Fn = Tensor (*)(const Tensor&);
  const Fn functions[] = {
      [](const Tensor& x) { return functional::all_reduce(x); },
      [](const Tensor& x) { return functional::all_reduce(x, ReduceOp::AVG); },
      [](const Tensor& x) { return functional::all_reduce(x, ReduceOp::MAX); },
      [](const Tensor& x) { return functional::all_reduce(x, ReduceOp::PRODUCT); },
      [](const Tensor& x) { return functional::all_gather(x); },
      [](const Tensor& x) { return functional::reduce_scatter(x); },
      [](const Tensor& x) { return functional::all_to_all(x); },
      [](const Tensor& x) { return functional::broadcast(x, 0); },
      [](const Tensor& x) { return functional::reduce(x, 0); },
      [](const Tensor& x) { return functional::gather(x, 0); },
      [](const Tensor& x) { return functional::scatter(x, 0); },
  };
  for (const Fn function : functions) {
    const auto squared = [&](const Tensors& x) { return Tensors{function(x[0]).square()}; };
    for (const Tensor& shape : {zeros({2, 3}), zeros({4})}) {
      const Tensors inputs{arange(shape.numel(), kFloat64).add(1).view(shape.sizes()).requires_grad_()};
      CHECK(autograd::gradcheck(squared, inputs));
      CHECK(autograd::gradgradcheck(squared, inputs));
    }
  }
}

}  // namespace
}  // namespace rush::distributed
