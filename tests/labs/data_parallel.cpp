// Lab 17, data parallelism: parameters, gradients and steps on ranks of the emulated wire. What has to come is computed
// number by number.
#include <cmath>

#include "core/ops/basic.h"
#include "optim/sgd.h"
#include "tests/labs/ring_exercise.h"
#include "tests/labs/solutions/ring.h"

namespace rush::labs {
namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)); }

bool near_all(const Arrays& a, const Arrays& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), near);
  });
}

// How the elements of a tensor lie in memory.
enum class Layout { Plain, Gaps, Absent };

struct ParametersInput {
  int ranks;
  std::vector<int64_t> sizes;   // the numbers of elements of the parameters
  Layout last = Layout::Plain;  // of the last parameter, or, in average_gradients, of its gradient on rank 0
  int64_t bucket_size = 0;
};

// Number `i` of parameter `parameter` on rank `rank`.
float number(int64_t rank, int64_t parameter, int64_t i) {
  return static_cast<float>(100 * (rank + 1) * (parameter + 1) + (rank + 1) * i);
}

Tensor numbers(int rank, size_t parameter, int64_t count, Layout layout) {
  const Tensor wide = full({count, layout == Layout::Gaps ? 2 : 1}, 77.0);
  Tensor column = wide.select(1, 0);
  for (int64_t i = 0; i < count; ++i) column[i].fill_(number(rank, static_cast<int64_t>(parameter), i));
  return column;
}

// The numbers of all parameters, one after the other, on each rank.
Arrays arrays_of(const ParametersInput& input, const std::function<float(int, size_t, int64_t)>& element) {
  Arrays arrays(static_cast<size_t>(input.ranks));
  for (int rank = 0; rank < input.ranks; ++rank) {
    for (size_t parameter = 0; parameter < input.sizes.size(); ++parameter) {
      for (int64_t i = 0; i < input.sizes[parameter]; ++i) {
        arrays[static_cast<size_t>(rank)].push_back(element(rank, parameter, i));
      }
    }
  }
  return arrays;
}

void append(std::vector<float>& values, const Tensor& t) {
  const Tensor flat = t.detach().flatten();
  for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(flat[i].item<float>());
}

std::string fault_of_numbers(const char* what, const ParametersInput& input, const Arrays& got, const Arrays& right) {
  for (size_t rank = 0; rank < right.size(); ++rank) {
    size_t at = 0;
    for (size_t parameter = 0; parameter < input.sizes.size(); ++parameter) {
      for (int64_t i = 0; i < input.sizes[parameter]; ++i, ++at) {
        const std::string value = at < got[rank].size() ? str(got[rank][at]) : "missing";
        if (at < got[rank].size() && near(got[rank][at], right[rank][at])) continue;
        return str("first wrong element: on rank ", rank, " element ", i, " of ", what, " ", parameter, " is ", value,
                   " and has to be ", right[rank][at]);
      }
    }
  }
  return {};
}

std::string show(const ParametersInput& input) {
  std::string sizes;
  for (const int64_t size : input.sizes) sizes += str(sizes.empty() ? "" : ", ", size);
  return str("of parameters with ", sizes, " elements, on ", input.ranks, input.ranks == 1 ? " rank" : " ranks");
}

using ParametersSubject = Subject<ParametersInput, RingOutput>;

ParametersSubject parameters_subject(const char* function, std::vector<ParametersInput> inputs) {
  ParametersSubject subject;
  subject.function = function;
  subject.inputs = std::move(inputs);
  subject.same = [](const RingOutput& a, const RingOutput& b) {
    return a.run.fault.empty() && near_all(a.data, b.data);
  };
  return subject;
}

// A mistake that shows where the last parameter has this layout, and leaves all other calls right.
void add_layout(ParametersSubject& subject, const char* name, Layout layout) {
  const auto fault = subject.fault;
  subject.mistakes.push_back({name, nullptr, [=](const ParametersInput& input, const RingOutput& output) {
                                return fault(input, output).empty() == (input.last != layout || input.ranks == 1);
                              }});
}

