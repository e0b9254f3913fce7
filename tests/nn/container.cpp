#include "nn/modules/container.h"

#include <doctest/doctest.h>

#include "rushlight.h"

namespace {

using namespace rush;
using namespace rush::nn;

using Names = std::vector<std::string>;

struct TwoImpl : Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {x, x * 2}; }
};
RUSH_MODULE(Two);

struct AddImpl : Module {
  Tensor forward(std::tuple<Tensor, Tensor> pair) { return std::get<0>(pair) + std::get<1>(pair); }
};
RUSH_MODULE(Add);

struct ScaleImpl : Module {
  double forward(const Tensor& x, double factor, std::optional<Tensor> shift) {
    return x.sum().item<double>() * factor + (shift ? shift->item<double>() : 0);
  }
};
RUSH_MODULE(Scale);

struct CountImpl : Module {
  int calls = 0;
  void forward() { ++calls; }
};
RUSH_MODULE(Count);

struct DefaultsImpl : Module {
  int forward(int a, int b = 2, double c = 3.5) { return a + b + static_cast<int>(2 * c); }

 protected:
  RUSH_FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(2)}, {2, AnyValue(3.5)})
};
RUSH_MODULE(Defaults);

TEST_CASE("a Sequential calls its modules in a row") {
  Sequential net(Linear(2, 3), ReLU(), Linear(LinearOptions(3, 1)));
  CHECK(net->size() == 3);
  CHECK(net->named_parameters().keys() == Names{"0.weight", "0.bias", "2.weight", "2.bias"});
  const Tensor x = ones({4, 2});
  const Tensor expected = net->at<Linear>(2).forward(relu(net->at<LinearImpl>(0).forward(x)));
  CHECK((net->forward(x) - expected).abs().sum().item<double>() == 0);
  CHECK(net(x).sizes() == IntArrayRef({4, 1}));
  CHECK_THROWS_AS(net->at<ReLU>(0), TypeError);
  CHECK_THROWS_AS(net->at<ReLU>(3), IndexError);
  CHECK_THROWS_AS(net->ptr(3), IndexError);
  CHECK(net[1]->as<ReLU>() != nullptr);
  CHECK_THROWS_AS(Sequential()->forward(x), Error);
}

TEST_CASE("a Sequential takes names, shared pointers, objects and other Sequentials") {
  Sequential named({{"fc", Linear(2, 3)}, {"act", ReLU()}});
  CHECK(named->named_children().keys() == Names{"fc", "act"});
  named->push_back("out", Linear(3, 3));
  named->push_back(ReLUImpl());
  named->push_back(std::make_shared<IdentityImpl>());
  CHECK(named->named_children().keys() == Names{"fc", "act", "out", "3", "4"});

  Sequential nested(Sequential(Linear(2, 2), ReLU()), Linear(2, 1));
  CHECK(nested->size() == 2);
  CHECK(nested(ones({1, 2})).sizes() == IntArrayRef({1, 1}));
  nested->extend(*Sequential(Tanh(), Sigmoid()));
  CHECK(nested->size() == 4);
  const Sequential same = nested;  // the same object
  CHECK(same.get() == nested.get());
}

TEST_CASE("values of any type pass from module to module") {
  Sequential net{Two(), Add()};
  CHECK(net->forward(ones(2)).sum().item<double>() == 6);
  CHECK(Sequential(Scale())->forward<double>(ones(2), 3.0) == 6);
  CHECK_THROWS_AS(Sequential(Two(), ReLU())->forward(ones(2)), TypeError);
  CHECK_THROWS_AS(Sequential(Two())->forward(ones(2)), TypeError);
}

TEST_CASE("an AnyModule fills in the defaults that the class names, and holds another module when it is assigned one") {
  AnyModule any;
  any = Defaults();
  CHECK(any.forward<int>(1) == 10);
  CHECK(any.forward<int>(1, 1) == 9);
  CHECK(any.forward<int>(1, AnyValue(1), 1.0) == 4);
  CHECK_THROWS_AS(any.forward<int>(), TypeError);
  AnyValue value = any.any_forward(1);
  CHECK(value.get<int>() == 10);
  CHECK(value.try_get<double>() == nullptr);
  CHECK_THROWS_WITH_AS(value.get<double>(), "AnyValue: it is asked for as double, and is int", TypeError);
  any = std::make_shared<LinearImpl>(2, 3);
  CHECK(any.get<Linear>()->weight.sizes() == IntArrayRef({3, 2}));
}

TEST_CASE("attention in an AnyModule may be called without what has a default") {
  const MultiheadAttention attention(4, 2);
  const Tensor x = randn({3, 2, 4});
  const auto result = AnyModule(attention).forward<std::tuple<Tensor, Tensor>>(x, x, x);
  CHECK(equal(std::get<0>(result), std::get<0>(attention->forward(x, x, x))));
}

