// Lab 3: an operator end to end. What it has to give is computed here from the formula, in double precision, for
// tensors of several dtypes and layouts; its derivatives are also compared with finite differences.
#include "tests/labs/solutions/isrlu.h"

#include <cmath>
#include <limits>

#include "autograd/debug/gradcheck.h"
#include "autograd/grad_mode.h"
#include "core/dispatch/call.h"
#include "core/dispatch/schema.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "tests/labs/exercise.h"

namespace rush::labs {
namespace {

using Values = std::vector<double>;

// Registers the learner's operators, once. Throws what that throws.
void ensure_registered() {
  static const bool done = (register_isrlu(registry()), true);
  static_cast<void>(done);
}

Tensor isrlu(const Tensor& self, std::optional<double> alpha) {
  ensure_registered();
  std::vector<std::pair<std::string, Value>> named;
  if (alpha) named.emplace_back("alpha", *alpha);
  return call_operator("lab::isrlu", {self}, named)[0].as<Tensor>();
}
void isrlu_(const Tensor& self, double alpha) {
  ensure_registered();
  call_operator("lab::isrlu_", {self}, {{"alpha", alpha}});
}

// As thrown_by, with the exception's type where the page names it.
std::string thrown_with_type(const std::function<void()>& call) {
  std::string type;
  const std::string text = thrown_by([&] {
    try {
      call();
    } catch (const ValueError&) {
      type = "ValueError: ";
      throw;
    } catch (const TypeError&) {
      type = "TypeError: ";
      throw;
    }
  });
  return type + text;
}

// Empty when `threw`, from thrown_with_type, is of the type that it has to be.
std::string fault_of_throw(const char* what, const std::string& type, const std::string& threw) {
  if (threw.find(type + ":") == 0) return {};
  return str(what, " to throw ", type, threw.empty() ? ", and does not" : "; it threw: ", threw);
}

Values values_of(const Tensor& t) {
  const Tensor flat = t.to(kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

bool same_values(const Values& a, const Values& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
  });
}

std::string fault_of_values(const char* what, const Values& got, const Values& right, const Values& inputs,
                            double tolerance) {
  for (size_t i = 0; i < right.size(); ++i) {
    if (i >= got.size()) return str("first wrong element: element ", i, " of ", what, " is not there");
    if (same_values({got[i]}, {right[i]}, tolerance)) continue;
    return str("first wrong element: element ", i, " of ", what, " is ", got[i], " and has to be ", right[i],
               ", where x is ", inputs[i]);
  }
  return {};
}

// ---- registration ----

struct Registered {
  std::string schema, threw;
};

Registered learners_schema(const std::string& name) {
  Registered result;
  result.threw = thrown_by(ensure_registered);
  if (!result.threw.empty()) return result;
  const OpBase* op = registry().find(name);
  if (op) result.schema = op->schema();
  return result;
}

std::string right_schema(const std::string& name) {
  return name == "lab::isrlu" ? "lab::isrlu(Tensor self, Scalar alpha=1) -> Tensor"
                              : "lab::isrlu_(Tensor(a!) self, Scalar alpha=1) -> Tensor(a!)";
}

// With all that is in `text` after `from`, up to the next character of `ends`, replaced.
std::string with_replaced(std::string text, const std::string& from, const char* ends, const std::string& by) {
  const size_t begin = text.find(from) + from.size();
  return text.replace(begin, text.find_first_of(ends, begin) - begin, by);
}

Exercise register_exercise() {
  Subject<std::string, Registered> subject;
  subject.function = "rush::labs::register_isrlu";
  subject.inputs = {"lab::isrlu", "lab::isrlu_"};
  subject.learners = learners_schema;
  subject.describe = [](const std::string& name) { return str("the operator ", name, " in the registry"); };
  subject.fault = [](const std::string& name, const Registered& got) -> std::string {
    if (!got.threw.empty()) return str("it threw: ", got.threw);
    if (got.schema.empty()) return "there is no operator of this name";
    if (got.schema == right_schema(name)) return {};
    return str("its schema is ", got.schema, " and has to be ", right_schema(name));
  };
  subject.mistakes = {
      {"the default of alpha is another one: it has to be 1", nullptr,
       [](const std::string& name, const Registered& got) {
         const std::string& schema = got.schema;
         const bool has_default = schema.find("alpha=") != std::string::npos;
         return has_default && with_replaced(schema, "alpha=", ")", "1") == right_schema(name);
       }},
      {"alpha has no default: it has to be 1", nullptr,
       [](const std::string& name, const Registered& got) {
         const std::string without = with_replaced(right_schema(name), "alpha", ")", "");
         return got.schema == without || got.schema == right_schema(name);
       }},
      {"the schema of isrlu_ does not say that it writes: Tensor(a!)", nullptr,
       [](const std::string& name, const Registered& got) {
         const bool writes = got.schema.find("(a!)") != std::string::npos;
         return name == "lab::isrlu" ? got.schema == right_schema(name) : !writes && !got.schema.empty();
       }},
      {"isrlu_ is not registered: it is an operator of its own", nullptr,
       [](const std::string& name, const Registered& got) {
         return name == "lab::isrlu" ? got.schema == right_schema(name) : got.schema.empty() && got.threw.empty();
       }},
  };
  return exercise(std::move(subject));
}

// ---- values ----

enum class Layout { Contiguous, EverySecond, Transposed, Expanded };

struct ForwardCall {
  Values x;  // (2, n / 2)
  std::optional<double> alpha;
  ScalarType dtype = kFloat64;
  Layout layout = Layout::Contiguous;
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const Values kNumbers = {-3, -0.5, 0.25, 2, -1, 0, 1.5, -0.125};
const Values kWhole = {-3, 2, 0, -1};

// A tensor (2, n / 2) of these values, laid out as asked for; expanded, both rows are the first.
Tensor laid_out(const Values& values, ScalarType dtype, Layout layout) {
  const auto columns = static_cast<int64_t>(values.size() / 2);
  const Tensor plain = tensor(values, kFloat64).to(dtype).view({2, columns});
  switch (layout) {
    case Layout::EverySecond: {
      const Tensor wide = full({2, columns, 2}, 77, TensorOptions(dtype));
      Tensor every_second = wide.select(2, 0);
      every_second.copy_(plain);
      return every_second;
    }
    case Layout::Transposed: return plain.t().contiguous().t();
    case Layout::Expanded: return plain.narrow(0, 0, 1).expand({2, columns});
    default: return plain;
  }
}

// By the input's elements, as the call sees them.
Values inputs_of(const ForwardCall& call) { return values_of(laid_out(call.x, call.dtype, call.layout)); }

double tolerance_of(ScalarType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kBFloat16 || dtype == kFloat16 ? 1e-2 : 1e-6;
}

struct Output {
  Values values;
  ScalarType dtype = kFloat64;
  std::string threw;
};

Output learners_output(const ForwardCall& call) {
  Output output;
  output.threw = thrown_with_type([&] {
    const Tensor result = isrlu(laid_out(call.x, call.dtype, call.layout), call.alpha);
    output.dtype = result.scalar_type();
    output.values = values_of(result);
  });
  return output;
}

enum class Forward { None, BranchesSwapped, NoSquare, NoRoot, NoAlpha, AlphaSquared, EveryBranch, InverseMissing };

double isrlu_of(double x, double alpha, Forward mistake) {
  double inside = 1 + alpha * x * x;
  if (mistake == Forward::NoAlpha) inside = 1 + x * x;
  if (mistake == Forward::AlphaSquared) inside = 1 + alpha * alpha * x * x;
  if (mistake == Forward::NoSquare) inside = 1 + alpha * std::abs(x);
  const double root = mistake == Forward::NoRoot ? inside : std::sqrt(inside);
  const double bent = mistake == Forward::InverseMissing ? x * root : x / root;
  if (mistake == Forward::EveryBranch) return bent;
  return (x < 0) != (mistake == Forward::BranchesSwapped) ? bent : x;
}

Values right_values(const Values& x, double alpha, Forward mistake = Forward::None) {
  Values values;
  for (const double each : x) values.push_back(isrlu_of(each, alpha, mistake));
  return values;
}

ScalarType right_dtype(ScalarType dtype) { return is_floating_point(dtype) ? dtype : kFloat32; }

std::string describe_forward(const ForwardCall& call) {
  const char* const layouts[] = {"contiguous", "of which every second element is skipped", "column by column in memory",
                                 "expanded from one row"};
  std::string values;
  for (const double x : call.x) values += str(values.empty() ? "" : ", ", x);
  return str("isrlu(self, ", call.alpha ? str("alpha=", *call.alpha) : "alpha left out", ") of a ", call.dtype,
             " tensor (2, ", call.x.size() / 2, "), ", layouts[static_cast<int>(call.layout)], ", of ", values);
}

std::string fault_of_output(const ForwardCall& call, const Output& output) {
  const double alpha = call.alpha.value_or(1);
  if (alpha < 0) return fault_of_throw("alpha below 0 has", "ValueError", output.threw);
  if (!output.threw.empty()) return str("it threw: ", output.threw);
  if (output.dtype != right_dtype(call.dtype)) {
    return str("the result's dtype is ", output.dtype, " and has to be ", right_dtype(call.dtype));
  }
  const Values inputs = inputs_of(call);
  return fault_of_values("the result", output.values, right_values(inputs, alpha), inputs, tolerance_of(call.dtype));
}

Subject<ForwardCall, Output> forward_subject(const char* function, std::vector<ForwardCall> calls) {
  Subject<ForwardCall, Output> subject;
  subject.function = function;
  subject.inputs = std::move(calls);
  subject.learners = learners_output;
  subject.describe = describe_forward;
  subject.same = [](const Output& a, const Output& b) {
    return a.threw.empty() && a.dtype == b.dtype && same_values(a.values, b.values, 1e-9);
  };
  subject.fault = fault_of_output;
  return subject;
}

Exercise functor_exercise() {
  auto subject = forward_subject(
      "rush::labs::Isrlu<double>::operator()",
      {{kNumbers, 1}, {kNumbers, 3}, {kNumbers, 0.25}, {{-1000, -1e-4, 0, 1000}, 2}, {{kNaN, -1, 0, 1}, 1}});
  const std::pair<const char*, Forward> mistakes[] = {
      {"the branches are swapped: the root is for what is below 0", Forward::BranchesSwapped},
      {"the root bends what is above 0, too: there the result is x", Forward::EveryBranch},
      {"x is not squared under the root", Forward::NoSquare},
      {"the root is left out", Forward::NoRoot},
      {"x is multiplied by the root: it has to be divided", Forward::InverseMissing},
      {"alpha is ignored", Forward::NoAlpha},
      {"alpha is squared: only x is", Forward::AlphaSquared},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const ForwardCall& call) {
                                  return Output{right_values(inputs_of(call), *call.alpha, mistake), call.dtype, {}};
                                }});
  }
  return exercise(std::move(subject));
}

