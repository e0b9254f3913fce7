// A training step as a graph of the emulated accelerator.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/str.h"
#include "optim/graphs/graphed_step.h"
#include "rushlight.h"
#include "tests/labs/device/accelerator.h"
#include "tools/diagrams/facts.h"

namespace rush::diagrams {

namespace {

// Blocks of the device's memory, in the order in which they are accessed, and the tensors that lie there in turn.
class Blocks {
 public:
  explicit Blocks(const std::vector<std::pair<const char*, Tensor>>& named) {
    for (const auto& [name, tensor] : named) named_[tensor.storage()->data()] = {name, tensor};
  }

  size_t number_of(const labs::Access& access) {
    const auto found = std::find(blocks_.begin(), blocks_.end(), access.block);
    const auto number = static_cast<size_t>(found - blocks_.begin());
    if (found == blocks_.end()) {
      blocks_.push_back(access.block);
      facts.push_back({{"pool", labs::device_memory().pool_of(access.block) != 0}, {"tensors", Json::array()}});
    }
    Json& tensors = facts[number]["tensors"];
    const std::string tensor = described(access);
    if (std::find(tensors.begin(), tensors.end(), tensor) == tensors.end()) tensors.push_back(tensor);
    return number;
  }
  Json facts = Json::array();

 private:
  // A kernel may see a tensor by another shape, as a matrix of a batch.
  std::string described(const labs::Access& access) const {
    const auto found = named_.find(access.block);
    if (found == named_.end()) return access.tensor;
    const auto& [name, tensor] = found->second;
    const bool is_whole = access.end - access.begin == static_cast<int64_t>(tensor.nbytes());
    return is_whole ? str(name, ", ", tensor.scalar_type(), " of shape ", tensor.sizes()) : access.tensor;
  }

  std::map<const void*, std::pair<std::string, Tensor>> named_;
  std::vector<const void*> blocks_;
};

Json accesses_of(const labs::Work& work, Blocks& blocks) {
  Json accesses = Json::array();
  for (const labs::Access& access : work.accesses) {
    if (!labs::device_memory().contains(access.block)) continue;  // pinned
    accesses.push_back({{"block", blocks.number_of(access)}, {"writes", access.writes}});
  }
  return accesses;
}

// What waits in the current stream, and what of it the graph has recorded.
Json given_by_replay(const std::vector<labs::SharedWork>& recorded, Blocks& blocks) {
  Json given = Json::array();
  for (const labs::Streams::Item& item : labs::streams().queued(labs::streams().current())) {
    if (!item.work) continue;
    const bool is_node = std::find(recorded.begin(), recorded.end(), item.work) != recorded.end();
    given.push_back({{"op", item.work->op}, {"node", is_node}, {"accesses", accesses_of(*item.work, blocks)}});
  }
  return given;
}

}  // namespace

Json captured_facts() {
  const Device device = labs::emulated();
  manual_seed(0);
  nn::Linear net(4, 3);
  net->to(device);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).capturable(true));
  const Tensor images = ones({8, 4}).pin_memory(), labels = zeros({8}, kInt64).pin_memory();
  Tensor x, y, scores;
  std::vector<labs::SharedWork> recorded;
  const auto run = [&](const Tensor& own_images, const Tensor& own_labels) {
    x = own_images;
    y = own_labels;
    optimizer.zero_grad();
    scores = net(x);
    const Tensor loss = nn::functional::cross_entropy(scores, y);
    loss.backward();
    optimizer.step();
    if (labs::current_recording) recorded = labs::current_recording->work;
    return loss;
  };
  graphs::GraphedStep step(run, {.warmup = 1});
  step(images, labels);
  const Tensor loss = step(images, labels);
  labs::streams().synchronize();
  optimizer.param_groups()[0].options().set_lr(0.05);
  step(images, labels);
  Blocks blocks({{"x", x},
                 {"y", y},
                 {"weight", net->weight},
                 {"bias", net->bias},
                 {"net(x)", scores},
                 {"loss", loss},
                 {"weight.grad", net->weight.grad()},
                 {"bias.grad", net->bias.grad()}});
  Json facts;
  facts["given"] = given_by_replay(recorded, blocks);
  facts["blocks"] = blocks.facts;
  labs::streams().synchronize();
  return facts;
}

}  // namespace rush::diagrams
