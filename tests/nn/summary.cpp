#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "nn/summary/summary_writer.h"
#include "rushlight.h"
#include "tests/io/decoded_png.h"
#include "tests/io/file_size_limit.h"
#include "tests/nn/event_reader.h"
#include "tests/not_finite.h"

using namespace rush;
using rush::testing::FileSizeLimit;
using rush::testing::kInf;
using rush::testing::kNan;
using rush::testing::Message;
using rush::testing::read_events;
using rush::testing::TemporaryFolder;

namespace {

// The only Summary.Value of an event.
Message value_of(const Message& event) {
  const Message summary = event.message(5);
  CHECK(summary.all(1).size() == 1);
  return summary.message(1);
}

struct TwoLayersImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::Linear fc{nullptr};
  TwoLayersImpl() {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 2, 3)));
    fc = register_module("fc", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) { return fc(relu(conv(x)).flatten(1)); }
};
RUSH_MODULE(TwoLayers);

void log_histogram_and_image(SummaryWriter& writer) {
  writer.add_histogram("weights", tensor({-1.0, 0.0, 0.5, 0.5, 2.0, kNan, kInf}), 3);
  writer.add_image("red", tensor({1.0f, 0.0f, 0.0f}).view({3, 1, 1}).expand({3, 2, 4}), 4);
}

}  // namespace

TEST_CASE("the reader's checksum is CRC-32C") { CHECK(rush::testing::crc32c("123456789") == 0xe3069283u); }

TEST_CASE("SummaryWriter: scalars are in the file once they are added, with any value and step") {
  const TemporaryFolder folder;
  SummaryWriter writer(folder / "run");
  const int64_t last_step = std::numeric_limits<int64_t>::max();
  writer.add_scalar("loss/train", 0.25, 7, 1234.5);
  writer.add_scalar("loss/train", kNan, -1);
  writer.add_scalar("loss/train", -kInf, last_step);
  // Neither flushed nor closed: what a killed process leaves.
  const std::vector<Message> events = read_events(folder / "run");
  REQUIRE(events.size() == 3);
  CHECK(events[0].float64(1) == 1234.5);
  CHECK(events[0].integer(2) == 7);
  CHECK(value_of(events[0]).text(1) == "loss/train");
  CHECK(value_of(events[0]).float32(2) == 0.25f);
  CHECK(std::abs(events[1].float64(1) - summary::wall_time()) < 600);
  CHECK(events[1].integer(2) == -1);
  CHECK(std::isnan(value_of(events[1]).float32(2)));
  CHECK(events[2].integer(2) == last_step);
  CHECK(value_of(events[2]).float32(2) == -std::numeric_limits<float>::infinity());
}

TEST_CASE("SummaryWriter: a histogram counts finite values by TensorFlow's buckets") {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path());
  log_histogram_and_image(writer);
  writer.add_histogram("none", tensor({kNan, kInf}));
  writer.add_histogram("extreme", tensor({-1e300, 1e300}, kFloat64));
  writer.add_histogram("whole", arange(5, kInt64));
  const std::vector<Message> events = read_events(folder.path());
  const Message histogram = value_of(events[0]).message(5);
  CHECK(histogram.float64(1) == -1);
  CHECK(histogram.float64(2) == 2);
  CHECK(histogram.float64(3) == 5);
  CHECK(histogram.float64(4) == 2);
  CHECK(histogram.float64(5) == doctest::Approx(5.5));
  const std::vector<double> limits = histogram.float64s(6), counts = histogram.float64s(7);
  REQUIRE(limits.size() == counts.size());
  CHECK(counts.front() == 0);
  CHECK(limits.front() <= -1);
  double total = 0;
  for (size_t i = 1; i < limits.size(); ++i) {
    double expected = 0;
    for (const double value : {-1.0, 0.0, 0.5, 0.5, 2.0}) expected += limits[i - 1] <= value && value < limits[i];
    CHECK(counts[i] == expected);
    CHECK(limits[i - 1] < limits[i]);
    total += counts[i];
  }
  CHECK(total == 5);
  CHECK(value_of(events[2]).message(5).float64(3) == 0);
  CHECK(value_of(events[2]).message(5).float64s(7).empty());
  const std::vector<double> extreme = value_of(events[3]).message(5).float64s(7);
  REQUIRE(!extreme.empty());
  CHECK(extreme.front() == 1);
  CHECK(extreme.back() == 1);
  CHECK(value_of(events[4]).message(5).float64(4) == 10);
  CHECK_THROWS_AS(writer.add_histogram("complex", zeros({2}, kComplexFloat)), TypeError);
}