Exercise kernel_exercise() {
  auto subject = forward_subject("rush::labs::isrlu_kernel", {{kNumbers, 1, kFloat32},
                                                              {kNumbers, 1, kBFloat16},
                                                              {kNumbers, 2, kFloat64, Layout::Transposed},
                                                              {kNumbers, 2, kFloat64, Layout::EverySecond},
                                                              {kNumbers, 2, kFloat32, Layout::Expanded},
                                                              {{}, 2, kFloat64}});
  // A mistake that shows in the calls that `concerns` picks, and leaves the others right.
  const auto shows_in = [](std::function<bool(const ForwardCall&)> concerns) {
    return [=](const ForwardCall& call, const Output& output) {
      return fault_of_output(call, output).empty() != concerns(call);
    };
  };
  subject.mistakes = {
      {"the strides are ignored: element i is at data + i * stride", nullptr, shows_in([](const ForwardCall& call) {
         return call.layout == Layout::EverySecond || call.layout == Layout::Expanded;
       })},
      {"the strides are ignored: element i is at data + i * stride", nullptr,
       shows_in([](const ForwardCall& call) { return call.layout == Layout::EverySecond; })},
      {"16-bit dtypes have no kernel: RealFloatTypes has all that are needed", nullptr,
       shows_in([](const ForwardCall& call) { return call.dtype == kBFloat16; })},
  };
  return exercise(std::move(subject));
}