// ---- broadcast_parameters ----

std::vector<Tensor> parameters_of(const ParametersInput& input, int rank) {
  std::vector<Tensor> parameters;
  for (size_t i = 0; i < input.sizes.size(); ++i) {
    const Layout layout = i + 1 == input.sizes.size() ? input.last : Layout::Plain;
    parameters.push_back(numbers(rank, i, input.sizes[i], layout).requires_grad_());
  }
  return parameters;
}

RingOutput learners_parameters(const ParametersInput& input) {
  RingOutput output{Arrays(static_cast<size_t>(input.ranks)), {}};
  output.run = run_ranks(input.ranks, [&](Wire& wire) {
    const std::vector<Tensor> parameters = parameters_of(input, wire.rank());
    broadcast_parameters(wire, parameters);
    for (const Tensor& parameter : parameters) append(output.data[static_cast<size_t>(wire.rank())], parameter);
    RUSH_CHECK(parameters[0].is_leaf(), "the parameter has a history: it was written while autograd recorded");
  });
  return output;
}

Exercise parameters_exercise() {
  auto subject = parameters_subject("rush::labs::broadcast_parameters",
                                    {{1, {3}}, {2, {4, 3}}, {4, {2, 5, 1}}, {3, {4, 3}, Layout::Gaps}});
  subject.describe = [](const ParametersInput& input) {
    return str(show(input), input.last == Layout::Gaps ? "; the last is not contiguous" : "");
  };
  subject.learners = learners_parameters;
  subject.fault = [](const ParametersInput& input, const RingOutput& output) {
    const Arrays right =
        arrays_of(input, [](int, size_t p, int64_t i) { return number(0, static_cast<int64_t>(p), i); });
    return output.run.fault.empty() ? fault_of_numbers("parameter", input, output.data, right) : output.run.fault;
  };
  const auto add = [&](const char* name, bool (*is_sent)(const ParametersInput&, size_t parameter)) {
    subject.mistakes.push_back({name, [=](const ParametersInput& input) {
                                  return RingOutput{arrays_of(input,
                                                              [&](int rank, size_t p, int64_t i) {
                                                                return number(is_sent(input, p) ? 0 : rank,
                                                                              static_cast<int64_t>(p), i);
                                                              }),
                                                    {}};
                                }});
  };
  add("nothing is sent: every rank begins at a point of its own, and averaged gradients lead none of them anywhere",
      [](const ParametersInput&, size_t) { return false; });
  add("only the first parameter is sent", [](const ParametersInput&, size_t p) { return p == 0; });
  add("the last parameter is not sent",
      [](const ParametersInput& input, size_t p) { return p + 1 < input.sizes.size(); });
  add_layout(subject,
             "a parameter that is not contiguous stays as it was: it needs a copy, and the copy has to go back",
             Layout::Gaps);
  return exercise(std::move(subject));
}

// ---- average_gradients ----

Layout gradient_layout(const ParametersInput& input, int rank, size_t parameter) {
  return rank == 0 && parameter + 1 == input.sizes.size() ? input.last : Layout::Plain;
}

RingOutput learners_gradients(const ParametersInput& input) {
  RingOutput output{Arrays(static_cast<size_t>(input.ranks)), {}};
  output.run = run_ranks(input.ranks, [&](Wire& wire) {
    std::vector<Tensor> parameters = parameters_of({input.ranks, input.sizes}, wire.rank());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Layout layout = gradient_layout(input, wire.rank(), i);
      if (layout != Layout::Absent) parameters[i].mutable_grad() = numbers(wire.rank(), i, input.sizes[i], layout);
    }
    average_gradients(wire, parameters, input.bucket_size);
    for (const Tensor& parameter : parameters) {
      if (parameter.grad().defined()) append(output.data[static_cast<size_t>(wire.rank())], parameter.grad());
    }
  });
  return output;
}

