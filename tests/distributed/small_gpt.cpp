// The net that others split learns, so that a wrong gradient shows in its losses.
#include "tests/distributed/small_gpt.h"

#include <doctest/doctest.h>

TEST_CASE("the small GPT learns its sequences on one process") {
  const rush::testing::TrainingRun run = rush::testing::train_small_gpt_alone(50);
  CHECK(run.losses.back() < 0.5 * run.losses.front());
}