Exercise front_exercise() {
  auto subject = forward_subject("rush::labs::isrlu_front", {{kWhole, 1, kInt64},
                                                             {kWhole, 2, kInt32, Layout::EverySecond},
                                                             {kNumbers, std::nullopt, kFloat32},
                                                             {kNumbers, 1, kFloat16},
                                                             {kNumbers, 0, kFloat32},
                                                             {kNumbers, -1, kFloat64}});
  const auto is_whole = [](const ForwardCall& call) { return !is_floating_point(call.dtype); };
  subject.mistakes = {
      {"integers stay integers: Promotion::Float makes them the default floating dtype", nullptr,
       [=](const ForwardCall& call, const Output& output) {
         return is_whole(call) ? !output.threw.empty() || output.dtype == call.dtype
                               : fault_of_output(call, output).empty();
       }},
      {"alpha below 0 is taken: the root may be that of a negative number", nullptr,
       [](const ForwardCall& call, const Output& output) {
         return call.alpha && *call.alpha < 0 ? output.threw.empty() : fault_of_output(call, output).empty();
       }},
  };
  return exercise(std::move(subject));
}

// ---- in place ----

struct Written {
  Values values;
  bool same_memory = true;
  int64_t versions = 0;  // that the call added
  std::string threw;
};

// The call is isrlu_ of the same tensor, with alpha given.
Written learners_written(const ForwardCall& call) {
  const Tensor t = laid_out(call.x, call.dtype, call.layout);
  const void* memory = t.data_ptr();
  const int64_t version = t._version();
  Written written;
  written.threw = thrown_with_type([&] { isrlu_(t, *call.alpha); });
  written.values = values_of(t);
  written.same_memory = t.data_ptr() == memory;
  written.versions = t._version() - version;
  return written;
}

