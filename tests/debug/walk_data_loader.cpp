// The program that docs/walk_data_loader.md walks through: one worker loads the squares of 0 to 5, two at a time.
#include "rushlight.h"

namespace {

namespace data = rush::data;

struct Squares : data::datasets::Dataset<Squares> {
  data::Example<> get(size_t index) override {
    const auto x = static_cast<double>(index);
    return {rush::full({1}, x), rush::full({1}, x * x)};
  }
  std::optional<size_t> size() const override { return 6; }
};

double learn(const rush::Tensor& x, const rush::Tensor& y) { return x.add(y).sum().item<double>(); }

}  // namespace

int main() {
  rush::set_num_threads(1);
  const auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares().map(data::transforms::Stack<>()), data::DataLoaderOptions(2).workers(1));
  double sum = 0;
  for (auto& batch : *loader) sum += learn(batch.data, batch.target);
  return sum == 15 + 55 ? 0 : 1;
}
