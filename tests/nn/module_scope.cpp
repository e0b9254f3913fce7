#include "nn/module_scope.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;

namespace {

struct BlockImpl : nn::Module {
  nn::Linear fc1{nullptr};
  explicit BlockImpl(int64_t features) { fc1 = register_module("fc1", nn::Linear(features, 2)); }
  Tensor forward(const Tensor& x) { return fc1->forward(x); }
};
RUSH_MODULE(Block);

struct BlockListImpl : nn::Module {
  nn::ModuleList layers;
  BlockListImpl() {
    register_module("layers", layers);
    for (int64_t features : {4, 3}) layers->push_back(Block(features));
  }
  Tensor forward(const Tensor& x, size_t layer) { return layers->at<Block>(layer).forward(x); }
  Tensor fail() { return ones({2}) + ones({3}); }
};
RUSH_MODULE(BlockList);

template <class Fn>
std::string context_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.context().empty() ? "" : error.context()[0];
  }
  return "no error";
}

}  // namespace

TEST_CASE("an error tells the module that it came from, whichever way that was called") {
  BlockList net;
  const Tensor x = ones({1, 4});
  CHECK(context_of([&] { net(x, 1); }) == "in BlockList.layers.1.fc1");
  CHECK(context_of([&] { net->forward(x, 1); }) == "in BlockList.layers.1.fc1");
  CHECK(context_of([&] { net->fail(); }).empty());
  nn::Sequential rows(nn::Linear(4, 3), Block(5));
  CHECK(context_of([&] { rows->forward(x); }) == "in Sequential.1.fc1");
  const auto shared = std::make_shared<nn::LinearImpl>(2, 2);
  CHECK(context_of([&] { shared->forward(x); }) == "in Linear");
  // Outside of the call there is none.
  CHECK(context_of([&] { net(x, 0) + ones({7}); }).empty());
}

TEST_CASE("the path follows a module that is moved, replaced, unregistered or outlives its parent") {
  const auto fc = std::make_shared<nn::LinearImpl>(2, 2);
  CHECK(fc->path() == "Linear");
  {
    nn::Module first("First");
    first.register_module("a", fc);
    CHECK(fc->path() == "First.a");
    const nn::Module moved = std::move(first);
    CHECK(fc->path() == "First.a");
    const nn::Module copy = moved;
    CHECK(fc->path() == "First.a");
  }
  CHECK(fc->path() == "Linear");
  nn::Module second("models::SecondImpl");
  second.register_module("b", fc);
  second.register_module("c", fc);
  CHECK(fc->path() == "Second.b");
  second.unregister_module("b");
  CHECK(fc->path() == "Second.c");
  second.replace_module("c", std::make_shared<nn::LinearImpl>(1, 1));
  CHECK(fc->path() == "Linear");
  CHECK(second.children()[0]->path() == "Second.c");
}
