// What a profile records, how it is added up, and the trace that it writes.
#include "core/profiler/profiler.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/io/gzip.h"
#include "core/io/read_file.h"
#include "rushlight.h"
#include "tests/environment_guard.h"
#include "tests/temporary_folder.h"

using namespace rush;
using profiler::EventKind;
using profiler::Profile;
using profiler::Schedule;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;

namespace {

nlohmann::json events_of(const std::string& path) { return nlohmann::json::parse(file_content(path))["traceEvents"]; }

void train(nn::Linear& net, optim::SGD& optimizer, const Tensor& x) {
  const record_function range("train");
  optimizer.zero_grad();
  net(x).relu().sum().backward();
  optimizer.step();
}

}  // namespace

TEST_CASE("a profile sees what a compiled function calls, and its loops") {
  const NoGradGuard no_grad;
  const Tensor x = rand({8, 8});
  auto compiled = compile([](const Tensor& in) { return in.matmul(in).mul(2).exp(); });
  for (int i = 0; i < 3; ++i) compiled(x);
  Profile profile;
  compiled(x);
  profile.stop();
  const std::string table = profile.key_averages().table();
  CAPTURE(table);
  CHECK(table.find("aten::mm") != table.npos);
  CHECK(table.find("fused(") != table.npos);
}

TEST_CASE("a profile counts calls and times, those within others too; without one nothing is recorded") {
  const Tensor x = ones({8, 8});
  CHECK_FALSE(profiler::is_recording());
  x.add(x);
  Profile profile;
  CHECK(profiler::is_recording());
  for (int i = 0; i < 3; ++i) {
    const record_function range("outer");
    x.mul(x);
    einsum("ij,jk->ik", {x, x});
  }
  profile.stop();
  CHECK_FALSE(profiler::is_recording());
  x.add(x);
  const auto averages = profile.key_averages();
  CHECK(averages.find("aten::add.Tensor") == nullptr);
  const profiler::Average *mul = averages.find("aten::mul.Tensor"), *outer = averages.find("outer"),
                          *einsum = averages.find("aten::einsum"), *bmm = averages.find("aten::bmm");
  REQUIRE(mul);
  REQUIRE(outer);
  REQUIRE(einsum);
  REQUIRE(bmm);
  CHECK(mul->count == 3);
  CHECK(outer->kind == EventKind::Range);
  CHECK(outer->cpu_time_total >= mul->cpu_time_total + einsum->cpu_time_total);
  CHECK(outer->self_cpu_time_total ==
        doctest::Approx(outer->cpu_time_total - mul->cpu_time_total - einsum->cpu_time_total).epsilon(1e-6));
  CHECK(einsum->self_cpu_time_total < einsum->cpu_time_total);
  double self = 0;
  for (const auto& each : averages) self += each.self_cpu_time_total;
  CHECK(self == doctest::Approx(outer->cpu_time_total).epsilon(1e-6));
  const std::string table = averages.table("cpu_time_total", 2);
  CHECK(table.find("outer") != table.npos);
  CHECK(table.find("aten::einsum") != table.npos);
  CHECK(table.find("aten::mul") == table.npos);  // the third
  CHECK(table.find("Self CPU time total: ") != table.npos);
  CHECK_THROWS_AS(averages.table("colour"), ValueError);
  CHECK(averages.table("count", 2, 0).find("...") != std::string::npos);
}

TEST_CASE("a call is one event, whether a derivative is recorded or not, and also one that throws") {
  const Tensor x = ones({4, 4}).requires_grad_(), y = ones({3, 3});
  Profile profile;
  const Tensor z = x * 2;
  CHECK_THROWS_AS(x.mm(y), ValueError);
  {
    const InferenceMode guard;
    y* y;
  }
  profile.stop();
  const auto averages = profile.key_averages();
  REQUIRE(averages.find("aten::mul.Tensor"));
  CHECK(averages.find("aten::mul.Tensor")->count +
            (averages.find("aten::mul.Scalar") ? averages.find("aten::mul.Scalar")->count : 0) ==
        2);
  CHECK(averages.find("aten::mm")->count == 1);
}

TEST_CASE("a range that outlives its profile is in no other") {
  auto first = std::make_unique<Profile>();
  auto range = std::make_unique<record_function>("older than the second profile");
  first->stop();
  first.reset();
  Profile second;
  ones({2}).add(1);
  range.reset();
  second.stop();
  CHECK(second.key_averages().find("older than the second profile") == nullptr);
  CHECK(second.key_averages().find("aten::ones") != nullptr);
}

