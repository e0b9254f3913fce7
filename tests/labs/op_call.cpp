// Lab 4: the call of an operator. Of each call it is asked which kernel it goes to, and with which keys. The answers
// are found by going through all keys from the highest on, with lists of what each operator has.
#include <optional>
#include <set>

#include "core/error/error.h"
#include "tests/labs/exercise.h"
#include "tests/labs/probe_operators.h"

namespace rush::labs {
namespace {

// ---- arguments ----

enum class Kind { Plain, Recorded, Sparse, Meta, Gpu, Inference, Undefined, None };

// Made without a call: calls go through the learner's file.
Tensor tensor_of(Kind kind) {
  if (kind == Kind::Undefined || kind == Kind::None) return {};
  const Device device = kind == Kind::Meta ? Device(kMeta) : kind == Kind::Gpu ? Device(kCUDA, 0) : Device(kCPU);
  auto impl = make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(nullptr, 0, device, nullptr, nullptr), kFloat32,
                                         device, kind == Kind::Sparse ? kSparse : kStrided);
  impl->set_contiguous({0});
  impl->set_requires_autograd(kind == Kind::Recorded);
  impl->set_inference(kind == Kind::Inference);
  return Tensor(std::move(impl));
}

KeySet keys_of_kind(Kind kind) {
  switch (kind) {
    case Kind::Recorded: return KeySet(DispatchKey::Autograd) | DispatchKey::Dense | kCPU;
    case Kind::Sparse: return KeySet(DispatchKey::Sparse) | kCPU;
    case Kind::Meta: return KeySet(DispatchKey::Dense) | kMeta;
    case Kind::Gpu: return KeySet(DispatchKey::Dense) | kCUDA;
    case Kind::Undefined: return DispatchKey::UndefinedTensor;
    case Kind::None: return {};
    default: return KeySet(DispatchKey::Dense) | kCPU;
  }
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::Plain: return "a plain tensor";
    case Kind::Recorded: return "a tensor that requires a gradient";
    case Kind::Sparse: return "a sparse tensor";
    case Kind::Meta: return "a tensor on meta";
    case Kind::Gpu: return "a tensor on a GPU";
    case Kind::Inference: return "an inference tensor";
    case Kind::Undefined: return "an undefined tensor";
    default: return "nothing";
  }
}

// ---- keys_of and device_key ----

struct Argument {
  enum Type { OneTensor, Optional, List, OptionalList, Number } type;
  std::vector<Kind> kinds;
};

std::string describe_kinds(const std::vector<Kind>& kinds) {
  std::string text;
  for (Kind kind : kinds) text += (text.empty() ? "" : ", ") + std::string(name_of(kind));
  return text;
}

// For an optional: none, and not one that holds an undefined tensor.
std::optional<Tensor> optional_of(Kind kind) {
  return kind == Kind::None ? std::nullopt : std::optional(tensor_of(kind));
}

KeySet learners_keys(const Argument& argument) {
  std::vector<Tensor> tensors;
  std::vector<std::optional<Tensor>> optionals;
  for (Kind kind : argument.kinds) {
    tensors.push_back(tensor_of(kind));
    optionals.push_back(optional_of(kind));
  }
  switch (argument.type) {
    case Argument::OneTensor: return keys_of_argument(tensors[0]);
    case Argument::Optional: return keys_of_argument(optionals[0]);
    case Argument::List: return keys_of_argument(TensorList(tensors));
    case Argument::OptionalList: return keys_of_argument(OptionalTensorList(optionals));
    default: return keys_of_argument(int64_t{3});
  }
}

bool is_optional(const Argument& argument) {
  return argument.type == Argument::Optional || argument.type == Argument::OptionalList;
}

enum class KeysMistake { None, UndefinedPasses, NoneCounts, ListPasses, FirstOfList, LastOfList };

KeySet keys_of_one(Kind kind, bool optional, KeysMistake mistake) {
  if (kind != Kind::Undefined && kind != Kind::None) return keys_of_kind(kind);
  if (optional) return mistake == KeysMistake::NoneCounts ? KeySet(DispatchKey::UndefinedTensor) : KeySet();
  return mistake == KeysMistake::UndefinedPasses ? KeySet() : keys_of_kind(kind);
}

