#include "examples/progress.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"
#include "tests/text.h"

using namespace examples;
using rush::testing::count;

namespace {

ProgressState half_way() { return {"epoch 1/2", "images", 30000, 60000, 10, {{"loss", 0.0412}, {"acc", 98.714, 2}}}; }

// What a Progress with these options prints to a file.
std::string progress_output(ProgressOptions options, void (*use)(Progress&)) {
  rush::testing::TemporaryFolder folder;
  std::string path = folder / "out";
  options.out = std::fopen(path.c_str(), "w");
  REQUIRE(options.out);
  {
    Progress progress("epoch", 100, "images", options);
    use(progress);
  }
  std::fclose(options.out);
  return rush::testing::file_content(path);
}

}  // namespace

TEST_CASE("progress_text: figures, rate and the time left; the time taken at the end") {
  ProgressState state = half_way();
  CHECK(progress_text(state) == "epoch 1/2   50%  loss 0.0412  acc 98.71  3,000 images/s  0:10 left");
  state.done = state.total;
  state.elapsed = 3723;
  CHECK(progress_text(state) == "epoch 1/2  100%  loss 0.0412  acc 98.71  16 images/s  1:02:03");
}

TEST_CASE("progress_text: nothing done, nothing to do, slower than anyone waits") {
  CHECK(progress_text({"a", "b", 0, 10, 1, {}}) == "a    0%");
  CHECK(progress_text({"a", "b", 0, 0, 1, {}}) == "a  100%");
  CHECK(progress_text({"a", "b", 1, 1000000000, 1, {}}) == "a    0%  1 b/s  ? left");
}

TEST_CASE("progress_bar: fits the terminal") {
  for (int width = 0; width < 200; ++width) {
    std::string line = progress_bar(half_way(), width);
    // Characters of the bar take three bytes in UTF-8 but one column.
    size_t columns = 0;
    for (char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    CAPTURE(width);
    CHECK(columns <= static_cast<size_t>(std::max(0, width - 1)));
  }
}

TEST_CASE("Progress: a file gets plain lines at intervals and the last state") {
  ProgressOptions options;
  options.terminal = false;
  options.line_interval = 3600;
  std::string text = progress_output(options, [](Progress& progress) {
    for (int i = 1; i <= 100; ++i) progress.update(i, {{"loss", 1.0 / i}});
    progress.note("a note");
    progress.finish();
    progress.finish();
  });
  CHECK(count(text, "\n") == 2);
  CHECK(text.find("a note\nepoch  100%  loss 0.0100") == 0);
  CHECK(text.find('\r') == std::string::npos);

  options.line_interval = 0;
  CHECK(count(progress_output(options, [](Progress& p) { p.update(1, {}), p.update(2, {}); }), "\n") == 2);
}

TEST_CASE("Progress: a terminal gets one line, redrawn, ended even without finish") {
  ProgressOptions options;
  options.terminal = true;
  std::string text = progress_output(options, [](Progress& progress) {
    for (int i = 1; i <= 100; ++i) progress.update(i, {});
    progress.note("a note");
  });
  CHECK(count(text, "\n") == 2);
  CHECK(text.find("\r\033[Ka note\n") != std::string::npos);
  CHECK(text.back() == '\n');
}
