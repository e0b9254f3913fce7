// Lab 7: modules, on the trees of module_trees.h. State dicts are in module_state.cpp.
#include <set>

#include "core/ops/pointwise/binary.h"
#include "tests/labs/lines_exercise.h"
#include "tests/labs/module_trees.h"

namespace rush::labs {
namespace {

// ---- registration ----

struct Registration {
  const char* name;
  enum What { Plain, Undefined, Computed } what;
  bool requires_grad;
  const char* right;
};
using Registrations = std::vector<Registration>;

enum class RegisterMistake { None, NeverRequires, AlwaysRequires, NamesUnchecked, TakesComputed, AsParameter };

std::string show_registrations(const Registrations& all) {
  std::string text;
  for (const Registration& each : all) {
    const char* what[] = {"a tensor", "an undefined tensor", "the result of a computation"};
    text += str(text.empty() ? "" : "; ", "register '", each.name, "', ", what[each.what],
                each.requires_grad ? "" : ", without a gradient");
  }
  return text;
}

Lines learners_registrations(const Registrations& all, bool parameter) {
  OpenModule module;
  Lines lines;
  const auto state_of = [&](const Registration& each) -> std::string {
    const Tensor leaf = numbers(1).requires_grad_(each.what == Registration::Computed);
    Tensor given = each.what == Registration::Undefined ? Tensor() : leaf;
    if (each.what == Registration::Computed) given = leaf * 2;
    const Tensor& taken = parameter ? module.register_parameter(each.name, given, each.requires_grad)
                                    : module.register_buffer(each.name, given);
    const Tensor* own = module.own_parameters().find(each.name);
    if (parameter && own != &taken) return "it does not return what `parameters_` has";
    if (!taken.defined()) return "undefined";
    if (!taken.is_same(given)) return "another tensor";
    return str(own ? "a parameter" : "a buffer", taken.requires_grad() ? ", requires a gradient" : "");
  };
  for (const Registration& each : all) {
    try {
      lines.push_back(str(each.name, ": ", state_of(each)));
    } catch (const ValueError&) {
      lines.push_back(str(each.name, ": ValueError"));
    }
  }
  return lines;
}

Lines right_registrations(const Registrations& all, RegisterMistake mistake, bool parameter) {
  const std::string kind = parameter || mistake == RegisterMistake::AsParameter ? "a parameter" : "a buffer";
  Lines lines;
  for (const Registration& each : all) {
    std::string right = each.right;
    const std::string name = each.name;
    const bool requires_grad = parameter && each.requires_grad;
    const bool is_bad = name.empty() || name.find('.') != name.npos;
    if (mistake == RegisterMistake::NamesUnchecked && is_bad)
      right = kind + (requires_grad ? ", requires a gradient" : "");
    if (mistake == RegisterMistake::TakesComputed && each.what == Registration::Computed)
      right = "a parameter, requires a gradient";
    if (mistake == RegisterMistake::NeverRequires && right.starts_with("a parameter")) right = kind;
    if (mistake == RegisterMistake::AlwaysRequires && right == "a parameter") right += ", requires a gradient";
    if (mistake == RegisterMistake::AsParameter && right == "a buffer") right = kind;
    lines.push_back(str(name, ": ", right));
  }
  return lines;
}

Exercise registering_exercise(const char* function, bool parameter, std::vector<Registrations> inputs,
                              const std::vector<std::pair<const char*, RegisterMistake>>& mistakes) {
  return lines_exercise<Registrations, RegisterMistake>(
      function, std::move(inputs), show_registrations,
      [=](const Registrations& all) { return learners_registrations(all, parameter); },
      [=](const Registrations& all, RegisterMistake mistake) { return right_registrations(all, mistake, parameter); },
      mistakes);
}

Exercise parameter_exercise() {
  const char* const kTaken = "a parameter, requires a gradient";
  return registering_exercise(
      "rush::nn::Module::register_parameter", true,
      {{{"weight", Registration::Plain, true, kTaken}},
       {{"frozen", Registration::Plain, false, "a parameter"}},
       {{"bias", Registration::Undefined, true, "undefined"}},
       {{"a.b", Registration::Plain, true, "ValueError"}, {"", Registration::Plain, true, "ValueError"}},
       {{"w", Registration::Plain, true, kTaken}, {"w", Registration::Plain, true, "ValueError"}},
       {{"made", Registration::Computed, true, "ValueError"}}},
      {{"the parameter does not require a gradient: no backward pass reaches it", RegisterMistake::NeverRequires},
       {"requires_grad is ignored: a frozen parameter would be trained", RegisterMistake::AlwaysRequires},
       {"names are not checked: a dot in one could not be told from the dot between two",
        RegisterMistake::NamesUnchecked},
       {"the result of a computation becomes a parameter: its gradient goes to what it was computed from",
        RegisterMistake::TakesComputed}});
}

Exercise buffer_exercise() {
  return registering_exercise(
      "rush::nn::Module::register_buffer", false,
      {{{"mean", Registration::Plain, true, "a buffer"}},
       {{"none", Registration::Undefined, true, "undefined"}},
       {{"a.b", Registration::Plain, true, "ValueError"}, {"", Registration::Plain, true, "ValueError"}},
       {{"m", Registration::Plain, true, "a buffer"}, {"m", Registration::Plain, true, "ValueError"}}},
      {{"the buffer becomes a parameter: an optimiser would train it", RegisterMistake::AsParameter},
       {"names are not checked", RegisterMistake::NamesUnchecked}});
}

// ---- the walk ----

enum class WalkMistake { None, TopLevelOnly, KeysOnly, NameGrows, NoDot };

Lines learners_walk(const Tree& tree) {
  constexpr size_t kMost = 100;
  Grown grown(tree);
  Lines lines;
  for (nn::detail::ModuleWalk walk(grown.root(), ""); !walk.done() && lines.size() < kMost; walk.next()) {
    lines.push_back(str("'", walk.name(), "', depth ", walk.depth()));
  }
  return lines;
}

Lines right_walk(const Tree& tree, WalkMistake mistake) {
  Lines lines;
  std::string grown;
  visit_tree(tree, [&](const std::string& name, const std::string& key, size_t depth, size_t) {
    std::string shown = name;
    if (mistake == WalkMistake::KeysOnly) shown = key;
    if (mistake == WalkMistake::NoDot) std::erase(shown, '.');
    if (mistake == WalkMistake::NameGrows) shown = grown = grown.empty() ? key : grown + "." + key;
    if (mistake == WalkMistake::TopLevelOnly && depth > 1) return;
    lines.push_back(str("'", shown, "', depth ", depth));
  });
  return lines;
}

Exercise walk_exercise() {
  return lines_exercise<Tree, WalkMistake>(
      "rush::nn::detail::ModuleWalk::next", {kOne, kFlat, kNet, kTied}, show_tree, learners_walk, right_walk,
      {{"only the root's own submodules are visited, and none below them", WalkMistake::TopLevelOnly},
       {"a name has no prefix: it has to begin with the parents' names", WalkMistake::KeysOnly},
       {"the name keeps what the last submodule has added: cut it off before the next one's", WalkMistake::NameGrows},
       {"names are joined without a dot", WalkMistake::NoDot}});
}

// ---- named_parameters and named_buffers ----

struct Listing {
  Tree tree;
  bool recurse = true;
};
enum class ListMistake { None, ChildrenLeftOut, NoPrefix, TwiceWhereShared, OtherKind, RecurseIgnored };

std::string show_listing(const Listing& listing) {
  return show(listing.tree) + (listing.recurse ? "" : ", recurse=false");
}

Lines learners_listing(const Listing& listing, bool parameters) {
  Grown grown(listing.tree);
  Lines lines;
  const auto listed =
      parameters ? grown.root().named_parameters(listing.recurse) : grown.root().named_buffers(listing.recurse);
  for (const auto& item : listed) lines.push_back(str(item.key(), ": ", grown.text(item.value())));
  return lines;
}

Lines right_listing(const Listing& listing, ListMistake mistake, bool parameters) {
  const bool recurse =
      mistake == ListMistake::RecurseIgnored || (listing.recurse && mistake != ListMistake::ChildrenLeftOut);
  const bool each_once = mistake != ListMistake::TwiceWhereShared;
  Lines lines;
  std::set<std::string> names;
  for (const NamedSlot& each :
       named_slots(listing.tree, parameters != (mistake == ListMistake::OtherKind), each_once)) {
    if (!recurse && each.depth > 0) continue;
    const std::string name = mistake == ListMistake::NoPrefix ? each.slot.name : each.name;
    if (!names.insert(name).second) return {kThrew};
    lines.push_back(str(name, ": tensor ", each.slot.tensor));
  }
  return lines;
}

Exercise listing_exercise(const char* function, bool parameters,
                          const std::vector<std::pair<const char*, ListMistake>>& mistakes) {
  return lines_exercise<Listing, ListMistake>(
      function, {{kOne}, {kMixed}, {kFlat}, {kNet}, {kNet, false}, {kTied}}, show_listing,
      [=](const Listing& listing) { return learners_listing(listing, parameters); },
      [=](const Listing& listing, ListMistake mistake) { return right_listing(listing, mistake, parameters); },
      mistakes);
}

Exercise parameters_exercise() {
  return listing_exercise(
      "rush::nn::Module::named_parameters", true,
      {{"a child's parameters are left out: they would not be trained", ListMistake::ChildrenLeftOut},
       {"a name has no prefix: it has to begin with the names of the modules above", ListMistake::NoPrefix},
       {"a shared parameter is listed twice: an optimiser would take two steps with it", ListMistake::TwiceWhereShared},
       {"buffers are listed in place of parameters", ListMistake::OtherKind},
       {"recurse is ignored: recurse=false asks for the module's own", ListMistake::RecurseIgnored}});
}

Exercise buffers_exercise() {
  return listing_exercise(
      "rush::nn::Module::named_buffers", false,
      {{"a child's buffers are left out: a state dict would lack them", ListMistake::ChildrenLeftOut},
       {"a name has no prefix: it has to begin with the names of the modules above", ListMistake::NoPrefix},
       {"a shared buffer is listed twice", ListMistake::TwiceWhereShared},
       {"parameters are listed in place of buffers", ListMistake::OtherKind},
       {"recurse is ignored: recurse=false asks for the module's own", ListMistake::RecurseIgnored}});
}

// ---- train ----

struct Mode {
  Tree tree;
  std::vector<std::pair<size_t, bool>> calls;  // of train(bool), on the module of that number
};
enum class ModeMistake { None, DoesNotDescend, AlwaysTrains, SkipsOverrides };

Lines learners_modes(const Mode& mode) {
  Grown grown(mode.tree);
  for (const auto& [module, on] : mode.calls) grown.modules[module]->train(on);
  Lines lines;
  visit_tree(mode.tree, [&](const std::string& name, const std::string&, size_t, size_t module) {
    lines.push_back(str("'", name, "': ", grown.modules[module]->is_training() ? "training" : "evaluating"));
  });
  return lines;
}

void set_modes(const Tree& tree, size_t module, bool on, ModeMistake mistake, std::vector<bool>& modes,
               bool is_called = true) {
  if (tree[module].stays_in_eval && (is_called || mistake != ModeMistake::SkipsOverrides)) on = false;
  const bool value = on || mistake == ModeMistake::AlwaysTrains;
  modes[module] = value;
  if (mistake == ModeMistake::DoesNotDescend) return;
  for (const Below& below : tree[module].below) set_modes(tree, below.module, value, mistake, modes, false);
}

Lines right_modes(const Mode& mode, ModeMistake mistake) {
  std::vector<bool> modes(mode.tree.size(), true);
  for (const auto& [module, on] : mode.calls) set_modes(mode.tree, module, on, mistake, modes);
  Lines lines;
  visit_tree(mode.tree, [&](const std::string& name, const std::string&, size_t, size_t module) {
    lines.push_back(str("'", name, "': ", modes[module] ? "training" : "evaluating"));
  });
  return lines;
}

Exercise train_exercise() {
  return lines_exercise<Mode, ModeMistake>(
      "rush::nn::Module::train",
      {{kOne, {{0, false}}}, {kNet, {{0, false}}}, {kNet, {{0, false}, {2, true}}}, {kStays, {{0, true}}}},
      [](const Mode& mode) {
        std::string text = show(mode.tree);
        for (const auto& [module, on] : mode.calls) {
          std::string called = "net";
          visit_tree(mode.tree, [&, at = module](const std::string& name, const std::string&, size_t, size_t number) {
            if (number == at && number > 0) called = str("net.", name);
          });
          text += str(", ", called, ".train(", on ? "true" : "false", ")");
        }
        return text;
      },
      learners_modes, right_modes,
      {{"train() does not descend: the submodules' dropout goes on in evaluation", ModeMistake::DoesNotDescend},
       {"`on` is ignored, or no mode is set: eval() is train(false)", ModeMistake::AlwaysTrains},
       {"a submodule's own train() is not called: its class may have overridden it", ModeMistake::SkipsOverrides}});
}

// ---- convert and to ----

struct Conversion {
  Tree tree;
  ScalarType dtype;
};
enum class ConvertMistake { None, Replaced, GradientStays, CountsToo, BuffersStay, ChildrenStay, OwnStays };

// Gives gradients to the weights that require one: ten times their values.
void give_gradients(const Tree& tree, Grown& grown) {
  for (const NamedSlot& each : all_slots(tree)) {
    if (each.slot.kind == Kind::Weight)
      grown.tensors[each.slot.tensor].mutable_grad() = numbers(10.0 * each.slot.tensor);
  }
}

template <bool with_device>
Lines learners_conversion(const Conversion& conversion) {
  Grown grown(conversion.tree);
  give_gradients(conversion.tree, grown);
  if (with_device) {
    grown.root().to(Device(kCPU), conversion.dtype);
  } else {
    grown.root().to(conversion.dtype);
  }
  const auto parameters = grown.root().named_parameters(), buffers = grown.root().named_buffers();
  Lines lines;
  for (const NamedSlot& each : all_slots(conversion.tree)) {
    const Tensor* found = is_parameter(each.slot.kind) ? parameters.find(each.name) : buffers.find(each.name);
    const Tensor& held = grown.tensors[each.slot.tensor];
    if (!found || !found->is_same(held)) {
      lines.push_back(str(each.name, ": another tensor"));
      continue;
    }
    lines.push_back(str(each.name, ": ", held.scalar_type(), " ", values_text(held),
                        held.requires_grad() ? ", requires a gradient" : ""));
    if (held.grad().defined())
      lines.back() += str(", which is ", held.grad().scalar_type(), " ", values_text(held.grad()));
  }
  return lines;
}

Lines right_conversion(const Conversion& conversion, ConvertMistake mistake) {
  Lines lines;
  for (const NamedSlot& each : all_slots(conversion.tree)) {
    const auto [name, kind, number] = each.slot;
    const bool is_left = (mistake == ConvertMistake::BuffersStay && !is_parameter(kind)) ||
                         (mistake == ConvertMistake::ChildrenStay && each.depth > 0) ||
                         (mistake == ConvertMistake::OwnStays && each.depth == 0);
    const ScalarType before = kind == Kind::Count ? kInt64 : kFloat32;
    const bool converts = !is_left && (kind != Kind::Count || mistake == ConvertMistake::CountsToo);
    const ScalarType dtype = converts ? conversion.dtype : before;
    if (mistake == ConvertMistake::Replaced && dtype != before) {
      lines.push_back(str(each.name, ": another tensor"));
      continue;
    }
    const bool requires_grad = kind == Kind::Weight;
    lines.push_back(
        str(each.name, ": ", dtype, " (", number, ", ", number + 1, ")", requires_grad ? ", requires a gradient" : ""));
    const ScalarType grads = mistake == ConvertMistake::GradientStays ? kFloat32 : dtype;
    if (requires_grad) lines.back() += str(", which is ", grads, " (", 10 * number, ", ", 10 * number + 1, ")");
  }
  return lines;
}

std::string show_conversion(const Conversion& conversion) {
  return str(show(conversion.tree), " to ", conversion.dtype);
}

Exercise convert_exercise() {
  return lines_exercise<Conversion, ConvertMistake>(
      "rush::nn::Module::convert", {{kOne, kFloat32}, {kOne, kFloat64}, {kMixed, kFloat64}}, show_conversion,
      learners_conversion<true>, right_conversion,
      {{"the tensors are replaced: an optimiser still has the old ones, and trains them; set_data keeps the tensor",
        ConvertMistake::Replaced},
       {"the gradient keeps its dtype: an optimiser's step has two", ConvertMistake::GradientStays},
       {"whole numbers are converted, too: a dtype is for floating point and complex tensors",
        ConvertMistake::CountsToo},
       {"the buffers are left out", ConvertMistake::BuffersStay}});
}

Exercise to_exercise() {
  return lines_exercise<Conversion, ConvertMistake>(
      "rush::nn::Module::to", {{kOne, kFloat64}, {kNet, kFloat64}, {kTied, kFloat64}, {kNet, kFloat32}},
      show_conversion, learners_conversion<false>, right_conversion,
      {{"to() does not descend: the submodules keep their dtype", ConvertMistake::ChildrenStay},
       {"the module's own tensors are left out", ConvertMistake::OwnStays}});
}

// ---- zero_grad ----

struct Clearing {
  Tree tree;
  bool set_to_none;
};
enum class ClearMistake { None, ChildrenStay, OwnStays, NeverDrops, AlwaysDrops };

Lines learners_clearing(const Clearing& clearing) {
  Grown grown(clearing.tree);
  give_gradients(clearing.tree, grown);
  grown.root().zero_grad(clearing.set_to_none);
  Lines lines;
  for (const NamedSlot& each : all_slots(clearing.tree)) {
    const Tensor& held = grown.tensors[each.slot.tensor];
    lines.push_back(str(each.name, ": ", values_text(held), ", gradient ",
                        held.grad().defined() ? values_text(held.grad()) : "undefined"));
  }
  return lines;
}

Lines right_clearing(const Clearing& clearing, ClearMistake mistake) {
  Lines lines;
  for (const NamedSlot& each : all_slots(clearing.tree)) {
    const auto [name, kind, number] = each.slot;
    const bool stays = each.depth > 0 ? mistake == ClearMistake::ChildrenStay : mistake == ClearMistake::OwnStays;
    const bool drops =
        mistake == ClearMistake::AlwaysDrops || (clearing.set_to_none && mistake != ClearMistake::NeverDrops);
    std::string gradient =
        stays ? str("(", 10 * number, ", ", 10 * number + 1, ")") : std::string(drops ? "undefined" : "(0, 0)");
    if (kind != Kind::Weight) gradient = "undefined";
    lines.push_back(str(each.name, ": (", number, ", ", number + 1, "), gradient ", gradient));
  }
  return lines;
}

Exercise zero_grad_exercise() {
  return lines_exercise<Clearing, ClearMistake>(
      "rush::nn::Module::zero_grad", {{kMixed, true}, {kOne, false}, {kNet, true}, {kNet, false}},
      [](const Clearing& clearing) {
        return str(show(clearing.tree), ", set_to_none=", clearing.set_to_none ? "true" : "false");
      },
      learners_clearing, right_clearing,
      {{"zero_grad() does not descend: the gradients of submodules add up from step to step",
        ClearMistake::ChildrenStay},
       {"the module's own gradients are left out", ClearMistake::OwnStays},
       {"set_to_none is ignored: the gradients are never dropped", ClearMistake::NeverDrops},
       {"set_to_none is ignored: the gradients are always dropped", ClearMistake::AlwaysDrops}});
}

}  // namespace

std::vector<Exercise> module_exercises() {
  std::vector<Exercise> all = {parameter_exercise(),  buffer_exercise(),  walk_exercise(),
                               parameters_exercise(), buffers_exercise(), train_exercise(),
                               convert_exercise(),    to_exercise(),      zero_grad_exercise()};
  for (Exercise& exercise : module_state_exercises()) all.push_back(std::move(exercise));
  return all;
}

}  // namespace rush::labs
