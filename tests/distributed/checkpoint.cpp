// Sharded checkpoints: what is saved on one mesh and loaded on others, and what of it is left where something fails.
#include "core/distributed/checkpoint.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/io/safetensors.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/distributed/shared_folder.h"
#include "tests/environment_guard.h"
#include "tests/io/file_size_limit.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using testing::has;
using testing::same_bits;
using testing::SharedFolder;
namespace fs = std::filesystem;

// ---- meshes, as rules for the parts

// In how many chunks a dimension is split, and by which rule: as torch.chunk (5 over 4 are 2, 2, 1, 0), or as evenly as
// it can be (2, 1, 1, 1).
struct Cut {
  size_t dim;
  int64_t chunks;
  bool even = false;

  std::pair<int64_t, int64_t> chunk(int64_t size, int64_t i) const {  // from, to
    const int64_t longest = (size + chunks - 1) / chunks, longer = size % chunks;
    if (!even) return {std::min(i * longest, size), std::min((i + 1) * longest, size)};
    return {i * (size / chunks) + std::min(i, longer), (i + 1) * (size / chunks) + std::min(i + 1, longer)};
  }
};

struct Mesh {
  const char* name;
  std::vector<Cut> cuts;     // those of dimensions that a tensor lacks are left out
  int stages = 0;            // of a pipeline: tensor i is on the ranks r with r % stages == i % stages
  bool is_reversed = false;  // the last rank has the first part
};

const std::vector<Mesh> kMeshes{
    {"replicated", {}},
    {"rows by 2", {{0, 2}}},
    {"rows by 4", {{0, 4}}},
    {"rows by 4, evenly", {{0, 4, true}}},
    {"rows by 3, from the last rank on", {{0, 3, true}}, 0, true},
    {"columns by 2", {{1, 2}}},
    {"columns by 4", {{1, 4}}},
    {"rows by 2 x columns by 2", {{0, 2}, {1, 2}}},
    {"columns by 2 x rows by 4", {{1, 2}, {0, 4, true}}},
    {"the third dimension by 3", {{2, 3, true}}},
    {"a pipeline of 2", {}, 2},
    {"a pipeline of 4 from the last rank on", {}, 4, true},
    {"a pipeline of 2 x rows by 2", {{0, 2}}, 2},
};

// All values that are saved, the same on every process; `version` makes them others.
io::NamedTensors whole_tensors(int version = 0) {
  using testing::input_of;
  return {{"rows", input_of(version, 5 * 7, kFloat64).view({5, 7})},
          {"matrix", input_of(version + 1, 8 * 12, kFloat32).view({8, 12})},
          {"deep", input_of(version + 2, 4 * 3 * 6, kBFloat16).view({4, 3, 6})},
          {"flags", input_of(version + 3, 9, kBool)},
          {"step", full({}, 1000 + version, kInt64)},
          {"empty", zeros({0, 3}, kFloat16)},
          {"complex", input_of(version + 4, 6, kComplex64).view({2, 3})}};
}

TensorPart box_of(const std::string& name, const Tensor& whole, const std::vector<std::pair<int64_t, int64_t>>& box) {
  TensorPart part = TensorPart::whole(name, whole);
  for (size_t d = 0; d < box.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    part.local = part.local.narrow(dim, box[d].first, box[d].second - box[d].first);
    part.offsets[d] = box[d].first;
  }
  part.local = part.local.clone();
  return part;
}

