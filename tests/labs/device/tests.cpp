// The emulated accelerator computes what the CPU does, in every order that events permit, and finds what they do not
// order.
#include <doctest/doctest.h>

#include <vector>

#include "core/device/guard.h"
#include "core/device/hand_over.h"
#include "rushlight.h"
#include "tests/labs/device/accelerator.h"

using namespace rush;
using namespace rush::labs;

namespace {

Stream side_stream() { return backend_of(emulated().type).stream_from_pool(0); }

Tensor pinned(double value) { return full({64}, value).pin_memory(); }

struct Trained {
  std::vector<float> losses;
  Tensor weight;
};

Trained train(Device device, bool capturable) {
  manual_seed(3);
  nn::Sequential net(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 4));
  const Tensor x = randn({32, 8}).to(device), y = randint(4, {32}, kInt64).to(device);
  net->to(device);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01).capturable(capturable));
  Trained trained;
  for (int i = 0; i < 5; ++i) {
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    trained.losses.push_back(loss.item<float>());
  }
  trained.weight = net->parameters()[0].detach().cpu();
  return trained;
}

}  // namespace

TEST_CASE("training on the emulated accelerator gives the CPU's numbers") {
  const Trained here = train(kCPU, false);
  for (const bool capturable : {false, true}) {
    const Trained there = train(emulated(), capturable);
    CHECK(there.losses == here.losses);
    CHECK(equal(there.weight, here.weight));
  }
  CHECK(races().take().text == "");
}

TEST_CASE("work runs when the host waits, and a pinned source is read then") {
  const Tensor source = pinned(1);
  const Tensor there = source.to(emulated(), /*non_blocking=*/true);
  source.fill_(2);
  CHECK(there.cpu()[0].item<float>() == 2);
}

TEST_CASE("a missing wait is found in any order, and gives wrong numbers in some") {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    streams().set_seed(seed);
    const Tensor x = full({64}, 1, emulated());
    streams().synchronize();
    const Stream side = side_stream();
    Tensor y;
    {
      const StreamGuard guard(side);
      x.mul_(3);
    }
    y = x + 1;
    wrong += y.cpu()[0].item<float>() != 4;
    CHECK(races().take().text.find("no event orders them") != std::string::npos);
    streams().synchronize();
  }
  CHECK(wrong > 0);
  CHECK(wrong < 20);
}

TEST_CASE("a wait orders streams, and a recording after it does not") {
  const Stream side = side_stream(), main = current_stream(emulated());
  const Tensor x = full({64}, 1, emulated());
  wait_stream(side, main);
  {
    const StreamGuard guard(side);
    x.mul_(3);
  }
  Event event;
  event.record(side);
  event.block(main);
  const Tensor y = x + 1;
  CHECK(races().take().text == "");
  wait_stream(side, main);
  {
    const StreamGuard guard(side);
    x.mul_(3);
  }
  event.block(main);  // of the recording before that product
  const Tensor z = x + 1;
  CHECK(races().take().text != "");
  CHECK(y.cpu()[0].item<float>() == 4);
  streams().synchronize();
}

TEST_CASE("a wait of the host orders what it gives afterwards") {
  const Stream side = side_stream();
  const Tensor x = full({64}, 1, emulated());
  streams().synchronize();
  {
    const StreamGuard guard(side);
    x.mul_(3);
  }
  Event event;
  event.record(side);
  while (!event.query()) {
  }
  CHECK((x + 1).cpu()[0].item<float>() == 4);
  CHECK(races().take().text == "");
}

TEST_CASE("a capturable step writes the parameters, and reads the gradients") {
  const Tensor w = full({64}, 1.0, emulated()).requires_grad_();
  optim::SGD optimizer({w}, optim::SGDOptions(0.1).capturable(true));
  (w * w).sum().backward();
  streams().synchronize();
  optimizer.step();
  const StreamGuard guard(side_stream());
  const Tensor gradient = w.grad() * 2;
  CHECK(races().take().text == "");
  const Tensor weight = w.detach() * 2;
  CHECK(races().take().text.find("SGD writes float32 of shape (64)") != std::string::npos);
  streams().synchronize();
}

TEST_CASE("memory that another stream uses is handed out again too early without record_stream") {
  const Stream side = side_stream(), main = current_stream(emulated());
  for (const bool recorded : {false, true}) {
    Tensor result;
    {
      const Tensor x = full({64}, 1, emulated());
      wait_stream(side, main);
      const StreamGuard guard(side);
      result = x * 3;
      if (recorded) x.record_stream(side);
    }
    const Tensor next = full({64}, 7, emulated());
    CHECK((races().take().text.find("record_stream is missing") != std::string::npos) == !recorded);
    streams().synchronize();
  }
}

TEST_CASE("a tensor is handed over from one stream to another") {
  const Stream side = side_stream(), main = current_stream(emulated());
  Tensor result;
  {
    const Tensor x = full({64}, 1, emulated());
    hand_over(x, main, side);
    const StreamGuard guard(side);
    result = x * 3;
  }
  const Tensor next = full({64}, 7, emulated());
  hand_over(result, side, main);
  CHECK((result + next).cpu()[0].item<float>() == 10);
  CHECK(races().take().text == "");
}

TEST_CASE("backward runs on the streams of the forward pass, and the caller's waits for them") {
  const Stream side = side_stream(), main = current_stream(emulated());
  const Tensor x = full({64}, 1.0, emulated()).requires_grad_();
  wait_stream(side, main);
  Tensor y;
  {
    const StreamGuard guard(side);
    y = x * 3;
  }
  hand_over(y, side, main);
  (y * y).sum().backward();
  CHECK(x.grad().cpu()[0].item<float>() == 18);
  CHECK(races().take().text == "");
}

TEST_CASE("a graph repeats its work on the memory of the capture, and refuses waits of the host") {
  const Tensor x = full({64}, 1, emulated());
  graphs::Graph graph;
  Tensor y;
  {
    const graphs::Capture capture(graph);
    y = (x * 2) * 3;
    CHECK_THROWS_AS(y.cpu(), CaptureError);
    CHECK_THROWS_AS(streams().synchronize(), CaptureError);
  }
  for (const double value : {1.0, 5.0}) {
    x.fill_(value);
    graph.replay();
    const Tensor other = full({64}, 9, emulated());  // gets none of the graph's memory
    CHECK(y.cpu()[0].item<double>() == 6 * value);
  }
  CHECK(races().take().text == "");
}

TEST_CASE("a graph that uses freed memory is found") {
  graphs::Graph graph;
  Tensor y;
  {
    const Tensor x = full({64}, 1, emulated());
    const graphs::Capture capture(graph);
    y = x * 2;
  }
  graph.replay();
  CHECK(races().take().text.find("was freed after the capture") != std::string::npos);
}

TEST_CASE("during a capture a stream takes part when it has waited for the captured one") {
  const Stream side = side_stream();
  const Tensor x = full({64}, 1, emulated());
  streams().synchronize();
  graphs::Graph graph;
  Tensor y;
  const auto captured = [&](bool waits) {
    const graphs::Capture capture(graph);
    const Stream main = current_stream(emulated());
    if (waits) wait_stream(side, main);
    {
      const StreamGuard guard(side);
      y = x * 2;
    }
    wait_stream(main, side);
  };
  CHECK_THROWS_AS(captured(false), CaptureError);
  captured(true);
  graph.replay();
  CHECK(y.cpu()[0].item<float>() == 2);
}
