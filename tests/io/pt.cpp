#include "core/io/pt.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/io/npy.h"
#include "core/io/zip_archive.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/io/from_hex.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using rush::testing::from_hex;
using rush::testing::TemporaryFolder;

// The file of a case of pt.json.
std::string write_case(const TemporaryFolder& folder, const nlohmann::json& each) {
  return folder.write("case.pt", from_hex(each["file"]));
}

nlohmann::json find_case(const char* title) {
  for (const auto& each : read_fixtures("io/pt.json")) {
    if (each["title"] == title) return each;
  }
  FAIL("no such case: " << title);
  return {};
}

std::vector<double> numbers(const Tensor& tensor) {
  const Tensor real = tensor.is_complex() ? view_as_real(tensor) : tensor;
  const Tensor flat = real.to(kFloat64).contiguous();
  return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
}

TEST_CASE("pt: files that PyTorch wrote") {
  const TemporaryFolder folder;
  for (const auto& each : read_fixtures("io/pt.json")) {
    CAPTURE(each["title"].get<std::string>());
    const std::string path = write_case(folder, each);
    CHECK(io::is_pt(path));
    if (!each.contains("tensors")) {
      CHECK_THROWS_AS(io::load_pt(path), NotImplementedError);
      continue;
    }
    const io::NamedTensors read = io::load_pt(path);
    REQUIRE(read.size() == each["tensors"].size());
    for (size_t i = 0; i < read.size(); ++i) {
      const auto& want = each["tensors"][i];
      CHECK(read[i].first == want["name"].get<std::string>());
      const Tensor got = read[i].second.is_complex() ? view_as_real(read[i].second) : read[i].second;
      CHECK(std::vector<int64_t>(got.sizes().begin(), got.sizes().end()) == want["shape"].get<std::vector<int64_t>>());
      CHECK(numbers(got) == want["values"].get<std::vector<double>>());
    }
  }
}

TEST_CASE("pt: tensors that shared memory still do") {
  const TemporaryFolder folder;
  const io::NamedTensors read = io::load_pt(write_case(folder, find_case("views")));
  read[0].second.fill_(7);
  for (const auto& [name, tensor] : read) CHECK(numbers(tensor) == std::vector<double>(tensor.numel(), 7));
  CHECK(read[1].second.strides() == IntArrayRef({1, 4}));
}

TEST_CASE("pt: a module takes the weights of a module in Python") {
  const TemporaryFolder folder;
  const nlohmann::json recorded = find_case("a state dict");
  const std::string path = write_case(folder, recorded);
  struct NetImpl : nn::Module {
    nn::Linear fc = register_module("fc", nn::Linear(2, 3));
    nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(3));
  };
  NetImpl net;
  load(net, path);
  CHECK(numbers(net.fc->weight) == recorded["tensors"][0]["values"].get<std::vector<double>>());
  CHECK(net.norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK(net.fc->weight.requires_grad());

  const std::vector<double> before = numbers(net.fc->bias);
  CHECK_THROWS_WITH_AS(load(net, write_case(folder, find_case("a checkpoint"))), doctest::Contains("model.fc.weight"),
                       ValueError);
  CHECK(numbers(net.fc->bias) == before);
}

TEST_CASE("pt: what is saved is loaded") {
  const TemporaryFolder folder;
  const std::string path = folder / "all.pt";
  const Tensor base = arange(24, kFloat32).view({2, 3, 4});
  const io::NamedTensors tensors = {{"base", base},
                                    {"turned", base.permute({2, 0, 1})},
                                    {"empty", zeros({0, 3})},
                                    {"scalar", tensor(2.5, kFloat64)},
                                    {"half", ones({3}, kHalf)},
                                    {"float8", arange(4, kFloat32).to(kFloat8_e5m2)},
                                    {"wide", arange(4, kInt64).to(kUInt64)},
                                    {"flags", tensor({true, false})},
                                    {"complex", full({2}, complex<double>(1, 2))},
                                    {"\u00fc", tensor({1, 2, 3})}};
  io::save_pt(path, tensors);
  const io::NamedTensors read = io::load_pt(path);
  REQUIRE(read.size() == tensors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].first == tensors[i].first);
    CHECK(equal(read[i].second, tensors[i].second));
  }
  CHECK_THROWS_WITH_AS(io::save_pt(path, {{"a", base}, {"a", base}}), doctest::Contains("two values are named 'a'"),
                       ValueError);
  CHECK_THROWS_AS(io::save_pt(path, {{"a", Tensor()}}), ValueError);
  CHECK_THROWS_AS(io::save_pt(path, {{"a", empty({2}, kMeta)}}), ValueError);
  CHECK(io::load_pt(path).size() == tensors.size());
}