TEST_CASE("SummaryWriter: images of both dtypes and all formats") {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path());
  log_histogram_and_image(writer);
  const Tensor grey = tensor({-1.0, 0.5, 2.0, kNan}).view({2, 2}), bytes = arange(24, kUInt8).view({2, 3, 4});
  writer.add_image("grey", grey, 0, {}, "HW");
  writer.add_image("bytes", bytes, 0, {}, "HWC");
  const std::vector<Message> events = read_events(folder.path());
  const Message red = value_of(events[1]).message(4);
  CHECK(red.integer(1) == 2);
  CHECK(red.integer(2) == 4);
  CHECK(red.integer(3) == 3);
  const auto pixels = [&](size_t i) {
    return rush::testing::decode_png(value_of(events[i]).message(4).text(4)).pixels;
  };
  CHECK(pixels(1) ==
        std::vector<uint8_t>{255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0});
  CHECK(pixels(2) == std::vector<uint8_t>{0, 128, 255, 0});
  CHECK(pixels(3) == std::vector<uint8_t>(bytes.data_ptr<uint8_t>(), bytes.data_ptr<uint8_t>() + 24));
  CHECK_THROWS_WITH_AS(writer.add_image("x", grey), "add_image: CHW names 3 dimensions, the image has shape (2, 2)",
                       ValueError);
  CHECK_THROWS_AS(writer.add_image("x", zeros({5, 2, 2})), ValueError);
  CHECK_THROWS_AS(writer.add_image("x", zeros({3, 0, 2})), ValueError);
  CHECK_THROWS_AS(writer.add_image("x", grey, 0, {}, "WH"), ValueError);
  CHECK_THROWS_AS(writer.add_image("x", zeros({3, 2, 2}, kInt64)), TypeError);
}

// tests/event_files.py reads what this leaves in the folder that RUSH_SUMMARIES names.
TEST_CASE("SummaryWriter: text, hyperparameters and graph") {
  const TemporaryFolder own;
  const char* named = std::getenv("RUSH_SUMMARIES");
  const std::string folder = named ? named : own.path();
  SummaryWriter writer(folder + "/run");
  writer.add_scalar("loss", 0.5, int64_t{1} << 40);
  writer.add_scalar("loss", kNan, (int64_t{1} << 40) + 1);
  log_histogram_and_image(writer);
  writer.add_text("note", "some **bold** text");
  writer.add_hparams({{"rate", 0.125}, {"layers", 3}, {"name", "small"}, {"graph", false}}, {{"final/loss", 0.75}}, ".",
                     9);
  const TwoLayers net;
  writer.add_graph(*net, net->forward(zeros({1, 1, 4, 4})));
  writer.add_scalars("both", {{"train", 1}, {"test", 2}}, 5);
  writer.close();

  const std::vector<Message> events = read_events(folder + "/run");
  REQUIRE(events.size() == 8);
  const Message text = value_of(events[4]);
  CHECK(text.text(1) == "note/text_summary");
  CHECK(text.message(9).message(1).text(1) == "text");
  CHECK(text.message(8).text(8) == "some **bold** text");
  const Message hparams = events[5].message(5);
  CHECK(hparams.all(1).size() == 3);
  CHECK(Message(hparams.all(1)[1]).text(1) == "_hparams_/session_start_info");
  CHECK(value_of(events[6]).float32(2) == 0.75f);
  CHECK(events[6].integer(2) == 9);

  std::set<std::string> names;
  const Message graph(events[7].text(4));
  for (const std::string& node : graph.all(1)) CHECK(names.insert(Message(node).text(1)).second);
  for (const char* name : {"output", "conv/weight", "conv/bias", "fc/weight", "fc/bias"}) CHECK(names.count(name) == 1);
  for (const std::string& node : graph.all(1)) {
    for (const std::string& input : Message(node).all(3)) CHECK(names.count(input) == 1);
    if (Message(node).text(2) == "Convolution") CHECK(Message(node).text(1).starts_with("conv/"));
  }
  CHECK(value_of(read_events(folder + "/run/both_test")[0]).float32(2) == 2);
  CHECK_THROWS_WITH_AS(writer.add_scalar("loss", 1), doctest::Contains("an event was added after close()"), Error);
  CHECK_THROWS_AS(SummaryWriter(own / "other").add_graph(*net, zeros({1})), ValueError);
}

