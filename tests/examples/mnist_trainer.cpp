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
  const DigitSets sets = load_digits(folder / "given", 1, 30, 20);
  CHECK(sets.train.images.sizes() == rush::IntArrayRef{30, 1, 28, 28});
  CHECK(sets.test.targets.sizes() == rush::IntArrayRef{20});
  CHECK(sets.train.images.scalar_type() == rush::kFloat32);
  CHECK(sets.train.images.max().item<float>() <= 1);
  CHECK(!rush::equal(sets.train.images.narrow(0, 0, 20), sets.test.images));
  CHECK(sets.description.find("no MNIST in " + folder / "given" + ", " + folder / "shared/mnist, " +
                              folder / "house/data/mnist (`./rush fetch mnist` downloads it)") == 0);
  CHECK(sets.description.find('\n') == std::string::npos);
}

TEST_CASE("load_digits: a damaged MNIST is an error, not a reason to draw") {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", "not an IDX file");
  CHECK_THROWS_WITH_AS(load_digits(folder.path(), 1), doctest::Contains("train-images-idx3-ubyte: not an IDX file"),
                       rush::IOError);
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
