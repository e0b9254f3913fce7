// Archives: values by name, inner archives, modules and optimisers, through files, streams and memory.
#include "nn/state/archive.h"

#include <doctest/doctest.h>

#include <limits>
#include <sstream>

#include "rushlight.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;
using serialize::InputArchive;
using serialize::OutputArchive;

OutputArchive example() {
  OutputArchive archive, inner, innermost;
  innermost.write("w", full({2}, 3.0));
  inner.write("deep", innermost);
  inner.write("b", ones({3}, kInt64), true);
  archive.write("net", inner);
  archive.write("epoch", Value(int64_t{4}));
  archive.write("note", Value("half"));
  archive.write("x", arange(4, kFloat32).view({2, 2}));
  return archive;
}

void check_example(const InputArchive& archive) {
  CHECK(archive.keys() == std::vector<std::string>{"net", "epoch", "note", "x"});
  Tensor x, w;
  archive.read("x", x);
  CHECK(equal(x.cpu(), arange(4, TensorOptions(kFloat32).device(kCPU)).view({2, 2})));
  Value epoch, note;
  archive.read("epoch", epoch);
  archive.read("note", note);
  CHECK(epoch.as<int64_t>() == 4);
  CHECK(note.as<std::string>() == "half");
  InputArchive net, deep;
  archive.read("net", net);
  CHECK(net.keys() == std::vector<std::string>{"deep", "b"});
  net.read("deep", deep);
  deep.read("w", w);
  CHECK(w.cpu().eq(3).all().item<bool>());
}

TEST_CASE("archive: files, streams and memory hold the same") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.pt";
  example().save_to(path);
  std::ostringstream written;
  example().save_to(written);
  CHECK(written.str() == file_content(path));
  InputArchive of_file, of_stream, of_memory;
  of_file.load_from(path);
  check_example(of_file);
  std::istringstream stream(written.str());
  of_stream.load_from(stream);
  check_example(of_stream);
  of_memory.load_from(written.str().data(), written.str().size());
  check_example(of_memory);
}

TEST_CASE("archive: what is missing or does not fit is refused") {
  std::stringstream stream;
  example().save_to(stream);
  InputArchive archive;
  archive.load_from(stream);
  Tensor tensor = zeros({3}), undefined;
  Value value;
  InputArchive inner;
  CHECK(!archive.try_read("y", undefined));
  CHECK(!undefined.defined());
  CHECK(!archive.try_read("epoch", undefined));
  CHECK(!archive.try_read("y", value));
  CHECK(!archive.try_read("x", inner));
  CHECK_THROWS_WITH_AS(archive.read("y", undefined), doctest::Contains("there is no tensor 'y'"), ValueError);
  CHECK_THROWS_WITH_AS(archive.read("y", value), doctest::Contains("there is no value 'y'"), ValueError);
  CHECK_THROWS_WITH_AS(archive.read("y", inner), doctest::Contains("there is no archive 'y'"), ValueError);
  CHECK_THROWS_WITH_AS(archive.read("x", tensor), doctest::Contains("'x' has shape (2, 2), expected (3)"), ValueError);
  CHECK(equal(tensor, zeros({3})));
  archive.read("net", inner);
  CHECK_THROWS_WITH_AS(inner.read("y", undefined), doctest::Contains("'net.y'"), ValueError);

  OutputArchive twice;
  twice.write("a", ones({1}));
  CHECK_THROWS_WITH_AS(twice.write("a", ones({1})), doctest::Contains("'a' is there already"), ValueError);
  CHECK_THROWS_WITH_AS(twice.write("b", Tensor()), doctest::Contains("'b' is undefined"), ValueError);

  twice.write("self", twice);
  std::stringstream of_itself;
  twice.save_to(of_itself);
  InputArchive whole;
  whole.load_from(of_itself);
  CHECK(whole.keys() == std::vector<std::string>{"a", "self"});

  std::istringstream nothing("");
  CHECK_THROWS_AS(archive.load_from(nothing), IOError);
  archive.read("x", undefined);  // the archive is what it was
  std::ostringstream closed;
  closed.setstate(std::ios::badbit);
  CHECK_THROWS_AS(example().save_to(closed), IOError);
  CHECK_THROWS_AS(example().save_to("/nowhere/a.pt"), IOError);
}

struct ScaledNetImpl : nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(3, 4));
  nn::Sequential rest = register_module("rest", nn::Sequential(nn::BatchNorm1d(4), nn::ReLU(), nn::Linear(4, 2)));
  Tensor scale = register_parameter("scale", full({1}, 0.5));
  Tensor forward(const Tensor& x) { return rest->forward(fc(x)) * scale; }
};
RUSH_MODULE(ScaledNet);