// What a process has on a mesh. Where there are more boxes than processes, it has several of a tensor.
std::vector<TensorPart> parts_on(const Mesh& mesh, const io::NamedTensors& tensors) {
  const int64_t world = get_world_size(), rank = mesh.is_reversed ? world - 1 - get_rank() : get_rank();
  std::vector<TensorPart> parts;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto& [name, whole] = tensors[t];
    const int64_t stages = std::min<int64_t>(std::max(mesh.stages, 1), world);
    if (static_cast<int64_t>(t) % stages != rank % stages) continue;
    const int64_t place = rank / stages, places = world / stages;
    std::vector<Cut> cuts;
    int64_t count = 1;
    for (const Cut& cut : mesh.cuts) {
      if (cut.dim >= whole.sizes().size()) continue;
      cuts.push_back(cut);
      count *= cut.chunks;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (count >= places ? i % places != place : place % count != i) continue;
      std::vector<std::pair<int64_t, int64_t>> box;
      for (const int64_t size : whole.sizes()) box.emplace_back(0, size);
      int64_t rest = i;
      for (const Cut& cut : cuts) {
        box[cut.dim] = cut.chunk(whole.sizes()[cut.dim], rest % cut.chunks);
        rest /= cut.chunks;
      }
      parts.push_back(box_of(name, whole, box));
    }
  }
  return parts;
}

std::vector<TensorPart> without_values(const std::vector<TensorPart>& parts) {
  std::vector<TensorPart> blank = parts;
  for (TensorPart& part : blank) part.local = zeros_like(part.local);
  return blank;
}

void check_same(const std::vector<TensorPart>& parts, const std::vector<TensorPart>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK_MESSAGE(same_bits(parts[i].local, expected[i].local), expected[i].name);
  }
}

// That the checkpoint has these values, by what one process reads.
void check_has(const std::string& folder, const io::NamedTensors& tensors) {
  std::vector<TensorPart> all;
  for (const auto& [name, whole] : tensors) all.push_back(TensorPart::whole(name, whole));
  std::vector<TensorPart> read = without_values(all);
  load_parts(folder, read);
  check_same(read, all);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// What this process is told where `body` throws an error of that kind.
template <class E>
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const E& error) {
    return error.msg();
  }
  return "nothing was thrown";
}

std::string all_say(const std::string& message) {
  std::vector<Tensor> all;
  const auto length = static_cast<int64_t>(message.size());
  Tensor least = full({1}, length, kInt64), most = least.clone();
  all_reduce(least, ReduceOp::MIN);
  all_reduce(most, ReduceOp::MAX);
  if (least.item<int64_t>() != most.item<int64_t>()) return "the processes are told something else: " + message;
  const Tensor text = zeros({length}, kUInt8);
  std::memcpy(text.data_ptr(), message.data(), message.size());
  const Tensor first = text.clone();
  broadcast(first, 0);
  return same_bits(text, first) ? message : "the processes are told something else: " + message;
}

}  // namespace

TEST_CASE("what is saved on one mesh is loaded on every other one, bit for bit") {
  const io::NamedTensors tensors = whole_tensors();
  for (const Mesh& from : kMeshes) {
    CAPTURE(from.name);
    const SharedFolder folder;
    save_parts(folder.path(), parts_on(from, tensors));
    for (const Mesh& to : kMeshes) {
      CAPTURE(to.name);
      const std::vector<TensorPart> expected = parts_on(to, tensors);
      std::vector<TensorPart> read = without_values(expected);
      load_parts(folder.path(), read);
      check_same(read, expected);
    }
    barrier();
  }
}

TEST_CASE("the files are ordinary safetensors with Hugging Face's index") {
  const SharedFolder folder;
  const io::NamedTensors tensors = whole_tensors();
  SaveOptions options;
  options.max_file_bytes = 400;
  options.metadata = {{"step", str(300 + get_rank())}};
  save_parts(folder.path(), parts_on(kMeshes[7], tensors), options);
  const auto index = nlohmann::json::parse(testing::file_content(folder / "model.safetensors.index.json"));
  CHECK(index["metadata"]["step"] == "300");
  int64_t total = 0;
  std::map<std::string, uint64_t> files;
  for (const auto& [name, whole] : tensors) {
    const std::string file = index["weight_map"][name];
    const io::SafetensorsFile read(folder / file);
    CHECK(same_bits(read.read(name), whole));
    CHECK(read.metadata() == io::Metadata{{"format", "pt"}, {"step", "300"}});
    uint64_t& bytes = files[file] = 0;
    for (const auto& entry : read.entries()) bytes += entry.end - entry.begin;
    total += whole.nbytes();
  }
  CHECK(index["metadata"]["total_size"] == total);
  CHECK(index["weight_map"].size() == tensors.size());
  REQUIRE(files.size() == 3);
  CHECK(files == std::map<std::string, uint64_t>{{"model-1-00001-of-00003.safetensors", 280},
                                                 {"model-1-00002-of-00003.safetensors", 384},
                                                 {"model-1-00003-of-00003.safetensors", 144 + 9 + 8 + 48}});
  CHECK(files_in(folder.path()).size() == 4);
  CHECK(load_parts(folder.path(), {}) == io::Metadata{{"step", "300"}});
  barrier();
}