KeySet keys_with(const Argument& argument, KeysMistake mistake) {
  std::vector<Kind> kinds = argument.kinds;
  const bool is_list = argument.type == Argument::List || argument.type == Argument::OptionalList;
  if (is_list && mistake == KeysMistake::ListPasses) kinds.clear();
  if (is_list && !kinds.empty() && mistake == KeysMistake::FirstOfList) kinds = {kinds.front()};
  if (is_list && !kinds.empty() && mistake == KeysMistake::LastOfList) kinds = {kinds.back()};
  KeySet keys;
  for (Kind kind : kinds) keys |= keys_of_one(kind, is_optional(argument), mistake);
  return keys;
}

std::string fault_of_keys(KeySet got, KeySet right) {
  if (got == right) return {};
  const KeySet surplus = got.without(right), missing = right.without(got);
  return str("first wrong element: ",
             surplus.empty() ? str(missing, " is missing") : str(surplus, " is in it and must not be"), "; it gives ",
             got, " and has to give ", right);
}

Exercise keys_exercise() {
  Subject<Argument, KeySet> subject;
  subject.function = "rush::detail::keys_of";
  subject.inputs = {{Argument::OneTensor, {Kind::Plain}},
                    {Argument::OneTensor, {Kind::Recorded}},
                    {Argument::OneTensor, {Kind::Meta}},
                    {Argument::OneTensor, {Kind::Undefined}},
                    {Argument::Number, {}},
                    {Argument::Optional, {Kind::Recorded}},
                    {Argument::Optional, {Kind::None}},
                    {Argument::Optional, {Kind::Undefined}},
                    {Argument::List, {}},
                    {Argument::List, {Kind::Plain, Kind::Recorded, Kind::Sparse}},
                    {Argument::List, {Kind::Meta, Kind::Undefined, Kind::Plain}},
                    {Argument::OptionalList, {Kind::None, Kind::Recorded, Kind::None}}};
  subject.learners = learners_keys;
  subject.describe = [](const Argument& argument) {
    const char* const types[] = {"", "an optional that holds ", "a list of ", "a list of optionals that hold ",
                                 "a number"};
    const std::string kinds = describe_kinds(argument.kinds);
    return str("keys_of(", types[argument.type],
               kinds.empty() && argument.type != Argument::Number ? "no tensors" : kinds, ")");
  };
  subject.same = std::equal_to<>();
  subject.fault = [](const Argument& argument, KeySet got) {
    return fault_of_keys(got, keys_with(argument, KeysMistake::None));
  };
  const std::pair<const char*, KeysMistake> mistakes[] = {
      {"an undefined tensor counts as nothing: it has the key UndefinedTensor, so that a call that is given one is "
       "refused",
       KeysMistake::UndefinedPasses},
      {"an optional that holds nothing counts as an undefined tensor: it may be left out", KeysMistake::NoneCounts},
      {"the tensors of lists do not count", KeysMistake::ListPasses},
      {"only the first tensor of a list counts", KeysMistake::FirstOfList},
      {"only the last tensor of a list counts: a list has the keys of all, which |= gathers", KeysMistake::LastOfList},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const Argument& a) { return keys_with(a, mistake); }});
  }
  return exercise(std::move(subject));
}

Exercise device_exercise() {
  using Asked = std::optional<Device>;
  Subject<Asked, KeySet> subject;
  subject.function = "rush::detail::device_key";
  subject.inputs = {Asked(), Asked(kMeta), Asked(kCPU)};
  subject.learners = [](const Asked& asked) { return key_of_device(asked) | key_of_device(Tensor()); };
  subject.describe = [](const Asked& asked) {
    return str("device_key(", asked ? str(*asked) : "no device", "), and of a tensor, which is no device");
  };
  subject.same = std::equal_to<>();
  subject.fault = [](const Asked& asked, KeySet got) {
    return fault_of_keys(got, asked ? KeySet(asked->type) | DispatchKey::Dense : KeySet());
  };
  subject.mistakes = {
      {"a device has no key for the kernel: it needs Dense beside its type, which keys_on() gives",
       [](const Asked& asked) { return asked ? KeySet(asked->type) : KeySet(); }},
      {"the device that is asked for does not count", [](const Asked&) { return KeySet(); }},
  };
  return exercise(std::move(subject));
}

