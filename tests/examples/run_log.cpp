#include "examples/run_log.h"

#include <doctest/doctest.h>

#include <cmath>

#include "optim/state/checkpoint.h"
#include "rushlight.h"
#include "tests/nn/event_reader.h"

using namespace examples;
using rush::testing::file_content;
using rush::testing::Message;
using rush::testing::TemporaryFolder;

namespace {

RunLog log_in(const TemporaryFolder& folder, const std::string& events) {
  return RunLog("test", {folder / events, {{"seed", "7"}, {"graph", "false"}, {"name", "a<b"}}}, folder.path(),
                rush::kCPU);
}

}  // namespace

TEST_CASE("RunLog: what is logged is in the report and in the events") {
  const TemporaryFolder folder;
  RunLog log = log_in(folder, "events");
  for (int64_t step = 1; step <= 3; ++step) {
    log.add(step, "loss/train", 1.0 / static_cast<double>(step));
    log.add_step(step, 0.5, "images", 8, /*seconds=*/0.25);
  }
  log.add_text("What it writes", "once < upon");
  log.report.headline = "good";
  log.finish();

  const std::string page = file_content(folder / "report.html");
  for (const char* part :
       {"<h1>good</h1>", ">loss</text>", ">learning rate</text>", ">samples a second</text>", ">memory (GiB)</text>",
        "train, step 3: 0.333333", "images, step 1: 32", "once &lt; upon", "<dd>a&lt;b</dd>", "<dt>processor</dt>"}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
  CHECK(page.find(">loss</text>") < page.find(">learning rate</text>"));

  std::vector<std::string> tags;
  for (const Message& event : rush::testing::read_events(folder / "events")) {
    for (const std::string& value : event.message(5).all(1)) tags.push_back(Message(value).text(1));
  }
  CHECK(tags == std::vector<std::string>{"settings/text_summary", "loss/train", "learning rate",
                                         "samples a second/images", "memory (GiB)/most", "loss/train", "learning rate",
                                         "samples a second/images", "memory (GiB)/most", "loss/train", "learning rate",
                                         "samples a second/images", "memory (GiB)/most", "What it writes/text_summary",
                                         "_hparams_/experiment", "_hparams_/session_start_info",
                                         "_hparams_/session_end_info", "final/loss/train"});
}

TEST_CASE("RunLog: a run that goes on has the curves of its checkpoint, and hides later events") {
  const TemporaryFolder folder;
  RunLog first = log_in(folder, "first"), second = log_in(folder, "second");
  rush::Checkpoint().add("log", first).save(folder / "empty");
  first.add(1, "loss/train", 3);
  first.add(2, "loss/train", NAN);
  rush::Checkpoint().add("log", first).save(folder / "checkpoint");
  first.add(3, "loss/train", 1);
  rush::Checkpoint().add("log", second).load(folder / "checkpoint");
  second.add(3, "loss/train", 2);
  const std::vector<ChartPoint> curve = second.curve("loss/train");
  REQUIRE(curve.size() == 3);
  CHECK(curve[0].y == 3);
  CHECK(std::isnan(curve[1].y));
  CHECK(curve[2].y == 2);
  const std::vector<Message> events = rush::testing::read_events(folder / "second");
  CHECK(events.at(0).integer(2) == 3);  // all from step 3 on is purged
  CHECK(events.at(0).has(7));
  rush::Checkpoint().add("log", second).load(folder / "empty");
  CHECK(second.curve("loss/train").empty());
}

TEST_CASE("RunLog: of a long curve, neighbours are averaged") {
  RunLog log;
  for (int64_t step = 1; step <= 20000; ++step) log.add(step, "loss/train", step % 2 ? 1 : 3);
  const std::vector<ChartPoint> curve = log.curve("loss/train");
  CHECK(curve.size() < 4096);
  CHECK(curve.front().y == 2);
  CHECK(curve.back().x == 20000);
  for (size_t i = 1; i < curve.size(); ++i) CHECK(curve[i - 1].x < curve[i].x);
}

TEST_CASE("RunLog: without folders nothing is written, and a folder that cannot be made is an IOError") {
  const TemporaryFolder folder;
  RunLog log;
  log.add(1, "loss/train", 3);
  log.finish();
  folder.write("file", "");
  CHECK_THROWS_AS(log_in(folder, "file/below"), rush::IOError);
  CHECK(folder.file_count() == 1);
}