TEST_CASE("forward calls and the nodes that belong to them are linked") {
  const TemporaryFolder folder;
  nn::Linear net(4, 2);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  const Tensor x = ones({3, 4});
  Profile profile;
  train(net, optimizer, x);
  profile.stop();
  profile.export_chrome_trace(folder / "trace.json");
  std::map<std::string, int64_t> sequence;
  std::multiset<int64_t> begun;
  std::set<int64_t> ended;
  for (const auto& event : events_of(folder / "trace.json")) {
    if (event["ph"] == "X" && event["args"].contains("Sequence number")) {
      sequence[event["name"]] = event["args"]["Sequence number"];
    }
    if (event["ph"] == "s") begun.insert(event["id"].get<int64_t>());
    if (event["ph"] == "f") ended.insert(event["id"].get<int64_t>());
  }
  REQUIRE(sequence.count("aten::relu"));
  CHECK(sequence["aten::relu"] == sequence["ReluBackward"]);
  CHECK(sequence["aten::sum"] == sequence["SumBackward"]);
  for (const int64_t node : begun) CHECK(begun.count(node) == 1);  // only the call that made it
  CHECK(begun.count(sequence["ReluBackward"]) == 1);
  CHECK(ended.count(sequence["ReluBackward"]) == 1);
  const auto averages = profile.key_averages();
  CHECK(averages.find("train")->count == 1);
  CHECK(averages.find("SumBackward")->kind == EventKind::Backward);
}

TEST_CASE("shapes, places and floating-point operations") {
  const Tensor a = ones({3, 4}), b = ones({4, 5}), image = ones({2, 3, 8, 8}), weight = ones({6, 3, 3, 3});
  Profile profile({.record_shapes = true, .with_stack = true, .with_flops = true});
  a.mm(b);
  b.t().mm(a.t());
  conv2d(image, weight);
  conv_transpose2d(image, weight.transpose(0, 1));
  profile.stop();
  const auto whole = profile.key_averages(), by_shape = profile.key_averages(true);
  CHECK(whole.find("aten::mm")->count == 2);
  CHECK(whole.find("aten::mm")->shapes.empty());
  CHECK(whole.find("aten::mm")->flops == 2 * (2 * 3 * 4 * 5));
  CHECK(whole.find("aten::convolution")->flops == 2.0 * (2 * 6 * 6 * 6) * (3 * 3 * 3));
  std::set<std::string> shapes;
  for (const auto& each : by_shape) {
    if (each.name == "aten::mm") shapes.insert(each.shapes);
  }
  CHECK(shapes == std::set<std::string>{"[[3, 4], [4, 5]]", "[[5, 4], [4, 3]]"});
  CHECK(whole.table().find("GFLOP/s") != std::string::npos);
  CHECK(by_shape.table().find("Input Shapes") != std::string::npos);
}

TEST_CASE("a place that calls often is looked up once") {
  const Tensor a = ones({2});
  Profile profile({.with_stack = true});
  const std::clock_t start = std::clock();
  for (int i = 0; i < 2000; ++i) a.neg();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  profile.stop();
  CHECK(seconds < 1);  // a search of all exported symbols for each frame takes seconds
}

TEST_CASE("a call that is refused is refused as without a profile") {
  const auto message = [] {
    try {
      tensor(1.0).mm(ones({4, 5}));
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.substr(0, text.find(" [called"));  // not from which line
    }
    return std::string();
  };
  const std::string expected = message();
  CHECK_FALSE(expected.empty());
  const Profile profile({.record_shapes = true, .with_flops = true});
  CHECK(message() == expected);
}