TEST_CASE("pt: numbers and texts") {
  const TemporaryFolder folder;
  const std::string path = write_case(folder, find_case("a checkpoint"));
  std::map<std::string, Value> values;
  for (const auto& [name, value] : io::load_pt_values(path)) values[name] = value;
  CHECK(values.at("epoch").as<int64_t>() == 5);
  CHECK(values.at("best").as<double>() == 0.25);
  CHECK(!values.contains("note"));
  CHECK(values.at("optimizer.param_groups.0.lr").as<double>() == 0.1);
  CHECK(!values.at("optimizer.param_groups.0.amsgrad").as<bool>());

  const io::NamedValues written = {{"n", Value(int64_t{-5})},
                                   {"x", Value(-0.125)},
                                   {"on", Value(true)},
                                   {"text", Value("a\nb")},
                                   {"t", Value(ones({2}))}};
  io::save_pt_values(path, written);
  const io::NamedValues read = io::load_pt_values(path);
  REQUIRE(read.size() == written.size());
  CHECK(read[0].second.as<int64_t>() == -5);
  CHECK(read[1].second.as<double>() == -0.125);
  CHECK(read[2].second.as<bool>());
  CHECK(read[3].second.as<std::string>() == "a\nb");
  CHECK(equal(read[4].second.as<Tensor>(), ones({2})));
  CHECK_THROWS_AS(io::save_pt_values(path, {{"d", Value(kFloat32)}}), TypeError);
  CHECK_THROWS_WITH_AS(io::save_pt_values(path, {{"d", "\xff"}}), "save_pt: the text 'd' is not UTF-8", ValueError);
  CHECK_THROWS_WITH_AS(io::save_pt_values(path, {{"d", 1}, {"\xed\xa0\x80", 1}}),
                       "save_pt: the name of value 1 is not UTF-8", ValueError);
}

// An archive of torch.save's with this pickle and a storage of six floats.
std::string archive_of(const TemporaryFolder& folder, const std::string& pickle) {
  const std::string path = folder / "given.pt";
  io::ZipWriter archive(path);
  archive.add("a/data.pkl", std::make_unique<io::BytesSource>(pickle), false);
  archive.add("a/data/0", std::make_unique<io::BytesSource>(std::string(24, '\0')), false);
  archive.commit();
  return path;
}