TEST_CASE("a part is read and written with any strides, and past autograd") {
  const SharedFolder folder;
  const Tensor whole = testing::input_of(3, 8 * 6, kFloat32).view({8, 6});
  const Tensor rows = whole.chunk(get_world_size())[static_cast<size_t>(get_rank())];
  for (const bool is_contiguous : {true, false}) {
    const Tensor weight = (is_contiguous ? rows.clone() : rows.t().contiguous().t()).requires_grad_();
    CHECK(weight.is_contiguous() == is_contiguous);
    const std::vector<TensorPart> parts{{"w", weight, whole.sizes(), {rows.size(0) * get_rank(), 0}}};
    save_parts(folder.path(), parts);
    check_has(folder.path(), {{"w", whole}});
    weight.detach().zero_();
    const Tensor square = weight.square().sum();  // saves the weight
    load_parts(folder.path(), parts);
    CHECK(same_bits(weight.detach(), rows));
    CHECK(weight.is_leaf());
    CHECK_THROWS_WITH_AS(square.backward(), doctest::Contains("modified by an inplace operation"), Error);
    barrier();
  }
}

TEST_CASE("what several processes have is written by all of them in turn") {
  const SharedFolder folder;
  // As many equal tensors as processes. Where each has values of its own, the file tells who has written them.
  io::NamedTensors own;
  for (int i = 0; i < get_world_size(); ++i) own.emplace_back(str("t", i), full({10}, get_rank(), kInt32));
  std::vector<TensorPart> parts;
  for (const auto& [name, values] : own) parts.push_back(TensorPart::whole(name, values));
  save_parts(folder.path(), parts);
  for (int i = 0; i < get_world_size(); ++i) own[static_cast<size_t>(i)].second.fill_(i);
  check_has(folder.path(), own);
}

TEST_CASE("two tensors of one process have two names") {
  const SharedFolder folder;
  const Tensor weight = full({2, 3}, get_rank() == 0 ? NAN : 1), average = zeros({2, 3});
  const TensorPart part = TensorPart::whole("w", weight);
  save_parts(folder.path(), {part, part});
  const std::vector<TensorPart> both{part, TensorPart::whole("w", get_rank() == 0 ? average : weight.clone())};
  const std::string told = all_say(message_of<ValueError>([&] { save_parts(folder.path(), both); }));
  CHECK_MESSAGE(
      told ==
          "save_parts: rank 0: tensor 'w' is given twice, with values that differ; give each tensor a name of its own",
      told);
}

TEST_CASE("checkpoints of other programs are loaded") {
  const SharedFolder folder;
  const io::NamedTensors tensors = whole_tensors();
  if (get_rank() == 0) io::save_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  barrier();
  const std::vector<TensorPart> expected = parts_on(kMeshes[7], tensors);
  std::vector<TensorPart> read = without_values(expected);
  CHECK(load_parts(folder.path(), read) == io::Metadata{{"format", "pt"}});
  check_same(read, expected);
  const std::string told = all_say(message_of<IOError>([&] { save_parts(folder.path(), expected); }));
  CHECK_MESSAGE(
      told == str("save_parts: rank 0: ", folder / "model.safetensors",
                  ": other programs would load this file, not what is saved beside it; choose another folder"),
      told);
}