// ---- calls ----

enum class Callee { Two, Maybe, List, Write, Passing, Make };

struct Situation {
  Callee callee;
  std::vector<Kind> arguments;  // of Make: where it is to be
  KeySet included = {}, excluded = {};
  KeySet without = {};  // of call_without
};

struct Stop {
  std::string at;
  int64_t writes = 0;  // that the first argument of Write counts
  friend bool operator==(const Stop&, const Stop&) = default;
};

const OpBase& op_of(Callee callee) {
  const OpBase* const ops[] = {&two, &maybe, &list, &write_, &passing, &make};
  return *ops[static_cast<int>(callee)];
}

// Calls op(arguments...), or op.call_without(without, arguments...).
template <class Signature, class... Args>
void call(const Op<Signature>& op, KeySet without, Args&&... arguments) {
  if (without.empty()) {
    op(std::forward<Args>(arguments)...);
  } else {
    op.call_without(without, std::forward<Args>(arguments)...);
  }
}

void make_call(const Situation& s, std::vector<Tensor>& t) {
  const IncludeDispatchKeyGuard including(s.included);
  const DispatchStateGuard excluding(s.excluded);
  switch (s.callee) {
    case Callee::Two: return call(two, s.without, t[0], t[1]);
    case Callee::Maybe: return call(maybe, s.without, t[0], t[1], optional_of(s.arguments[2]));
    case Callee::List: return call(list, s.without, TensorList(t), int64_t{0});
    case Callee::Write: return call(write_, s.without, t[0], t[1]);
    case Callee::Passing: return call(passing, s.without, t[0], t[1], Scalar(1));
    case Callee::Make:
      const bool on_meta = s.arguments[0] == Kind::Meta;
      return call(make, s.without, IntArrayRef(), std::nullopt, std::nullopt,
                  on_meta ? std::optional<Device>(kMeta) : std::nullopt, std::nullopt);
  }
}

Stop learners_stop(const Situation& situation) {
  std::vector<Tensor> tensors;
  for (Kind kind : situation.arguments) tensors.push_back(tensor_of(kind));
  const bool writes = situation.callee == Callee::Write && situation.arguments[0] != Kind::Inference;
  const int64_t before = writes ? tensors[0]._version() : 0;
  Stop stop;
  stopped_at.clear();
  try {
    make_call(situation, tensors);
    stop.at = stopped_at.empty() ? "no kernel" : stopped_at;
  } catch (const ValueError&) {
    stop.at = "ValueError";
  } catch (const NotImplementedError& error) {
    if (!std::string(error.what()).starts_with("lab::")) throw;
    stop.at = "NotImplementedError";
  } catch (const Error&) {
    stop.at = "Error";
  }
  stop.writes = writes ? tensors[0]._version() - before : 0;
  return stop;
}

enum class CallMistake {
  None,
  LowestFirst,
  FirstArgument,
  ExcludedServe,
  NotIncluded,
  PassingEnds,
  EmptyPassed,
  AutogradWrites,
  NoWrites,
  NoCare,
  OnlyThese,
  NothingLess,
};

// The keys that a call carries.
KeySet carried(const Situation& s, CallMistake mistake) {
  KeySet keys;
  for (Kind kind : s.arguments) {
    keys |= keys_of_kind(kind);
    if (mistake == CallMistake::FirstArgument && s.callee != Callee::List) break;
  }
  if (keys.empty()) keys = KeySet(DispatchKey::Dense) | kCPU;
  if (mistake != CallMistake::NotIncluded) keys |= s.included;
  if (mistake != CallMistake::ExcludedServe) keys = keys.without(s.excluded);
  bool above = false;
  for (int i = 1; i < static_cast<int>(DispatchKey::UndefinedTensor); ++i) {
    const KeySet key = static_cast<DispatchKey>(i);
    above = s.without.has(key) || (above && mistake != CallMistake::OnlyThese);
    if (above && mistake != CallMistake::NothingLess) keys = keys.without(key);
  }
  return keys;
}

