// Modules nested deeper than the stack.
#include <doctest/doctest.h>

#include <ostream>
#include <streambuf>

#include "rushlight.h"

using namespace rush;

namespace {

constexpr size_t kDepth = 50'000;

nn::Sequential nested(size_t depth) {
  nn::Sequential net(nn::Linear(1, 1));
  for (size_t i = 1; i < depth; ++i) {
    nn::Sequential outer;
    outer->push_back(net);
    net = outer;
  }
  return net;
}

// What a class may override recurses: it comes to an end, or says that the stack does.
template <class Call>
void ends_or_says_so(const char* name, const Call& call) {
  CAPTURE(name);
  try {
    call();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("nested too deep") != std::string::npos);
  }
}

class Counter final : public std::streambuf {
 public:
  int64_t bytes = 0;

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    bytes += count;
    return count;
  }
  int_type overflow(int_type c) override {
    ++bytes;
    return c;
  }
};

}  // namespace

TEST_CASE("modules nested 50,000 deep are visited, printed and destroyed") {
  const nn::Sequential net = nested(kDepth);
  const auto parameters = net->named_parameters();
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].key().size() == 2 * kDepth + 6);  // "0.0. ... .0.weight"
  CHECK(net->parameters().size() == 2);
  CHECK(net->buffers().empty());
  CHECK(net->modules().size() == kDepth + 1);
  CHECK(net->modules(/*include_self=*/false).size() == kDepth);
  CHECK(state_dict(*net).size() == 2);
  size_t visited = 0, longest = 0;
  net->apply([&](const std::string& name, nn::Module&) {
    ++visited;
    longest = std::max(longest, name.size());
  });
  CHECK(visited == kDepth + 1);
  CHECK(longest == 2 * kDepth - 1);

  Counter counter;
  std::ostream stream(&counter);
  stream << *net;
  CHECK(counter.bytes > static_cast<int64_t>(2 * kDepth * kDepth));
}

TEST_CASE("what recurses over nested modules ends with an error before the stack does") {
  const nn::Sequential net = nested(kDepth);
  ends_or_says_so("train", [&] { net->eval(); });
  ends_or_says_so("to", [&] { net->to(kFloat64); });
  ends_or_says_so("zero_grad", [&] { net->zero_grad(); });
  ends_or_says_so("clone", [&] { net->clone(); });
  ends_or_says_so("forward", [&] { net->forward(ones({1, 1}, kFloat64)); });
  CHECK(net->parameters().size() == 2);
}

TEST_CASE("a hundred levels are nothing out of the ordinary") {
  const nn::Sequential net = nested(100);
  net->eval();
  CHECK(!net->modules().back()->is_training());
  net->to(kFloat64);
  CHECK(net->parameters()[0].scalar_type() == kFloat64);
  const Tensor x = ones({1, 1}, kFloat64);
  net->forward(x).sum().backward();
  net->zero_grad();
  CHECK(!net->parameters()[0].grad().defined());
  const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
  CHECK(equal(copy->forward(x), net->forward(x)));
}
