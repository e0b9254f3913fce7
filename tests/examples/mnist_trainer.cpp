#include "examples/mnist/trainer.h"

#include <doctest/doctest.h>

#include <string>

#include "core/io/safetensors.h"
#include "tests/environment_guard.h"
#include "tests/temporary_folder.h"

using namespace examples;
using rush::testing::EnvironmentGuard;
using rush::testing::TemporaryFolder;

TEST_CASE("load_digits: without MNIST it says where it looked, and draws") {
  TemporaryFolder folder;
  const EnvironmentGuard data("RUSH_DATA", folder / "shared"), house("RUSH_ROOT", folder / "house");
  const DigitSets sets = load_digits("", 1, 30, 20);
  CHECK(sets.train.images.sizes() == rush::IntArrayRef{30, 1, 28, 28});
  CHECK(sets.test.targets.sizes() == rush::IntArrayRef{20});
  CHECK(sets.train.images.scalar_type() == rush::kFloat32);
  CHECK(sets.train.images.max().item<float>() <= 1);
  CHECK(!rush::equal(sets.train.images.narrow(0, 0, 20), sets.test.images));
  CHECK(sets.description.find("No MNIST in " + folder / "shared/mnist, " +
                              folder / "house/data/mnist (`./rush fetch mnist` downloads it)") == 0);
  CHECK(sets.description.find('\n') == std::string::npos);
}

TEST_CASE("load_digits: a named folder without MNIST is an error, not a reason to look elsewhere or to draw") {
  TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(load_digits(folder.path(), 1, 30, 20),
                       doctest::Contains((folder.path() + ": there is no train-images-idx3-ubyte").c_str()),
                       rush::IOError);
  CHECK_THROWS_AS(load_digits(folder / "nowhere", 1, 30, 20), rush::IOError);
}

TEST_CASE("load_digits: a damaged MNIST is an error, not a reason to draw") {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", "not an IDX file");
  CHECK_THROWS_WITH_AS(load_digits(folder.path(), 1), doctest::Contains("train-images-idx3-ubyte: not an IDX file"),
                       rush::IOError);
}

TEST_CASE("Trainer: goes on from a checkpoint of the same settings only, with the whole log") {
  TemporaryFolder folder;
  const EnvironmentGuard data("RUSH_DATA", folder.path()), house("RUSH_ROOT", folder.path());
  rush::manual_seed(1);
  const DigitSets sets = load_digits("", 1, 96, 20), fewer = load_digits("", 1, 64, 20);
  const TrainerOptions options{/*epochs=*/2, /*batch_size=*/16,     /*lr=*/8e-3,
                               rush::kCPU,   folder / "checkpoint", 4};
  RunLog whole_log, other_log;
  Trainer whole(sets, options, whole_log);
  CHECK(!whole.resume());
  whole.run_epoch();
  Trainer other(sets, options, other_log);
  REQUIRE(other.resume());
  CHECK(other.epoch() == 1);
  whole.run_epoch();  // draws on: the generator is shared
  REQUIRE(other.resume());
  CHECK(other.epoch() == 2);
  CHECK(other.step() == 12);
  for (const char* name : {"loss/train", "accuracy/train", "loss/test", "learning rate", "samples a second/images"}) {
    const std::vector<ChartPoint> curve = other_log.curve(name), expected = whole_log.curve(name);
    REQUIRE(curve.size() == (std::string(name) == "loss/test" ? 2 : 12));
    for (size_t i = 0; i < curve.size(); ++i) {
      CHECK(curve[i].x == expected[i].x);
      CHECK(curve[i].y == expected[i].y);
    }
    CHECK(curve.back().x == 12);
  }

  TrainerOptions longer = options;
  longer.epochs = 3;
  CHECK_THROWS_WITH_AS(Trainer(sets, longer, other_log).resume(), doctest::Contains("epochs: saved with '2', now '3'"),
                       rush::ValueError);
  CHECK_THROWS_WITH_AS(Trainer(fewer, options, other_log).resume(),
                       doctest::Contains("digits: saved with '96 with checksum"), rush::ValueError);
}

TEST_CASE("Trainer: compiled steps end in the same weights") {
  TemporaryFolder folder;
  const EnvironmentGuard data("RUSH_DATA", folder.path()), house("RUSH_ROOT", folder.path());
  const EnvironmentGuard graphs("RUSH_COMPILE_DEBUG", folder / "graphs");
  for (const bool compile : {false, true}) {
    rush::manual_seed(1);
    const DigitSets sets = load_digits("", 1, 96, 20);
    RunLog log;
    Trainer trainer(sets, {.epochs = 2, .batch_size = 16, .lr = 8e-3, .device = rush::kCPU, .compile = compile}, log);
    while (trainer.epoch() < 2) trainer.run_epoch();
    trainer.save(folder / (compile ? "compiled" : "plain"));
    CHECK(std::filesystem::exists(folder / "graphs") == compile);
  }
  CHECK(rush::testing::file_content(folder / "compiled") == rush::testing::file_content(folder / "plain"));
}

TEST_CASE("Trainer: learns drawn digits, and saves what it learned") {
  TemporaryFolder folder;
  const EnvironmentGuard data("RUSH_DATA", folder.path()), house("RUSH_ROOT", folder.path());
  rush::manual_seed(1);
  const DigitSets sets = load_digits("", 1, 1600, 200);
  RunLog log;
  Trainer trainer(sets, {/*epochs=*/2, /*batch_size=*/32, /*lr=*/8e-3, rush::kCPU}, log);
  while (trainer.epoch() < 2) trainer.run_epoch();
  CHECK(log.curve("loss/train").size() == 100);
  const double accuracy = log.curve("accuracy/test").back().y;
  CHECK(accuracy > 0.8);

  const Evaluation test = trainer.evaluate();
  CHECK(test.accuracy == accuracy);
  const rush::Tensor right = test.predicted.eq(sets.test.targets).to(rush::kFloat64).mean();
  CHECK(right.item<double>() == doctest::Approx(test.accuracy));
  CHECK(test.confidence.min().item<float>() >= 0.1f);

  trainer.save(folder / "net.safetensors");
  const rush::io::SafetensorsFile file(folder / "net.safetensors");
  int64_t weights = 0;
  for (const auto& parameter : Net()->named_parameters()) {
    REQUIRE(file.find(parameter.key()) != nullptr);
    weights += file.read(parameter.key()).numel();
  }
  CHECK(weights == trainer.parameter_count());
  CHECK(file.read("bn1.running_var").numel() == 16);
}