using Bucket = std::vector<size_t>;  // of parameters

std::vector<Bucket> buckets_of(const ParametersInput& input) {
  std::vector<Bucket> buckets;
  int64_t free = 0;
  for (size_t i = 0; i < input.sizes.size(); ++i) {
    if (buckets.empty() || input.sizes[i] > free) {
      buckets.emplace_back();
      free = input.bucket_size;
    }
    buckets.back().push_back(i);
    free -= input.sizes[i];
  }
  return buckets;
}

// How many messages rank 0 sends where these travel together, by the learner's own all-reduce.
int64_t messages_of(const ParametersInput& input, const std::vector<Bucket>& buckets) {
  int64_t messages = 0;
  for (const Bucket& bucket : buckets) {
    int64_t elements = 0;
    for (const size_t parameter : bucket) elements += input.sizes[parameter];
    const WireRun run = run_ranks(input.ranks, [&](Wire& wire) {
      std::vector<float> data(static_cast<size_t>(elements));
      ring_all_reduce(wire, data.data(), elements);
    });
    messages += run.messages[0];
  }
  return messages;
}

enum class GradientMistake { None, NotDivided, DividedTwice, NotAveraged, FirstBucketOnly, LastBucketLost };

float gradient(const ParametersInput& input, int rank, size_t parameter, int64_t i) {
  if (gradient_layout(input, rank, parameter) == Layout::Absent) return 0;
  return number(rank, static_cast<int64_t>(parameter), i);
}

Arrays gradients_after(const ParametersInput& input, GradientMistake mistake = GradientMistake::None) {
  const std::vector<Bucket> buckets = buckets_of(input);
  return arrays_of(input, [&](int rank, size_t parameter, int64_t i) {
    const bool in_first = parameter <= buckets.front().back(), in_last = parameter >= buckets.back().front();
    const bool stays = mistake == GradientMistake::NotAveraged ||
                       (mistake == GradientMistake::FirstBucketOnly && !in_first) ||
                       (mistake == GradientMistake::LastBucketLost && in_last);
    if (stays) return gradient(input, rank, parameter, i);
    float sum = 0;
    for (int each = 0; each < input.ranks; ++each) sum += gradient(input, each, parameter, i);
    const auto ranks = static_cast<float>(input.ranks);
    if (mistake == GradientMistake::NotDivided) return sum;
    return mistake == GradientMistake::DividedTwice ? sum / ranks / ranks : sum / ranks;
  });
}

bool right_gradients(const ParametersInput& input, const RingOutput& output) {
  return output.run.fault.empty() &&
         fault_of_numbers("the gradient of parameter", input, output.data, gradients_after(input)).empty();
}

std::string fault_of_gradients(const ParametersInput& input, const RingOutput& output) {
  if (!output.run.fault.empty()) return output.run.fault;
  std::string fault = fault_of_numbers("the gradient of parameter", input, output.data, gradients_after(input));
  const std::vector<Bucket> buckets = buckets_of(input);
  const int64_t messages = messages_of(input, buckets);
  if (!fault.empty() || output.run.messages[0] == messages) return fault;
  return str("the gradients are right; rank 0 sends ", output.run.messages[0], " messages, and the all-reduces of ",
             buckets.size(), " buckets are ", messages);
}

// Whether the gradients are right and travelled in these buckets.
bool travelled_in(const std::vector<Bucket>& buckets, const ParametersInput& input, const RingOutput& output) {
  return right_gradients(input, output) && output.run.messages[0] == messages_of(input, buckets);
}