double step(ScaledNet& net, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  const Tensor loss = net->forward(linspace(-1, 1, 12).view({4, 3})).square().mean();
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

TEST_CASE("archive: modules and optimisers go on as they would have") {
  ScaledNet net, other;
  optim::Adam optimizer(net->parameters(), 0.1), other_optimizer(other->parameters(), 0.1);
  for (int i = 0; i < 3; ++i) step(net, optimizer);
  OutputArchive archive, of_net, of_optimizer;
  net->save(of_net);
  optimizer.save(of_optimizer);
  archive.write("net", of_net);
  archive.write("optimizer", of_optimizer);
  std::stringstream stream;
  archive.save_to(stream);

  InputArchive read, part;
  read.load_from(stream);
  read.read("net", part);
  other->load(part);
  read.read("optimizer", part);
  other_optimizer.load(part);
  for (int i = 0; i < 3; ++i) CHECK(step(net, optimizer) == step(other, other_optimizer));

  // One module's archive holds what another has not.
  InputArchive linear;
  read.read("net", linear);
  CHECK_THROWS_WITH_AS(nn::Linear(3, 4)->load(linear), doctest::Contains("'net.weight'"), ValueError);
}

TEST_CASE("archive: a module, an optimiser and a number stand in one, each reading its own") {
  ScaledNet net, other;
  optim::Adam optimizer(net->parameters(), 0.1), other_optimizer(other->parameters(), 0.1);
  for (int i = 0; i < 3; ++i) step(net, optimizer);
  OutputArchive archive;
  archive.write("epoch", tensor(3));
  net->save(archive);
  optimizer.save(archive);
  std::stringstream stream;
  archive.save_to(stream);

  InputArchive read;
  read.load_from(stream);
  other->load(read);
  other_optimizer.load(read);
  for (int i = 0; i < 3; ++i) CHECK(step(net, optimizer) == step(other, other_optimizer));
  optim::Adam of_fewer({other->parameters()[0]}, 0.1);
  CHECK_THROWS_AS(of_fewer.load(read), ValueError);
}

TEST_CASE("archive: files of save are read, and all that is saved to a path is saved to a stream") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  ScaledNet net, other, third;
  save(net, path);
  InputArchive archive;
  archive.load_from(path);
  other->load(archive);
  CHECK(equal(other->fc->weight, net->fc->weight));

  std::stringstream modules, tensors, lists;
  save(net, modules);
  CHECK(modules.str() == file_content(path));
  load(third, modules);
  CHECK(equal(third->fc->weight, net->fc->weight));
  save(ones({2}), tensors);
  Tensor tensor;
  load(tensor, tensors);
  CHECK(equal(tensor.cpu(), ones({2}, kCPU)));
  const std::vector<Tensor> several = {ones({1}), zeros({2})};
  save(several, lists);
  std::vector<Tensor> list;
  load(list, lists);
  CHECK(list.size() == 2);
}

TEST_CASE("load_state_dict takes the further names that PyTorch's files have for what is registered twice") {
  const auto make = [] {
    const nn::Linear linear(2, 2);
    const nn::BatchNorm1d norm(2);
    return nn::Sequential(linear, norm, linear, norm);
  };
  const auto before = make(), after = make();
  {
    const NoGradGuard no_grad;
    before->named_parameters()["0.weight"][0][0] = std::numeric_limits<float>::quiet_NaN();
    before->named_buffers()["1.num_batches_tracked"].fill_(3);
  }
  const TemporaryFolder folder;
  OutputArchive archive;  // has each under both names, as torch.save of a state dict does
  before->save(archive);
  archive.save_to(folder / "a.pt");
  load(after, folder / "a.pt");
  for (const auto& item : state_dict(*before)) {
    CHECK(allclose(state_dict(*after)[item.key()], item.value(), 0, 0, /*equal_nan=*/true));
  }

  StateDict dict = state_dict(*before);
  dict.insert("2.bias", before->named_parameters()["0.bias"].detach() + 1);
  CHECK_THROWS_WITH_AS(load_state_dict(*after, dict),
                       doctest::Contains("2.bias is the module's 0.bias, for which the dict has other numbers"),
                       ValueError);
  dict.erase("2.bias");
  dict.insert("2.weight", zeros({3, 2}));
  CHECK_THROWS_WITH_AS(load_state_dict(*after, dict), doctest::Contains("2.weight is float32 (3, 2)"), ValueError);
  dict.erase("2.weight");
  dict.insert("4.weight", zeros({2, 2}));
  CHECK_THROWS_WITH_AS(load_state_dict(*after, dict), doctest::Contains("unexpected: 4.weight"), ValueError);
}

TEST_CASE("load_state_dict takes both names that one module has for a tensor") {
  struct Tied : nn::Module {
    Tensor in = register_parameter("in", zeros({2})), out = register_parameter("out", in);
    Tensor none = register_parameter("none", Tensor());
  } tied;
  StateDict dict("state");
  dict.insert("in", ones({2}));
  dict.insert("out", ones({2}));
  load_state_dict(tied, dict);
  CHECK(equal(tied.out, ones({2})));
  dict["out"] = zeros({2});
  CHECK_THROWS_WITH_AS(load_state_dict(tied, dict), doctest::Contains("out is the module's in"), ValueError);
}

TEST_CASE("a reader that gives more bytes than it was asked for is refused, and so is one that ends early") {
  serialize::InputArchive archive;
  const auto too_many = [](uint64_t, void*, size_t size) { return size + 1; };
  const auto none = [](uint64_t, void*, size_t) { return size_t{0}; };
  const auto size = [] { return size_t{8}; };
  CHECK_THROWS_WITH_AS(archive.load_from(too_many, size), "load: the reader gave 9 bytes, and was asked for 8",
                       IOError);
  CHECK_THROWS_WITH_AS(archive.load_from(none, size), "load: the reader ends after 0 of 8 bytes", IOError);
}

}  // namespace