TEST_CASE("AnyModule checks arguments, results and classes") {
  AnyModule scale{Scale()};
  CHECK(scale.forward<double>(ones(2), 3.0) == 6);
  CHECK(scale.forward<double>(ones(2), 3.0, full({}, 1.0)) == 7);
  CHECK_THROWS_AS(scale.forward<double>(ones(2)), TypeError);
  CHECK_THROWS_WITH_AS(scale.forward<double>(ones(2), 3),
                       doctest::Contains("argument 2 of forward is to be double, and is int"), TypeError);
  CHECK_THROWS_WITH_AS(scale.forward<Tensor>(ones(2), 3.0),
                       doctest::Contains("the result is asked for as rush::Tensor, and is double"), TypeError);
  CHECK(&scale.get<ScaleImpl>() == scale.ptr().get());
  CHECK(scale.get<Scale>().ptr() == scale.ptr<ScaleImpl>());
  CHECK_THROWS_AS(scale.ptr<LinearImpl>(), TypeError);
  CHECK_THROWS_AS(scale.get<Linear>(), TypeError);
  CHECK_THROWS_AS(AnyModule().ptr(), Error);
  CHECK_THROWS_AS(AnyModule().forward(ones(1)), Error);
  Count count;
  AnyModule(count).forward<void>();
  CHECK(count->calls == 1);
}

TEST_CASE("a ModuleList holds, inserts and names modules") {
  ModuleList list(Linear(1, 2), ReLU());
  list->push_back(Linear(2, 3));
  list->insert(1, Tanh());
  CHECK(list->size() == 4);
  CHECK(list->named_parameters().keys() == Names{"0.weight", "0.bias", "3.weight", "3.bias"});
  CHECK(list->at<Tanh>(1).name() == "rush::nn::TanhImpl");
  CHECK_THROWS_AS(list->at<Linear>(1), TypeError);
  CHECK_THROWS_AS(list->ptr(4), IndexError);
  CHECK_THROWS_AS(list->insert(9, Tanh()), IndexError);
  Tensor x = ones({1, 1});
  for (const auto& module : *list) {
    if (auto* linear = module->as<Linear>()) x = linear->forward(x);
  }
  CHECK(x.sizes() == IntArrayRef({1, 3}));
}

TEST_CASE("a ModuleDict finds modules by name") {
  ModuleDict dict;
  dict->insert("a", Linear(1, 2).ptr());
  dict->insert("b", ReLU().ptr());
  dict->insert("a", Linear(1, 3).ptr());
  CHECK(dict->keys() == Names{"a", "b"});
  CHECK(dict->at<Linear>("a").weight.size(0) == 3);
  CHECK_THROWS_AS(dict->at<Linear>("b"), TypeError);
  CHECK_THROWS_AS((*dict)["c"], ValueError);
  CHECK(dict->contains("b"));
  dict->pop("b");
  CHECK(dict->size() == 1);
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<Module>>>{{"c", Tanh().ptr()}});
  Names seen;
  for (const auto& item : *dict) seen.push_back(item.key());
  CHECK(seen == Names{"a", "c"});
  CHECK(dict->items()[1].second->name() == "rush::nn::TanhImpl");
  dict->clear();
  CHECK(dict->empty());
}

TEST_CASE("lists and dictionaries of parameters") {
  ParameterList list;
  list->append(ones(2, TensorOptions().requires_grad(true)));
  list->append(ones(3));
  CHECK(list->size() == 2);
  CHECK(list->named_parameters().keys() == Names{"0", "1"});
  CHECK(list->at(0).requires_grad());
  CHECK(!list->at(1).requires_grad());
  CHECK_THROWS_AS(list->at(2), IndexError);
  ParameterDict dict;
  dict->insert("w", ones(2, TensorOptions().requires_grad(true)));
  CHECK(dict->contains("w"));
  CHECK(dict->pop("w").size(0) == 2);
  CHECK(dict->empty());
}

TEST_CASE("containers are cloned with all that they hold") {
  Sequential net({{"fc", Linear(2, 3)}, {"norm", BatchNorm1d(3)}});
  net->ptr(1)->eval();
  const auto copy = std::dynamic_pointer_cast<SequentialImpl>(net->clone());
  CHECK(copy->named_parameters().keys() == net->named_parameters().keys());
  CHECK(!copy->at<Linear>(0).weight.is_alias_of(net->at<Linear>(0).weight));
  CHECK(copy->is_training());
  CHECK(!copy->ptr(1)->is_training());
  ParameterList list;
  list->append(ones(2, TensorOptions().requires_grad(true)));
  CHECK(std::dynamic_pointer_cast<ParameterListImpl>(list->clone())->at(0).requires_grad());
  ModuleDict dict;
  dict->insert("fc", Linear(1, 1).ptr());
  CHECK(dict->clone()->parameters().size() == 2);
}

}  // namespace