// What serves one key of a call: empty where the next one has to be looked at.
std::string served(const Situation& s, KeySet keys, DispatchKey key, CallMistake mistake) {
  const bool is_front = s.callee == Callee::Passing || s.callee == Callee::Make;
  const std::set<DispatchKey> kernels =
      is_front ? std::set{DispatchKey::Dense} : std::set{DispatchKey::Dense, DispatchKey::Autograd, DispatchKey::Free2};
  if (key == DispatchKey::UndefinedTensor) return "ValueError";
  if (kernels.count(key)) return name(key);
  const bool passes = s.callee == Callee::Passing && key == DispatchKey::Free1;
  const bool has_fallback = key == DispatchKey::Free1 || key == DispatchKey::Free2;
  const bool is_claimed = (has_fallback && !passes) || key == DispatchKey::Sparse;
  if (!is_claimed) return mistake == CallMistake::PassingEnds ? "NotImplementedError" : "";
  if (mistake == CallMistake::EmptyPassed) return "";
  return has_fallback ? str("the fallback of ", name(key), ", given ", keys) : "NotImplementedError";
}

Stop stop_with(const Situation& s, CallMistake mistake) {
  const KeySet keys = carried(s, mistake);
  const bool is_inference = s.callee == Callee::Write && s.arguments[0] == Kind::Inference && s.without.empty();
  Stop stop{is_inference ? "Error" : "", 0};
  for (int i = 1; i < kNumDispatchKeys && stop.at.empty(); ++i) {
    const auto key = static_cast<DispatchKey>(mistake == CallMistake::LowestFirst ? i : kNumDispatchKeys - i);
    if (keys.has(key)) stop.at = served(s, keys, key, mistake);
    const bool is_kernel_below = stop.at == name(DispatchKey::Dense);
    const bool counts = mistake == CallMistake::AutogradWrites ? !stop.at.empty() : is_kernel_below;
    if (s.callee == Callee::Write && counts && mistake != CallMistake::NoWrites) stop.writes = 1;
  }
  if (stop.at.empty()) stop.at = "NotImplementedError";
  // A kernel is not given tensors of several devices.
  const bool mixed = keys.has(KeySet(kCUDA) | kCPU);
  if (mixed && stop.at == name(DispatchKey::Dense) && mistake != CallMistake::NoCare) stop.at = "ValueError";
  return stop;
}

std::string describe_situation(const Situation& s) {
  std::string text = s.without.empty() ? str(op_of(s.callee).name(), "(")
                                       : str(op_of(s.callee).name(), ".call_without(", s.without, ", ");
  text += s.callee == Callee::Make ? (s.arguments[0] == Kind::Meta ? "device meta" : "no device")
                                   : describe_kinds(s.arguments);
  text += ")";
  if (!s.included.empty()) text += str(", while the thread includes ", s.included);
  if (!s.excluded.empty()) text += str(", while the thread excludes ", s.excluded);
  return text;
}

std::string fault_of_stop(const Situation& s, const Stop& stop) {
  const Stop right = stop_with(s, CallMistake::None);
  if (stop.at != right.at) {
    return str("first wrong element: the call ends at ", stop.at, ", and has to end at ", right.at, "; it carries ",
               carried(s, CallMistake::None));
  }
  if (stop.writes == right.writes) return {};
  return str("first wrong element: the call counts ", stop.writes, " writes to its first argument, and has to count ",
             right.writes, "; it ends at ", stop.at);
}

using Mistakes = std::vector<std::pair<const char*, CallMistake>>;

Exercise call_exercise(const char* function, std::vector<Situation> situations, const Mistakes& mistakes) {
  Subject<Situation, Stop> subject;
  subject.function = function;
  subject.inputs = std::move(situations);
  subject.learners = learners_stop;
  subject.describe = describe_situation;
  subject.same = std::equal_to<>();
  subject.fault = fault_of_stop;
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const Situation& s) { return stop_with(s, mistake); }});
  }
  return exercise(std::move(subject));
}