TEST_CASE("a later save replaces an earlier one, and what killed processes have left") {
  const SharedFolder folder;
  const std::string run = folder / "runs/a";
  save_parts(run, parts_on(kMeshes[2], whole_tensors(1)));
  CHECK(files_in(run) ==
        std::vector<std::string>{"model-1-00001-of-00001.safetensors", "model.safetensors.index.json"});
  barrier();
  if (get_rank() == 0) {
    for (const char* name :
         {"model-2-00001-of-00002.safetensors", "model-9-00007-of-00099.safetensors",
          "model.safetensors.index.json.rush-tmp-0", "model-00001-of-00002.safetensors", "config.json"}) {
      std::ofstream(run + "/" + name) << "left";
    }
  }
  save_parts(run, parts_on(kMeshes[5], whole_tensors(2)));
  check_has(run, whole_tensors(2));
  barrier();  // the first process removes what is left, and then goes on
  CHECK(files_in(run) == std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors",
                                                  "model-2-00001-of-00001.safetensors",
                                                  "model.safetensors.index.json"});
  barrier();
}

TEST_CASE("parts that do not make up their tensor are an error on all processes, and change nothing") {
  const SharedFolder folder;
  save_parts(folder.path(), parts_on(kMeshes[0], whole_tensors(1)));
  const int rank = get_rank(), last = get_world_size() - 1;
  const auto told = [&](const TensorPart& part) {
    std::vector<TensorPart> parts = parts_on(kMeshes[0], whole_tensors(2));
    parts.push_back(part);
    return all_say(message_of<ValueError>([&] { save_parts(folder.path(), parts); }));
  };
  const auto part = [](IntArrayRef local, IntArrayRef sizes, IntArrayRef offsets) {
    return TensorPart{"w", ones(local), sizes, offsets};
  };
  // One row more than their part on each but the last.
  std::string message = told(part({rank == last ? 2 : 3, 4}, {2 * (last + 1), 4}, {2 * rank, 0}));
  CHECK_MESSAGE(
      message == str("save_parts: parts of tensor 'w' overlap: rank 0 has sizes (3, 4) at (0, 0), rank 1 has sizes (",
                     last == 1 ? 2 : 3, ", 4) at (2, 0)"),
      message);
  message = told(part({rank == 0 ? 1 : 2, 4}, {2 * (last + 1), 4}, {2 * rank, 0}));
  CHECK_MESSAGE(has(message, str("the parts of tensor 'w' of sizes (", 2 * (last + 1), ", 4) cover ", 8 * last + 4,
                                 " of its ", 8 * last + 8, " elements")),
                message);
  message = told(TensorPart::whole("w", rank == last ? ones({2, 3}) : ones({2, 2})));
  CHECK_MESSAGE(message == str("save_parts: tensor 'w' is float32 (2, 2) on rank 0 and float32 (2, 3) on rank ", last),
                message);
  message = told(TensorPart::whole("w", ones({2}, rank == last ? kFloat64 : kFloat32)));
  CHECK_MESSAGE(has(message, str("'w' is float32 (2) on rank 0 and float64 (2) on rank ", last)), message);
  message = told(part({2, 2}, {2, 3}, {0, rank == last ? 2 : 0}));
  CHECK_MESSAGE(message == str("save_parts: rank ", last,
                               ": a part of sizes (2, 2) at (0, 2) does not lie in 'w' of sizes (2, 3)"),
                message);
  message = told(part({2}, {2, 3}, {0, 0}));
  CHECK_MESSAGE(has(message, "rank 0: a part of sizes (2) at (0, 0) does not lie in"), message);
  message = told(TensorPart{"w", rank == last ? Tensor() : ones({1}), {1}, {0}});
  CHECK_MESSAGE(has(message, str("rank ", last, ": the part of 'w' has no data")), message);
  message = told(TensorPart::whole(rank == last ? "w\xff" : "w", ones({1})));
  CHECK_MESSAGE(has(message, str("rank ", last, ": a name or metadata is not UTF-8")), message);
  message = told(TensorPart::whole("__metadata__", ones({1})));
  CHECK_MESSAGE(has(message, "cannot be named '__metadata__'"), message);
  message = all_say(
      message_of<TypeError>([&] { save_parts(folder.path(), {TensorPart::whole("w", ones({1}, kComplex128))}); }));
  CHECK_MESSAGE(has(message, "no dtype for complex128"), message);
  check_has(folder.path(), whole_tensors(1));
  barrier();
}