bool is_refused_in_place(const ForwardCall& call) { return !is_floating_point(call.dtype) || *call.alpha < 0; }

std::string fault_of_written(const ForwardCall& call, const Written& written) {
  if (*call.alpha < 0) return fault_of_throw("alpha below 0 has", "ValueError", written.threw);
  if (!is_floating_point(call.dtype)) return fault_of_throw("integers have", "TypeError", written.threw);
  if (!written.threw.empty()) return str("it threw: ", written.threw);
  const Values inputs = inputs_of(call);
  const std::string fault = fault_of_values("the tensor", written.values, right_values(inputs, *call.alpha), inputs,
                                            tolerance_of(call.dtype));
  if (!fault.empty()) return fault;
  if (!written.same_memory) return "the tensor has other memory than before";
  return written.versions > 0 ? "" : "the tensor's version stays: what has saved it does not see the write";
}

Exercise inplace_exercise() {
  Subject<ForwardCall, Written> subject;
  subject.function = "rush::labs::isrlu_front_";
  subject.inputs = {{kNumbers, 1}, {kNumbers, 2, kFloat32, Layout::EverySecond}, {kWhole, 1, kInt64}, {kNumbers, -1}};
  subject.learners = learners_written;
  subject.describe = [](const ForwardCall& call) { return str("in place, ", describe_forward(call)); };
  subject.fault = fault_of_written;
  subject.mistakes = {
      {"the tensor keeps its values: the iterator's output has to be `self`, and not a new tensor", nullptr,
       [](const ForwardCall& call, const Written& written) {
         return is_refused_in_place(call) || (written.threw.empty() && written.values == inputs_of(call));
       }},
      {"the write is not counted: an operator that is not declared with Tensor& and (a!) does not count it", nullptr,
       [](const ForwardCall& call, const Written& written) {
         return is_refused_in_place(call) || (written.threw.empty() && written.versions == 0);
       }},
  };
  return exercise(std::move(subject));
}

// ---- the derivative ----

enum class Use { Plain, Scaled, InPlace, Overwritten, Twice };

