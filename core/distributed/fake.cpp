#include "core/distributed/fake.h"

#include <numeric>

#include "core/distributed/environment.h"
#include "core/ops/basic.h"

namespace rush::distributed {

namespace {

class FakeGroup final : public ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  const char* backend() const override { return "fake"; }
  bool takes_any_device() const override { return true; }

  WorkPtr all_reduce(const Tensor&, ReduceOp) override { return Work::completed(); }
  WorkPtr reduce(const Tensor&, ReduceOp, int) override { return Work::completed(); }
  WorkPtr broadcast(const Tensor&, int) override { return Work::completed(); }
  WorkPtr all_gather(const Tensor& output, const Tensor& input) override {
    output.view({size(), input.numel()}).copy_(input.view({1, input.numel()}));
    return Work::completed();
  }
  WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp) override {
    output.view({output.numel()}).copy_(input.view({size(), output.numel()}).select(0, rank()));
    return Work::completed();
  }
  WorkPtr all_to_all(const Tensor& output, const Tensor& input, IntArrayRef output_splits,
                     IntArrayRef input_splits) override {
    zeros_arrive(output);
    own_rows(output, output_splits).copy_(own_rows(input, input_splits));
    return Work::completed();
  }
  WorkPtr send(const Tensor&, int, int) override { return Work::completed(); }
  WorkPtr recv(const Tensor& tensor, int, int) override { return zeros_arrive(tensor); }
  WorkPtr barrier() override { return Work::completed(); }
  Group split(std::string name, std::vector<int> ranks) override {
    const int place = place_in(ranks);
    return place < 0 ? nullptr : std::make_shared<FakeGroup>(std::move(name), std::move(ranks), place);
  }

 private:
  // What goes to this rank, or comes from it.
  Tensor own_rows(const Tensor& elements, IntArrayRef splits) const {
    const auto own = splits.begin() + rank();
    return elements.view({elements.numel()}).narrow(0, std::accumulate(splits.begin(), own, int64_t{0}), *own);
  }
  static WorkPtr zeros_arrive(Tensor tensor) {
    tensor.zero_();
    return Work::completed();
  }
};

}  // namespace

Group make_fake_group(std::optional<int> rank, std::optional<int> world_size) {
  const auto [own, size] = read_environment().place(rank, world_size);
  return std::make_shared<FakeGroup>("default", detail::ranks_of_world(size), own);
}

}  // namespace rush::distributed
