// The rules of advice, on sums that a recording may have.
#include "core/profiler/advice.h"

#include <doctest/doctest.h>

#include "core/profiler/facts.h"

using namespace rush;
using namespace rush::profiler;

namespace {

constexpr int64_t kMillisecond = 1'000'000;

// A hundred milliseconds in which the device had work all the time.
Facts busy() {
  Facts facts;
  facts.span = facts.busy = 100 * kMillisecond;
  facts.kernels = 1000;
  return facts;
}

std::string flaws(const Facts& facts) {
  std::string text;
  for (const Advice& advice : advice_on(facts)) text += advice.flaw + ";";
  return text;
}

}  // namespace

TEST_CASE("a device that is busy with what must be done needs no advice") {
  CHECK(flaws(busy()) == "");
  CHECK(to_text(advice_on(busy())).find("Nothing") == 0);
  CHECK(flaws(Facts()) == "");
}

TEST_CASE("an idle device has a cause: waits, the loader, or launches") {
  Facts facts = busy();
  facts.busy = 60 * kMillisecond;
  facts.kernels = 10'000;
  CHECK(flaws(facts) == "launches;");
  facts.waits = {{"aten::item", 2000, 30 * kMillisecond}};
  CHECK(flaws(facts) == "sync;");
  CHECK(advice_on(facts)[0].text.find("aten::item") == 0);
  facts.waits[0].count = 2;  // at the end of a run
  CHECK(flaws(facts) == "launches;");
  // On a slow host, where what lies between waits takes longer than a wait's end.
  facts.busy = 20 * kMillisecond;
  facts.kernels = 800;
  facts.waits[0].count = 400;
  CHECK(flaws(facts) == "sync;");
  facts.kernels = 8000;
  CHECK(flaws(facts) == "launches;");
  facts.busy = 60 * kMillisecond;
  facts.loader = 50 * kMillisecond;
  CHECK(flaws(facts) == "loader;");
  CHECK(advice_on(facts)[0].gain == doctest::Approx(0.4));  // no more than the device was idle
}

TEST_CASE("what a busy device does without need is named, above a twentieth of the time") {
  Facts facts = busy();
  facts.pageable = 4 * kMillisecond;
  CHECK(flaws(facts) == "");
  facts.pageable = 6 * kMillisecond;
  CHECK(flaws(facts) == "pageable;");
  facts.calls = {{"aten::linear", static_cast<int8_t>(kFloat32), 80 * kMillisecond}};
  CHECK(flaws(facts) == "float32;pageable;");  // the larger gain first
  facts.calls[0].name = "aten::lgamma";        // no product
  CHECK(flaws(facts) == "pageable;");
  facts.calls[0] = {"aten::linear", static_cast<int8_t>(kBFloat16), 80 * kMillisecond};
  facts.on_device["void nchwToNhwcKernel<...>"] = {10, 20 * kMillisecond};
  CHECK(flaws(facts) == "layout;pageable;");
  facts = busy();
  facts.calls = {{"aten::_softmax", -1, 10 * kMillisecond}, {"aten::bmm", -1, 30 * kMillisecond}};
  CHECK(flaws(facts) == "attention;");
  facts = busy();
  facts.small = 70 * kMillisecond;
  CHECK(flaws(facts) == "small kernels;");
}