struct DerivativeCall {
  Values x;
  double alpha;
  Use use = Use::Plain;
};

// The gradient that comes in: 1, or another number for each element.
Values incoming(const DerivativeCall& call) {
  Values g(call.x.size(), 1);
  if (call.use != Use::Plain) {
    for (size_t i = 0; i < g.size(); ++i) g[i] = 1 + 0.5 * static_cast<double>(i);
  }
  return g;
}

struct Gradient {
  Values values;
  std::string threw;
};

Gradient learners_gradient(const DerivativeCall& call) {
  Gradient gradient;
  gradient.threw = thrown_by([&] {
    const Tensor x = tensor(call.x, kFloat64).requires_grad_();
    const Tensor copy = call.use == Use::Twice ? x : x * 1;  // the second pass has to end at the learner's node
    Tensor y;
    if (call.use == Use::InPlace) {
      isrlu_(copy, call.alpha);
      y = copy;
    } else {
      y = isrlu(copy, call.alpha);
    }
    if (call.use == Use::Overwritten) {
      const NoGradGuard no_grad;
      Tensor(copy).add_(1);
    }
    (y * tensor(incoming(call), kFloat64)).sum().backward();
    if (call.use == Use::Twice) y.sum().backward();
    gradient.values = values_of(x.grad());
  });
  return gradient;
}

enum class Derivative { None, BranchesSwapped, OuterOnly, RootOnly, NoIncoming, NoAlpha, OfResult, EveryBranch, Zero };

// 1 where x >= 0; below, with r = sqrt(1 + alpha x^2), the quotient rule gives 1/r - alpha x^2 / r^3 = 1/r^3.
double derivative_of(double x, double alpha, Derivative mistake) {
  if (mistake == Derivative::OfResult) x = isrlu_of(x, alpha, Forward::None);
  if (mistake == Derivative::Zero && x >= 0) return 0;
  if (mistake == Derivative::NoAlpha) alpha = 1;
  const double root = std::sqrt(1 + alpha * x * x);
  double below = 1 / (root * root * root);
  if (mistake == Derivative::OuterOnly) below = 1 / root;
  if (mistake == Derivative::RootOnly) below = -0.5 / (root * root * root);
  if (mistake == Derivative::EveryBranch) return below;
  return (x < 0) != (mistake == Derivative::BranchesSwapped) ? below : 1;
}

Values right_gradient(const DerivativeCall& call, Derivative mistake) {
  Values gradient = incoming(call);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double slope = derivative_of(call.x[i], call.alpha, mistake);
    gradient[i] = mistake == Derivative::NoIncoming ? slope : gradient[i] * slope;
  }
  return gradient;
}

std::string describe_derivative(const DerivativeCall& call) {
  const char* const uses[] = {"y.sum()", "(y * weights).sum()", "(y * weights).sum(), where y is isrlu_ of a copy of x",
                              "(y * weights).sum(), where y's input was written after the call",
                              "(y * weights).sum() and then again of y.sum()"};
  std::string values;
  for (const double x : call.x) values += str(values.empty() ? "" : ", ", x);
  return str("the gradient of ", uses[static_cast<int>(call.use)], " by x, with alpha ", call.alpha, " and x ", values);
}

std::string fault_of_gradient(const DerivativeCall& call, const Gradient& gradient) {
  if (call.use == Use::Overwritten) {
    return gradient.threw.empty() ? "the backward pass has to throw Error, since what it needs was written" : "";
  }
  if (call.use == Use::Twice) {
    return gradient.threw.empty() ? "the second backward pass has to throw Error, since the first frees what was saved"
                                  : "";
  }
  if (!gradient.threw.empty()) return str("it threw: ", gradient.threw);
  return fault_of_values("the gradient", gradient.values, right_gradient(call, Derivative::None), call.x, 1e-9);
}