TEST_CASE("a checkpoint that does not fit, is damaged or is not there is an error that says so") {
  const SharedFolder folder;
  save_parts(folder.path(), parts_on(kMeshes[7], whole_tensors()));
  const auto load = [&](const std::string& path, std::vector<TensorPart> parts) {
    return [path, parts] { load_parts(path, parts); };
  };
  const Tensor untouched = zeros({5, 7}, kFloat64);
  const TensorPart fits = TensorPart::whole("rows", untouched);
  std::string message = message_of<ValueError>(
      load(folder.path(), {fits, TensorPart::whole("column", ones({3})), TensorPart::whole("flags", zeros({9}, kUInt8)),
                           TensorPart::whole("matrix", ones({12, 8})), TensorPart::whole("bias", ones({3}))}));
  CHECK_MESSAGE(
      message == folder.path() +
                     ": the checkpoint does not fit; missing: column, bias; wrong: flags is bool (9) instead of uint8 "
                     "(9), matrix is float32 (8, 12) instead of float32 (12, 8)",
      message);
  CHECK(same_bits(untouched, zeros({5, 7}, kFloat64)));
  message = message_of<ValueError>(load(folder.path(), {{"rows", ones({2, 7}, kFloat64), {5, 7}, {4, 0}}}));
  CHECK_MESSAGE(has(message, "a part of sizes (2, 7) at (4, 0) does not lie in 'rows'"), message);
  message = message_of<IOError>(load(folder / "none", {fits}));
  CHECK_MESSAGE(message == (folder / "none") + ": there is no such folder", message);

  // Each process has a copy of its own to damage.
  const testing::TemporaryFolder own;
  CHECK(has(message_of<IOError>(load(own.path(), {fits})), "there is no checkpoint in this folder: neither model.saf"));
  const std::string file = "model-1-00001-of-00001.safetensors";
  fs::copy(folder.path(), own.path(), fs::copy_options::recursive);
  fs::resize_file(own / file, fs::file_size(own / file) - 1);
  CHECK(has(message_of<IOError>(load(own.path(), {fits})), "truncated or corrupt"));
  fs::remove(own / file);
  CHECK(has(message_of<IOError>(load(own.path(), {fits})), file + ": cannot open"));
  own.write("model.safetensors.index.json", "{\"weight_map\": {\"rows\": \"../x.safetensors\"}}");
  CHECK(has(message_of<IOError>(load(own.path(), {fits})), "which is no name of a file in the folder"));
  for (const char* text : {"{", "[]", "{\"weight_map\": {\"rows\": 3}}", "{\"metadata\": {}}"}) {
    own.write("model.safetensors.index.json", text);
    CHECK(has(message_of<IOError>(load(own.path(), {fits})), "corrupt index"));
  }
  io::save_safetensors(own / "other.safetensors", {{"matrix", ones({1})}});
  own.write("model.safetensors.index.json", "{\"weight_map\": {\"rows\": \"other.safetensors\"}}");
  CHECK(has(message_of<IOError>(load(own.path(), {fits})), "has no tensor 'rows', which the index says is there"));
  barrier();
}

TEST_CASE("where one process cannot write, all say which and what, and the earlier checkpoint stays") {
  const SharedFolder folder;
  save_parts(folder.path(), parts_on(kMeshes[1], whole_tensors(1)));
  const std::vector<std::string> before = files_in(folder.path());
  const std::vector<TensorPart> parts = parts_on(kMeshes[1], whole_tensors(2));
  barrier();
  for (const bool is_async : {false, true}) {
    std::optional<testing::FileSizeLimit> full;
    if (get_rank() == 1) full.emplace(1200);
    const std::string message = all_say(message_of<IOError>([&] {
      if (is_async) {
        save_parts_async(folder.path(), parts)->wait();
      } else {
        save_parts(folder.path(), parts);
      }
    }));
    CHECK_MESSAGE(message == str("save_parts: rank 1: ", folder.path(),
                                 "/model-2-00001-of-00001.safetensors: cannot write: File too large"),
                  message);
    full.reset();
    barrier();
    CHECK(files_in(folder.path()) == before);
    check_has(folder.path(), whole_tensors(1));
  }
  barrier();
  save_parts(folder.path(), parts);
  check_has(folder.path(), whole_tensors(2));
}