// _rebuild_tensor_v2 of that storage.
std::string tensor_pickle(const std::string& offset, const std::string& sizes, const std::string& strides,
                          const std::string& numel = "K\x06") {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((" +
         std::string("X\x07\0\0\0storage", 12) + "ctorch\nFloatStorage\n" +
         std::string(
             "X\x01\0\0\0"
             "0",
             6) +
         std::string("X\x03\0\0\0cpu", 8) + numel + "tQ" + offset + "(" + sizes + "t(" + strides + "t\x89NtR.";
}

TEST_CASE("pt: keys of a dict that are no texts are named as Python prints them") {
  const TemporaryFolder folder;
  const auto name_of = [&](const std::string& key) {
    const std::string tensor = tensor_pickle(std::string("K\0", 2), "K\x06", "K\x01");
    const std::string path = archive_of(folder, "\x80\x02}" + key + tensor.substr(2, tensor.size() - 3) + "s.");
    return io::load_pt(path).at(0).first;
  };
  CHECK(name_of("K\x07") == "7");
  CHECK(name_of("K\x01K\x02\x86") == "(1, 2)");
  CHECK(name_of("N\x88\x86") == "(None, True)");
  CHECK(name_of("K\x01)\x86") == "(1, ())");
  CHECK(name_of(std::string("G\x3f\xe0\0\0\0\0\0\0", 9)) == "0.5");
  CHECK_THROWS_WITH_AS(name_of("]q\x01h\x01\x61"), doctest::Contains("nested without end"), IOError);
  std::string doubled = ")";
  for (int i = 0; i < 60; ++i) doubled += "q\x01h\x01\x86";
  CHECK_THROWS_WITH_AS(name_of(doubled), doctest::Contains("a key of a dict is endless"), IOError);
}

TEST_CASE("pt: hostile files") {
  const TemporaryFolder folder;
  const auto failure = [&](const std::string& pickle) -> std::string {
    const std::string path = archive_of(folder, pickle);
    try {
      io::load_pt(path);
    } catch (const Error& error) {
      CHECK(error.msg().find('\n') == std::string::npos);
      return error.msg().substr(path.size());
    }
    return "";
  };
  const std::string zero = std::string("K\0", 2), large("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
  CHECK(failure(tensor_pickle(zero, "K\x02K\x03", "K\x03K\x01")) == "");
  CHECK(failure(tensor_pickle("K\x02", "K\x02K\x02", "K\x02K\x01")) == "");
  CHECK(failure(tensor_pickle("K\x06", zero, "K\x01")) == "");
  for (const std::string& outside : {tensor_pickle("K\x01", "K\x02K\x03", "K\x03K\x01"),
                                     tensor_pickle("K\x06", "K\x01", "K\x01"), tensor_pickle("K\x07", zero, "K\x01"),
                                     tensor_pickle(zero, "K\x02", "K\x06"), tensor_pickle(zero, "K\x02", large),
                                     tensor_pickle(zero, "K\x03K\x03", "K\x02K\x01"), tensor_pickle(large, "", "")}) {
    CHECK(failure(outside).find("outside of its storage") != std::string::npos);
  }
  CHECK(failure(tensor_pickle(zero, large + large, zero + zero)).find("too large") != std::string::npos);
  CHECK(failure(tensor_pickle(zero, "K\x02", "K\x01K\x01")).find("1 sizes and 2 strides") != std::string::npos);
  CHECK(failure(tensor_pickle("J\xff\xff\xff\xff", "K\x02", "K\x01")).find("outside") != std::string::npos);
  CHECK(failure(tensor_pickle(zero, "K\x02", "K\x01", "K\x07")).find("7 elements of float32") != std::string::npos);
  CHECK(failure(tensor_pickle(zero, "K\x02", "K\x01", large)).find("24 bytes") != std::string::npos);

  // Lists in themselves, and lists of lists of lists, each twice.
  CHECK(failure("\x80\x02]q\x01h\x01"
                "a.")
            .find("nested without end") != std::string::npos);
  std::string doubled = "\x80\x02]";
  for (char i = 1; i < 60; ++i) doubled += std::string("q") + i + "]h" + i + "ah" + i + "a";
  CHECK(failure(doubled + ".").find("nested without end") != std::string::npos);

  CHECK(failure("").find("truncated") != std::string::npos);
  CHECK(failure("\x80\x02").find("truncated") != std::string::npos);
  CHECK(failure(".").find("empty stack") != std::string::npos);
  CHECK(failure("u.").find("lacks a mark") != std::string::npos);
  CHECK(failure(std::string("X\xff\xff\xff\xff"
                            "ab.",
                            8))
            .find("truncated") != std::string::npos);
  CHECK(failure("h\x05.").find("not there") != std::string::npos);
  CHECK(failure("cos\nsystem\nX\x02\0\0\0ls\x85R.").find("posix") == std::string::npos);
  CHECK(failure(std::string("cos\nsystem\nX\x02\0\0\0ls\x85R.", 21)).find("an object of class os.system") !=
        std::string::npos);
  CHECK(failure("\x80\x06N.").find("unknown protocol") != std::string::npos);

  const std::string other = folder / "other.pt";
  io::save_npz(other, {{"x", ones({2})}});
  CHECK_THROWS_WITH_AS(io::load_pt(other), doctest::Contains("it has no data.pkl"), IOError);
  CHECK_THROWS_AS(io::load_pt(folder / "missing.pt"), IOError);
  io::save_npy(other, ones({2}));
  CHECK_THROWS_WITH_AS(io::load_pt(other),
                       doctest::Contains("other.pt: not a file of torch.save, truncated or corrupt"), IOError);
  const std::string script = folder / "script.pt";
  io::ZipWriter archive(script);
  archive.add("model/constants.pkl", std::make_unique<io::BytesSource>("x"), true);
  archive.commit();
  CHECK_THROWS_WITH_AS(io::load_pt(script), doctest::Contains("a TorchScript archive"), NotImplementedError);
}

TEST_CASE("pt: damaged bytes are noticed") {
  const TemporaryFolder folder;
  std::string file = from_hex(find_case("a tensor")["file"]);
  const size_t data = file.find(std::string("\0\0\x80\x3f\0\0\0\x40", 8));  // 1 and 2
  REQUIRE(data != std::string::npos);
  file[data + 2] ^= 1;
  CHECK_THROWS_AS(io::load_pt(folder.write("damaged.pt", file)), IOError);
}

}  // namespace