Exercise gradients_exercise() {
  auto subject = parameters_subject("rush::labs::average_gradients", {{1, {5}, Layout::Plain, 8},
                                                                      {2, {6}, Layout::Plain, 8},
                                                                      {4, {6, 4, 5, 9}, Layout::Plain, 10},
                                                                      {3, {4, 20, 4, 4}, Layout::Plain, 10},
                                                                      {2, {5, 7}, Layout::Gaps, 20},
                                                                      {3, {6, 4}, Layout::Absent, 10}});
  subject.describe = [](const ParametersInput& input) {
    const char* const last = input.last == Layout::Gaps     ? "; on rank 0 the last gradient is not contiguous"
                             : input.last == Layout::Absent ? "; on rank 0 the last gradient is undefined"
                                                            : "";
    return str(show(input), ", bucket_size ", input.bucket_size, last);
  };
  subject.learners = learners_gradients;
  subject.fault = fault_of_gradients;
  const std::pair<const char*, GradientMistake> mistakes[] = {
      {"the sums are not divided by the number of ranks: the step would be that many times too long",
       GradientMistake::NotDivided},
      {"the sums are divided twice by the number of ranks", GradientMistake::DividedTwice},
      {"the gradients stay as they were: what was averaged has to go back into them", GradientMistake::NotAveraged},
      {"only the first bucket is averaged", GradientMistake::FirstBucketOnly},
      {"the last bucket is lost: it is seldom full when no parameter is left", GradientMistake::LastBucketLost},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const ParametersInput& input) {
                                  return RingOutput{gradients_after(input, mistake), {}};
                                }});
  }
  add_layout(subject, "a gradient that is undefined is left out: the other ranks expect its elements", Layout::Absent);
  add_layout(subject, "a gradient that is not contiguous is read in the order of memory", Layout::Gaps);
  subject.mistakes.push_back({"each gradient travels alone: a message costs time however short it is", nullptr,
                              [](const ParametersInput& input, const RingOutput& output) {
                                std::vector<Bucket> alone;
                                for (size_t i = 0; i < input.sizes.size(); ++i) alone.push_back({i});
                                return travelled_in(alone, input, output);
                              }});
  subject.mistakes.push_back({"all gradients travel in one bucket: it holds bucket_size elements", nullptr,
                              [](const ParametersInput& input, const RingOutput& output) {
                                Bucket all;
                                for (size_t i = 0; i < input.sizes.size(); ++i) all.push_back(i);
                                return travelled_in({all}, input, output);
                              }});
  return exercise(std::move(subject));
}

// ---- train_step ----

// A line w x + b, of which each rank sees two points. Its loss is the mean of the squared distances.
struct LineInput {
  int ranks, steps;
};
constexpr double kRate = 0.05;

double x_of(int rank, int row) { return 0.5 * rank - 0.25 * row; }
double y_of(int rank, int row) { return 1 + 0.5 * rank * rank + row; }

struct Line {
  double w = 0.5, b = 0, dw = 0, db = 0;

  // Adds to the gradients; the loss.
  double backward(int rank) {
    double loss = 0;
    for (int row = 0; row < 2; ++row) {
      const double distance = w * x_of(rank, row) + b - y_of(rank, row);
      loss += distance * distance / 2;
      dw += distance * x_of(rank, row);
      db += distance;
    }
    return loss;
  }
  void step() { w -= kRate * dw, b -= kRate * db; }
  void zero_grad() { dw = db = 0; }
};

enum class StepMistake { None, OwnGradients, GradientsAddUp, OwnLoss, SumOfLosses, NoStep };

void step_all(std::vector<Line>& lines, StepMistake mistake) {
  double dw = 0, db = 0;
  for (const Line& line : lines) dw += line.dw, db += line.db;
  for (Line& line : lines) {
    const auto ranks = static_cast<double>(lines.size());
    if (mistake != StepMistake::OwnGradients) line.dw = dw / ranks, line.db = db / ranks;
    if (mistake != StepMistake::NoStep) line.step();
  }
}