Exercise derivative_exercise() {
  Subject<DerivativeCall, Gradient> subject;
  subject.function = "rush::labs::IsrluBackward::apply";
  subject.inputs = {{kNumbers, 1},
                    {kNumbers, 3},
                    {kNumbers, 1, Use::Scaled},
                    {kNumbers, 2, Use::InPlace},
                    {kNumbers, 2, Use::Overwritten},
                    {kNumbers, 2, Use::Twice}};
  subject.learners = learners_gradient;
  subject.describe = describe_derivative;
  subject.same = [](const Gradient& a, const Gradient& b) {
    return a.threw.empty() == b.threw.empty() && same_values(a.values, b.values, 1e-9);
  };
  subject.fault = fault_of_gradient;
  const std::pair<const char*, Derivative> mistakes[] = {
      {"the derivative is that of the other branch: it is 1 where x >= 0", Derivative::BranchesSwapped},
      {"the derivative is 0 where x >= 0: there it is 1", Derivative::Zero},
      {"what is above 0 has the derivative of what is below", Derivative::EveryBranch},
      {"a factor of the chain rule is missing: the root depends on x as well, which makes 1/r^3 of 1/r",
       Derivative::OuterOnly},
      {"the derivative of 1/sqrt(u) alone is not that of x/sqrt(1 + alpha x^2): the quotient rule has two terms",
       Derivative::RootOnly},
      {"the gradient that comes in is ignored: it has to be multiplied by the derivative", Derivative::NoIncoming},
      {"alpha is ignored in the derivative", Derivative::NoAlpha},
      {"the derivative is computed from the result: it is a formula in the input", Derivative::OfResult},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back(
        {name, [mistake = mistake](const DerivativeCall& call) {
           const bool throws =
               call.use == Use::Twice || (call.use == Use::Overwritten && mistake != Derivative::OfResult);
           return throws ? Gradient{{}, "as it has to"} : Gradient{right_gradient(call, mistake), {}};
         }});
  }
  subject.mistakes.push_back({"the input is kept without its version: a member of type Saved notices later writes",
                              nullptr, [](const DerivativeCall& call, const Gradient& gradient) {
                                if (call.use == Use::Twice) return true;
                                return call.use == Use::Overwritten ? gradient.threw.empty()
                                                                    : fault_of_gradient(call, gradient).empty();
                              }});
  subject.mistakes.push_back({"what is saved is not listed: RUSH_SAVED(self) is what the engine frees it by", nullptr,
                              [](const DerivativeCall& call, const Gradient& gradient) {
                                return call.use == Use::Twice ? gradient.threw.empty()
                                                              : fault_of_gradient(call, gradient).empty();
                              }});
  subject.mistakes.push_back({"isrlu_ has no derivative: it needs the same as isrlu", nullptr,
                              [](const DerivativeCall& call, const Gradient& gradient) {
                                return call.use == Use::InPlace ? !fault_of_gradient(call, gradient).empty()
                                                                : fault_of_gradient(call, gradient).empty();
                              }});
  return exercise(std::move(subject));
}

// Finite differences, of the operator and of its derivative.
Exercise differences_exercise() {
  Subject<int, std::string> subject;
  subject.function = "rush::labs::IsrluBackward::apply";
  subject.inputs = {1, 2};
  subject.learners = [](int order) {
    const auto check = order == 1 ? autograd::gradcheck : autograd::gradgradcheck;
    return thrown_by([&] {
      const Tensor x = laid_out(kNumbers, kFloat64, Layout::EverySecond).add(0.01).detach().requires_grad_();
      check([](const Tensors& inputs) { return Tensors{isrlu(inputs[0], 0.7)}; }, {x}, {});
    });
  };
  subject.describe = [](int order) {
    return str(order == 1 ? "gradcheck" : "gradgradcheck", " of isrlu with alpha 0.7, of a tensor (2, 4)");
  };
  subject.fault = [](int, const std::string& threw) { return threw; };
  subject.mistakes = {{"the derivative has no derivative: call public operators, with recording on", nullptr,
                       [](int order, const std::string& threw) { return threw.empty() == (order == 1); }}};
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> operator_exercises() {
  return {register_exercise(), functor_exercise(),    kernel_exercise(),     front_exercise(),
          inplace_exercise(),  derivative_exercise(), differences_exercise()};
}

}  // namespace rush::labs