TEST_CASE("a schedule records some steps, and hands each cycle over") {
  const TemporaryFolder folder;
  std::vector<std::vector<std::string>> cycles;
  const auto note = [&](Profile& profile) {
    cycles.emplace_back();
    for (const auto& each : profile.key_averages()) cycles.back().push_back(each.name + str(" ", each.count));
    profile.export_chrome_trace(folder / "trace.json");
    for (const auto& event : events_of(folder / "trace.json")) {
      const std::string name = event["name"];
      if (name.starts_with("ProfilerStep")) cycles.back().push_back(name);
    }
  };
  const Tensor x = ones({2});
  Profile profile({.schedule = Schedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 1},
                   .on_trace_ready = note});
  for (int step = 0; step < 12; ++step) {
    x.exp();
    profile.step();
  }
  profile.stop();
  REQUIRE(cycles.size() == 2);
  CHECK(cycles[0] == std::vector<std::string>{"ProfilerStep* 2", "aten::exp 2", "ProfilerStep#3", "ProfilerStep#4"});
  CHECK(cycles[1] == std::vector<std::string>{"ProfilerStep* 2", "aten::exp 2", "ProfilerStep#7", "ProfilerStep#8"});
  CHECK_THROWS_AS(Profile({.schedule = Schedule{.active = 0}}), ValueError);
}

TEST_CASE("what is called for each cycle may throw, and may stop the profile") {
  const Tensor x = ones({2});
  std::vector<int64_t> counts;
  const auto fail_first = [&](Profile& profile) {
    counts.push_back(profile.key_averages().find("aten::exp")->count);
    if (counts.size() == 1) RUSH_THROW(ValueError, "of the program");
  };
  Profile failing({.schedule = Schedule{.active = 1, .repeat = 3}, .on_trace_ready = fail_first});
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i <= step; ++i) x.exp();
    if (step > 0) {
      failing.step();
    } else {
      CHECK_THROWS_AS(failing.step(), ValueError);
    }
  }
  CHECK(counts == std::vector<int64_t>{1, 2, 3});
  failing.stop();

  int calls = 0;
  const auto stop = [&](Profile& profile) {
    ++calls;
    profile.stop();
  };
  Profile stopped({.schedule = Schedule{.active = 1}, .on_trace_ready = stop});
  stopped.step();
  stopped.step();
  CHECK(calls == 1);
  CHECK_FALSE(profiler::is_recording());
}

TEST_CASE("threads are told apart, and one profile records at a time") {
  const TemporaryFolder folder;
  Profile profile({.trace = folder / "trace.json.gz"});
  CHECK_THROWS_WITH_AS(Profile(), doctest::Contains("stop() it first"), Error);
  {
    const testing::EnvironmentGuard of_all("RUSH_PROFILE",
                                           "");  // then it may be the whole program's, which has no stop()
    CHECK_THROWS_WITH_AS(Profile(), doctest::Contains("run without it"), Error);
  }
  const auto work = [] {
    const Tensor x = ones({4});
    for (int i = 0; i < 3000; ++i) x.neg();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  profile.stop();
  CHECK(profile.key_averages().find("aten::neg")->count == 12000);
  const std::string bytes = file_content(folder / "trace.json.gz");
  const std::span compressed(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  REQUIRE(io::GzipReader::recognises(compressed));
  CHECK(bytes.size() > 10000);
  Profile after;  // the first one is over
  CHECK_THROWS_AS(profile.export_chrome_trace(folder / "again.json"), ValueError);
}

TEST_CASE("a long recording keeps no more events than it was allowed, and counts all") {
  const TemporaryFolder folder;
  const Tensor x = ones({4});
  Profile profile({.with_devices = false, .max_events = 100});
  for (int i = 0; i < 5000; ++i) x.neg();
  profile.stop();
  CHECK(profile.key_averages().find("aten::neg")->count == 5000);
  CHECK(profile.dropped_events() == 4900);
  profile.export_chrome_trace(folder / "trace.json");
  int64_t events = 0;
  for (const auto& event : events_of(folder / "trace.json")) events += event["ph"] == "X";
  CHECK(events == 100);
  CHECK_THROWS_AS(profile.export_chrome_trace(folder / "no/such/folder.json"), IOError);
  CHECK_THROWS_AS(Profile({.trace = folder / "no/such/folder.json"}), IOError);
  CHECK_FALSE(profiler::is_recording());
}

TEST_CASE("a forked child is not recorded, and may record for itself") {
  const Tensor x = ones({4});
  Profile profile;
  x.neg();
  const pid_t child = fork();
  if (child == 0) {
    x.neg();
    if (profiler::is_recording()) _exit(1);
    Profile own;
    x.neg();
    profile.stop();  // the parent's goes on, and the child's
    x.neg();
    own.stop();
    _exit(own.key_averages().find("aten::neg")->count == 2 ? 0 : 2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  profile.stop();
  CHECK(profile.key_averages().find("aten::neg")->count == 1);
}
