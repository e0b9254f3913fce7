#include "examples/mnist/trainer.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/io/safetensors.h"
#include "tests/temporary_folder.h"

using namespace examples;
using rush::testing::TemporaryFolder;

namespace {

// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("load_digits: without MNIST it says where it looked, and draws") {
  TemporaryFolder folder;
  const Environment data("RUSH_DATA", folder / "shared"), house("RUSH_ROOT", folder / "house");
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

TEST_CASE("Trainer: goes on from a checkpoint of the same settings only, with the whole history") {
  TemporaryFolder folder;
  const Environment data("RUSH_DATA", folder.path()), house("RUSH_ROOT", folder.path());
  rush::manual_seed(1);
  const DigitSets sets = load_digits("", 1, 96, 20), fewer = load_digits("", 1, 64, 20);
  const TrainerOptions options{/*epochs=*/2, /*batch_size=*/16,     /*lr=*/8e-3,
                               rush::kCPU,   folder / "checkpoint", 4};
  Trainer whole(sets, options);
  CHECK(!whole.resume());
  whole.run_epoch();
  Trainer other(sets, options);
  REQUIRE(other.resume());
  CHECK(other.epoch() == 1);
  whole.run_epoch();  // draws on: the generator is shared
  REQUIRE(other.resume());
  CHECK(other.epoch() == 2);
  REQUIRE(other.history().train_loss.size() == 12);
  for (size_t i = 0; i < 12; ++i) {
    CHECK(other.history().train_loss[i].x == whole.history().train_loss[i].x);
    CHECK(other.history().train_loss[i].y == whole.history().train_loss[i].y);
  }
  CHECK(other.history().test_loss.back().x == 2);

  TrainerOptions longer = options;
  longer.epochs = 3;
  CHECK_THROWS_WITH_AS(Trainer(sets, longer).resume(), doctest::Contains("epochs: saved with '2', now '3'"),
                       rush::ValueError);
  CHECK_THROWS_WITH_AS(Trainer(fewer, options).resume(), doctest::Contains("digits: saved with '96 with checksum"),
                       rush::ValueError);
}

TEST_CASE("Trainer: learns drawn digits, and saves what it learned") {
  TemporaryFolder folder;
  const Environment data("RUSH_DATA", folder.path()), house("RUSH_ROOT", folder.path());
  rush::manual_seed(1);
  const DigitSets sets = load_digits("", 1, 1600, 200);
  Trainer trainer(sets, {/*epochs=*/2, /*batch_size=*/32, /*lr=*/8e-3, rush::kCPU});
  while (trainer.epoch() < 2) trainer.run_epoch();
  const History& history = trainer.history();
  REQUIRE(history.train_loss.size() == 100);
  CHECK(history.train_loss.back().x == 2);
  CHECK(history.test_accuracy.back().y > 0.8);

  const Evaluation test = trainer.evaluate();
  CHECK(test.accuracy == history.test_accuracy.back().y);
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