const Mistakes kInEveryCall = {
    {"the lowest key is first: it has to be the highest of those that the operator implements",
     CallMistake::LowestFirst},
    {"only the keys of the first argument count: a call carries those of all", CallMistake::FirstArgument},
    {"keys that the thread excludes serve the call: dispatch_state.excluded has to be taken off",
     CallMistake::ExcludedServe},
    {"keys that the thread includes do not count: dispatch_state.included has to be added", CallMistake::NotIncluded},
    {"a key that the operator passes by ends the search: `mask_` has those that it implements, and the others do not "
     "count",
     CallMistake::PassingEnds},
    {"the search goes on below an empty slot: a key that the operator claims without a kernel ends in resolve(), which "
     "finds a fallback or throws",
     CallMistake::EmptyPassed},
    {"every stop of a call counts as a write: only a kernel below Autograd writes", CallMistake::AutogradWrites},
    {"writes are not counted: bump_if_written has to be called when a kernel below Autograd has run",
     CallMistake::NoWrites},
    {"the care is left out: where needs_care() says so, `careful_` makes the call, which finds its device",
     CallMistake::NoCare},
};

Exercise operator_exercise() {
  using enum Kind;
  const KeySet autograd = DispatchKey::Autograd, free1 = DispatchKey::Free1, free2 = DispatchKey::Free2,
               free3 = DispatchKey::Free3;
  return call_exercise("rush::Op::operator()",
                       {{Callee::Two, {Plain, Plain}},
                        {Callee::Two, {Recorded, Plain}},
                        {Callee::Two, {Plain, Recorded}},
                        {Callee::Maybe, {Plain, Plain, Recorded}},
                        {Callee::Maybe, {Plain, Meta, None}},
                        {Callee::List, {Plain, Plain, Recorded}},
                        {Callee::Two, {Recorded, Plain}, {}, autograd},
                        {Callee::Two, {Plain, Recorded}, free2},
                        {Callee::Two, {Recorded, Plain}, free2, free2},
                        {Callee::Two, {Recorded, Plain}, free3},
                        {Callee::Passing, {Recorded, Plain}},
                        {Callee::Two, {Recorded, Meta}, free1},
                        {Callee::Passing, {Plain, Plain}, free1},
                        {Callee::Make, {None}, free1},
                        {Callee::Make, {Meta}, free1},
                        {Callee::Two, {Plain, Sparse}},
                        {Callee::Two, {Plain, Gpu}},
                        {Callee::Two, {Recorded, Gpu}},
                        {Callee::Two, {Plain, Undefined}},
                        {Callee::Write, {Plain, Plain}},
                        {Callee::Write, {Plain, Recorded}},
                        {Callee::Write, {Inference, Plain}}},
                       kInEveryCall);
}

Exercise without_exercise() {
  using enum Kind;
  const KeySet autograd = DispatchKey::Autograd, free1 = DispatchKey::Free1, free2 = DispatchKey::Free2;
  Mistakes mistakes = {
      {"only the keys themselves are taken off: the call has stopped at those above them, and must not again",
       CallMistake::OnlyThese},
      {"the call goes on at the keys where it was: those of `without` and above have to be taken off",
       CallMistake::NothingLess}};
  mistakes.insert(mistakes.end(), kInEveryCall.begin(), kInEveryCall.end());
  return call_exercise("rush::Op::call_without",
                       {{Callee::Two, {Recorded, Plain}, {}, {}, autograd},
                        {Callee::Two, {Plain, Recorded}, free2, {}, free2},
                        {Callee::Two, {Plain, Recorded}, free2, {}, autograd},
                        {Callee::List, {Plain, Recorded}, free2 | free1, {}, free1},
                        {Callee::Two, {Recorded, Plain}, free2, autograd, free2},
                        {Callee::Two, {Plain, Undefined}, {}, {}, autograd},
                        {Callee::Two, {Recorded, Gpu}, {}, {}, autograd},
                        {Callee::Two, {Recorded, Meta}, free1 | free2, {}, free2},
                        {Callee::Write, {Plain, Recorded}, {}, {}, autograd}},
                       mistakes);
}

}  // namespace

std::vector<Exercise> call_exercises() {
  register_probe_operators();
  return {keys_exercise(), device_exercise(), operator_exercise(), without_exercise()};
}

}  // namespace rush::labs