TEST_CASE("processes that do not share the folder are told so") {
  const testing::TemporaryFolder own;
  const std::string message =
      message_of<IOError>([&] { save_parts(own.path(), parts_on(kMeshes[2], whole_tensors())); });
  CHECK_MESSAGE(has(message, "save_parts: rank 1: "), message);
  CHECK_MESSAGE(has(message, "/model-1-00001-of-00001.safetensors: cannot open: No such file"), message);
  barrier();
  CHECK(own.file_count() == 0);
}

TEST_CASE("an asynchronous save has the values of its beginning, and becomes the checkpoint when it is waited for") {
  const SharedFolder folder;
  save_parts(folder.path(), parts_on(kMeshes[2], whole_tensors(1)));
  const std::vector<TensorPart> parts = parts_on(kMeshes[3], whole_tensors(2));
  const auto pending = save_parts_async(folder.path(), parts);
  for (const TensorPart& part : parts) part.local.zero_();
  check_has(folder.path(), whole_tensors(1));
  barrier();
  pending->wait();
  check_has(folder.path(), whole_tensors(2));
  barrier();
  pending->wait();

  const auto first = save_parts_async(folder.path(), parts_on(kMeshes[4], whole_tensors(3)));
  const auto second = save_parts_async(folder.path(), parts_on(kMeshes[5], whole_tensors(4)));
  check_has(folder.path(), whole_tensors(3));  // which the second save has waited for
  barrier();
  second->wait();
  first->wait();
  check_has(folder.path(), whole_tensors(4));
  barrier();

  // One that is never waited for does not become the checkpoint.
  save_parts_async(folder.path(), parts_on(kMeshes[4], whole_tensors(9))).reset();
  check_has(folder.path(), whole_tensors(4));
  barrier();

  // Collectives may be called meanwhile.
  const auto third = save_parts_async(folder.path(), parts_on(kMeshes[6], whole_tensors(5)));
  const Tensor sum = full({1000}, 1.0);
  for (int i = 0; i < 3; ++i) all_reduce(sum);
  third->wait();
  check_has(folder.path(), whole_tensors(5));
}

// For killed_saves.sh: checks the checkpoint that an earlier run has left, and then saves one version after the other.
TEST_CASE("saves until it is killed" * doctest::skip()) {
  const std::string folder = std::getenv("RUSH_TEST_CHECKPOINT");
  const int saves = std::atoi(std::getenv("RUSH_TEST_SAVES"));
  int version = 0;
  if (fs::exists(folder + "/model.safetensors.index.json")) {
    version = std::stoi(CheckpointFolder(folder).metadata().at("version"));
    const std::vector<TensorPart> expected = parts_on(kMeshes[8], whole_tensors(version));
    const std::vector<TensorPart> read = without_values(expected);
    load_parts(folder, read);
    for (size_t i = 0; i < expected.size(); ++i) REQUIRE(same_bits(read[i].local, expected[i].local));
  }
  std::printf("process %d\n", ::getpid());
  std::fflush(stdout);
  barrier();
  if (get_rank() == 0) std::printf("found %d\n", version);
  for (int i = 0; i < saves; ++i) {
    ++version;
    SaveOptions options;
    options.max_file_bytes = 400;
    options.metadata = {{"version", str(version)}};
    const std::vector<TensorPart> parts =
        parts_on(kMeshes[static_cast<size_t>(version) % kMeshes.size()], whole_tensors(version));
    if (version % 2 == 0) {
      save_parts(folder, parts, options);
    } else {
      save_parts_async(folder, parts, options)->wait();
    }
    if (get_rank() == 0) std::printf("saved %d\n", version);
    std::fflush(stdout);
  }
}