// On each rank, the losses that the steps return, and then w and b.
Arrays lines_after(const LineInput& input, StepMistake mistake = StepMistake::None) {
  std::vector<Line> lines(static_cast<size_t>(input.ranks));
  Arrays arrays(lines.size());
  for (int step = 0; step < input.steps; ++step) {
    std::vector<double> losses;
    double sum = 0;
    for (int rank = 0; rank < input.ranks; ++rank) {
      Line& line = lines[static_cast<size_t>(rank)];
      if (mistake != StepMistake::GradientsAddUp) line.zero_grad();
      losses.push_back(line.backward(rank));
      sum += losses.back();
    }
    step_all(lines, mistake);
    for (size_t rank = 0; rank < lines.size(); ++rank) {
      const double mean = mistake == StepMistake::SumOfLosses ? sum : sum / input.ranks;
      arrays[rank].push_back(static_cast<float>(mistake == StepMistake::OwnLoss ? losses[rank] : mean));
    }
  }
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    for (const double value : {lines[rank].w, lines[rank].b}) arrays[rank].push_back(static_cast<float>(value));
  }
  return arrays;
}

RingOutput learners_lines(const LineInput& input) {
  RingOutput output{Arrays(static_cast<size_t>(input.ranks)), {}};
  output.run = run_ranks(input.ranks, [&](Wire& wire) {
    const int rank = wire.rank();
    const Tensor w = full({1}, 0.5).requires_grad_(), b = zeros({1}).requires_grad_();
    const Tensor x = tensor({x_of(rank, 0), x_of(rank, 1)}, kFloat32),
                 y = tensor({y_of(rank, 0), y_of(rank, 1)}, kFloat32);
    optim::SGD optimizer({w, b}, kRate);
    std::vector<float>& values = output.data[static_cast<size_t>(rank)];
    for (int step = 0; step < input.steps; ++step) {
      values.push_back(train_step(
          wire, optimizer, [&] { return (w * x + b - y).square().mean(); }, 1));
    }
    append(values, w);
    append(values, b);
  });
  return output;
}

std::string fault_of_lines(const LineInput& input, const RingOutput& output) {
  if (!output.run.fault.empty()) return output.run.fault;
  const Arrays right = lines_after(input);
  for (size_t rank = 0; rank < right.size(); ++rank) {
    for (size_t i = 0; i < right[rank].size(); ++i) {
      if (near(output.data[rank][i], right[rank][i])) continue;
      const auto steps = static_cast<size_t>(input.steps);
      const std::string what = i < steps ? str("the loss of step ", i + 1) : i == steps ? "w" : "b";
      return str("first wrong element: on rank ", rank, " ", what, " is ", output.data[rank][i], " and has to be ",
                 right[rank][i]);
    }
  }
  return {};
}

Exercise step_exercise() {
  Subject<LineInput, RingOutput> subject;
  subject.function = "rush::labs::train_step";
  subject.inputs = {{1, 2}, {2, 3}, {4, 3}, {3, 5}};
  subject.describe = [](const LineInput& input) {
    return str(input.steps, " steps of SGD with rate ", kRate, " on ", input.ranks,
               " ranks, of the line w x + b with w = 0.5 and b = 0; each rank has two points of its own");
  };
  subject.learners = learners_lines;
  subject.same = [](const RingOutput& a, const RingOutput& b) {
    return a.run.fault.empty() && near_all(a.data, b.data);
  };
  subject.fault = fault_of_lines;
  const std::pair<const char*, StepMistake> mistakes[] = {
      {"each rank takes the step of its own gradients: they have to be averaged between backward and step",
       StepMistake::OwnGradients},
      {"gradients add up over the steps: they have to be dropped before backward", StepMistake::GradientsAddUp},
      {"the loss is this rank's own: it has to be the mean over all", StepMistake::OwnLoss},
      {"the loss is the sum over all ranks: it has to be the mean", StepMistake::SumOfLosses},
      {"the optimiser takes no step", StepMistake::NoStep},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const LineInput& input) {
                                  return RingOutput{lines_after(input, mistake), {}};
                                }});
  }
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> data_parallel_exercises() {
  return {parameters_exercise(), gradients_exercise(), step_exercise()};
}

}  // namespace rush::labs
