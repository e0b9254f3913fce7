#include "optim/state/serialize.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/io/load_failure.h"
#include "tests/temporary_folder.h"

using namespace rush;
using rush::testing::file_content;
using rush::testing::refusal;
using rush::testing::TemporaryFolder;

namespace {

struct NetImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
  explicit NetImpl(int64_t width = 3) {
    fc = register_module("fc", nn::Linear(2, width));
    bn = register_module("bn", nn::BatchNorm1d(width));
  }
  Tensor forward(const Tensor& x) { return bn(fc(x)); }
};
RUSH_MODULE(Net);

optim::StateDict copy_of(const optim::StateDict& dict) {
  optim::StateDict copy("state");
  for (const auto& item : dict) copy.insert(item.key(), item->clone());
  return copy;
}

bool equal(const optim::StateDict& a, const optim::StateDict& b) {
  if (a.keys() != b.keys()) return false;
  for (const auto& item : a) {
    if (item->scalar_type() != b[item.key()].scalar_type() || !item->equal(b[item.key()])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("save and load: a tensor of any dtype, and lists of tensors") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    const Tensor value = arange(6, kFloat32).view({2, 3}).to(dtype).t();
    save(value, path);
    Tensor loaded;
    load(loaded, path);
    CHECK(loaded.scalar_type() == dtype);
    CHECK(loaded.equal(value));
    save(std::vector<Tensor>{value, ones({})}, path);
    std::vector<Tensor> all = {ones(7)};
    load(all, path);
    REQUIRE(all.size() == 2);
    CHECK(all[0].equal(value));
    CHECK(all[1].equal(ones({})));
  }
  save(std::vector<Tensor>{}, path);
  std::vector<Tensor> all = {ones(7)};
  load(all, path, kCPU);
  CHECK(all.empty());
}

TEST_CASE("load: a defined tensor keeps its identity, and requires_grad comes back") {
  const TemporaryFolder folder;
  save(ones({2, 2}).requires_grad_(), folder / "a");
  nn::Linear layer(3, 3);
  const Tensor handle = layer->weight;
  load(layer->weight, folder / "a");
  CHECK(handle.equal(ones({2, 2})));
  CHECK(handle.requires_grad());
  CHECK(handle.is_leaf());
  save(arange(3), folder / "a");
  load(layer->weight, folder / "a");
  CHECK(handle.scalar_type() == kInt64);
  CHECK(!handle.requires_grad());
}

TEST_CASE("save and load: modules by holder, pointer and reference; optimisers and schedules") {
  const TemporaryFolder folder;
  Net net, other;
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.1)), other_adam(other->parameters(), optim::AdamOptions());
  optim::StepLR schedule(adam, 2), other_schedule(other_adam, 2);
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    net(randn({4, 2})).square().sum().backward();
    adam.step();
    schedule.step();
  }
  save(net, folder / "net");
  save(net.ptr(), folder / "pointer");
  save(static_cast<const nn::Module&>(*net), folder / "module");
  save(adam, folder / "adam");
  save(schedule, folder / "schedule");
  CHECK(file_content(folder / "net") == file_content(folder / "pointer"));
  CHECK(file_content(folder / "net") == file_content(folder / "module"));
  load(other, folder / "net");
  load(other.ptr(), folder / "net", kCPU);
  CHECK(equal(state_dict(*net), state_dict(*other)));
  load(other_adam, folder / "adam");
  CHECK(equal(adam.state_dict(), other_adam.state_dict()));
  load(other_schedule, folder / "schedule");
  CHECK(equal(schedule.state_dict(), other_schedule.state_dict()));
}

TEST_CASE("load: a file of another program is read by its names, in another floating-point type too") {
  const TemporaryFolder folder;
  Net net;
  io::NamedTensors tensors;
  for (const auto& item : state_dict(*net)) {
    tensors.emplace_back(item.key(), item->is_floating_point() ? item->to(kFloat64) + 1 : item.value());
  }
  io::save_safetensors(folder / "a", tensors);
  const Tensor expected = net->fc->weight.detach() + 1;
  load(net, folder / "a");
  CHECK(net->fc->weight.detach().allclose(expected));
  CHECK(net->fc->weight.scalar_type() == kFloat32);
  CHECK(net->fc->weight.requires_grad());
}

TEST_CASE("load: all that does not fit a module is named in one line, and the module stays as it was") {
  const TemporaryFolder folder;
  Net net;
  const optim::StateDict before = copy_of(state_dict(*net));
  optim::StateDict bad = copy_of(before);
  for (auto& item : bad) item.value() = item->is_floating_point() ? item->add(1) : item.value();
  bad.erase("fc.bias");
  bad.erase("bn.running_mean");
  bad.insert("fc.extra", ones(1));
  bad.insert("head.weight", ones(1));
  bad["fc.weight"] = ones({2, 3});
  bad["bn.num_batches_tracked"] = ones({});
  const std::string expected =
      "load_state_dict: the state dict does not fit; missing: fc.bias, bn.running_mean; unexpected: fc.extra, "
      "head.weight; wrong: fc.weight is float32 (2, 3) instead of float32 (3, 2), bn.num_batches_tracked is float32 () "
      "instead of int64 ()";
  CHECK(refusal<ValueError>([&] { load_state_dict(*net, bad); }) == expected);
  io::save_safetensors(folder / "bad", bad.pairs());
  CHECK(refusal<ValueError>([&] { load(net, folder / "bad"); }) == folder / "bad" + ": " + expected);
  save(Net(4), folder / "wide");
  CHECK(refusal<ValueError>([&] { load(net, folder / "wide"); }).find("bn.running_var is float32 (4)") !=
        std::string::npos);
  CHECK(equal(state_dict(*net), before));
}

TEST_CASE("load: damaged files and those of something else are IOErrors in one line, and change nothing") {
  const TemporaryFolder folder;
  Tensor value = ones(2);
  std::vector<Tensor> values = {ones(2)};
  Net net;
  const optim::StateDict before = copy_of(state_dict(*net));
  save(zeros(2), folder / "tensor");
  save(net, folder / "net");
  const std::string whole = file_content(folder / "net");
  folder.write("cut", whole.substr(0, whole.size() - 1));
  folder.write("text", "no tensors");
  const std::string kinds = ": expected a file of kind 'module', this one is of kind 'tensor'";
  CHECK(refusal<IOError>([&] { load(net, folder / "tensor"); }) == folder / "tensor" + kinds);
  for (const char* name : {"cut", "text", "none", "net"}) {
    const std::string path = folder / name;
    CAPTURE(name);
    for (const std::string& message :
         {refusal<IOError>([&] { load(value, path); }), refusal<IOError>([&] { load(values, path); }),
          refusal<IOError>([&] { load(net, name == std::string("net") ? "/" : path); })}) {
      CHECK(message.find('\n') == std::string::npos);
      CHECK(message.find(message[1] == ':' ? "/" : path + ": ") == 0);
    }
  }
  CHECK(value.equal(ones(2)));
  CHECK(values[0].equal(ones(2)));
  CHECK(equal(state_dict(*net), before));
  CHECK_THROWS_AS(save(Tensor(), folder / "a"), ValueError);
  CHECK_THROWS_AS(save(std::vector<Tensor>{ones(1), Tensor()}, folder / "a"), ValueError);
  CHECK_THROWS_AS(save(std::shared_ptr<NetImpl>(), folder / "a"), ValueError);
  CHECK_THROWS_AS(save(net, folder / "none/a"), IOError);
  CHECK_THROWS_AS(save(ones(1), "/dev/full"), IOError);
}