TEST_CASE("SummaryWriter: a full disk is an IOError of flush, and the file goes on where it broke off") {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path());
  {
    const FileSizeLimit limit(1000);
    for (int64_t step = 0; step < 100; ++step) writer.add_scalar("loss", 1, step);
    CHECK_THROWS_WITH_AS(writer.flush(), doctest::Contains("cannot write: File too large"), IOError);
    CHECK(read_events(folder.path(), /*may_break_off=*/true).size() < 100);
  }
  writer.add_scalar("loss", 1, 100);
  writer.flush();
  const std::vector<Message> events = read_events(folder.path());
  REQUIRE(events.size() == 101);
  for (size_t i = 0; i < events.size(); ++i) CHECK(events[i].integer(2) == static_cast<int64_t>(i));
  const std::string file = folder.write("file", "");
  CHECK_THROWS_WITH_AS(SummaryWriter(file + "/below"), doctest::Contains("cannot make this folder"), IOError);
}

TEST_CASE("SummaryWriter: two writers in a folder have a file each, and the second may purge the first's steps") {
  const TemporaryFolder folder;
  SummaryWriter first(folder.path()), second(folder.path(), SummaryWriterOptions().purge_step(5).filename_suffix(".b"));
  CHECK(folder.file_count() == 2);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".b") {
      std::filesystem::create_directory(folder / "b");
      std::filesystem::rename(entry.path(), folder / "b/" + entry.path().filename().string());
      break;
    }
  }
  const std::vector<Message> events = read_events(folder / "b");
  REQUIRE(events.size() == 1);
  CHECK(events[0].integer(2) == 5);
  CHECK(events[0].message(7).integer(1) == 1);
}

TEST_CASE("SummaryWriter: a run whose folder cannot be made is an IOError, and the others go on") {
  const TemporaryFolder folder;
  std::ofstream(folder / "loss_train") << "in the way";
  SummaryWriter writer(folder / "");
  CHECK_THROWS_AS(writer.add_scalars("loss", {{"train", 1.0}}), IOError);
  writer.add_scalar("loss", 2.0);
  writer.flush();
  writer.close();
}

TEST_CASE("SummaryWriter: threads log side by side") {
  const TemporaryFolder folder;
  SummaryWriter writer(folder.path());
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&writer, thread] {
      for (int64_t step = 0; step < 500; ++step) writer.add_scalar(str(thread), static_cast<double>(step), step);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> next(4);
  for (const Message& event : read_events(folder.path())) {
    CHECK(event.integer(2) == next.at(static_cast<size_t>(std::stoi(value_of(event).text(1))))++);
  }
  CHECK(next == std::vector<int64_t>(4, 500));
}
