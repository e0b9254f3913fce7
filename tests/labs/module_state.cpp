// Lab 7: state dicts of the modules of module_trees.h.
#include "nn/state/module_state.h"

#include "core/ops/view/join.h"
#include "tests/labs/lines_exercise.h"
#include "tests/labs/module_trees.h"

namespace rush::labs {
namespace {

enum class SaveMistake { None, NoBuffers, Copies, StaysAttached, OwnOnly };

Lines learners_state(const Tree& tree) {
  Grown grown(tree);
  const StateDict dict = state_dict(grown.root());
  Lines lines;
  for (const auto& item : dict) {
    std::string text = "a copy";
    for (const auto& [number, tensor] : grown.tensors) {
      if (tensor.defined() && tensor.data_ptr() == item->data_ptr()) text = str("the memory of tensor ", number);
    }
    lines.push_back(str(item.key(), ": ", text, item->requires_grad() ? ", requires a gradient" : ""));
  }
  return lines;
}

Lines right_state(const Tree& tree, SaveMistake mistake) {
  Lines lines;
  for (const NamedSlot& each : all_slots(tree)) {
    if (mistake == SaveMistake::NoBuffers && !is_parameter(each.slot.kind)) continue;
    if (mistake == SaveMistake::OwnOnly && each.depth > 0) continue;
    const bool attached = mistake == SaveMistake::StaysAttached && each.slot.kind == Kind::Weight;
    const std::string memory = str("the memory of tensor ", each.slot.tensor);
    lines.push_back(str(each.name, ": ", mistake == SaveMistake::Copies ? "a copy" : memory,
                        attached ? ", requires a gradient" : ""));
  }
  return lines;
}

Exercise state_exercise() {
  return lines_exercise<Tree, SaveMistake>(
      "rush::state_dict", {kOne, kMixed, kNet, kTied}, show_tree, learners_state, right_state,
      {{"the buffers are left out: running statistics would begin at their start again", SaveMistake::NoBuffers},
       {"the tensors are copies: a state dict shows the module's own memory", SaveMistake::Copies},
       {"the tensors are not detached: a computation with them would be recorded", SaveMistake::StaysAttached},
       {"only the module's own tensors are there", SaveMistake::OwnOnly}});
}

struct Change {
  const char* name;
  enum What { Dropped, Added, Reshaped, Doubled } what;
};
struct Loading {
  Tree tree;
  std::vector<Change> changes = {};  // to a dict that fits
};
enum class LoadMistake {
  None,
  IgnoresMissing,
  IgnoresUnexpected,
  OtherMemory,
  LoadsWhatFits,
  LoadsUntilWrong,
  OneProblem,
  NoBuffers,
  Nothing
};

bool is_wrong(const Change& change) { return change.what != Change::Doubled; }

StateDict dict_for(const Loading& loading) {
  StateDict dict("state");
  for (const NamedSlot& each : all_slots(loading.tree)) {
    ScalarType dtype = each.slot.kind == Kind::Count ? kInt64 : kFloat32;
    bool is_there = true, is_long = false;
    for (const Change& change : loading.changes) {
      if (each.name != change.name) continue;
      is_there &= change.what != Change::Dropped;
      is_long |= change.what == Change::Reshaped;
      if (change.what == Change::Doubled) dtype = kFloat64;
    }
    const Tensor value = numbers(100 + each.slot.tensor, dtype);
    if (is_there) dict.insert(each.name, is_long ? stack({value, value}) : value);
  }
  for (const Change& change : loading.changes) {
    if (change.what == Change::Added) dict.insert(change.name, numbers(0));
  }
  return dict;
}

Lines learners_loading(const Loading& loading) {
  Grown grown(loading.tree);
  std::map<int, void*> memory;
  for (const auto& [number, tensor] : grown.tensors) {
    if (tensor.defined()) memory[number] = tensor.data_ptr();
  }
  Lines lines = {"it throws nothing"};
  try {
    load_state_dict(grown.root(), dict_for(loading));
  } catch (const ValueError& error) {
    lines = {"it throws a ValueError"};
    for (const Change& change : loading.changes) {
      const bool is_named = std::string(error.what()).find(change.name) != std::string::npos;
      if (is_wrong(change)) lines.push_back(str("which ", is_named ? "names " : "does not name ", change.name));
    }
  }
  for (const NamedSlot& each : all_slots(loading.tree)) {
    const int number = each.slot.tensor;
    const Tensor& held = grown.tensors[number];
    lines.push_back(str(each.name, ": ", held.scalar_type(), " ", values_text(held),
                        held.data_ptr() == memory[number] ? "" : ", in other memory"));
  }
  return lines;
}

Lines right_loading(const Loading& loading, LoadMistake mistake) {
  const auto is_seen = [&](const Change& change) {
    if (change.what == Change::Dropped && mistake == LoadMistake::IgnoresMissing) return false;
    if (change.what == Change::Added && mistake == LoadMistake::IgnoresUnexpected) return false;
    return is_wrong(change);
  };
  const bool fails = std::any_of(loading.changes.begin(), loading.changes.end(), is_seen);
  Lines lines = {fails ? "it throws a ValueError" : "it throws nothing"};
  size_t named = 0;
  for (const Change& change : loading.changes) {
    if (!fails || !is_wrong(change)) continue;
    const bool is_named = is_seen(change) && (mistake != LoadMistake::OneProblem || named == 0);
    lines.push_back(str("which ", is_named ? "names " : "does not name ", change.name));
    named += is_named;
  }
  bool goes_on = !fails || mistake == LoadMistake::LoadsWhatFits || mistake == LoadMistake::LoadsUntilWrong;
  for (const NamedSlot& each : all_slots(loading.tree)) {
    const auto [name, kind, number] = each.slot;
    bool fits = true;
    for (const Change& change : loading.changes) {
      if (each.name == change.name && (change.what == Change::Dropped || change.what == Change::Reshaped)) fits = false;
    }
    if (!fits && mistake == LoadMistake::LoadsUntilWrong) goes_on = false;
    const bool loaded =
        goes_on && fits && mistake != LoadMistake::Nothing && (mistake != LoadMistake::NoBuffers || is_parameter(kind));
    const int first = number + (loaded ? 100 : 0);
    lines.push_back(str(each.name, ": ", kind == Kind::Count ? kInt64 : kFloat32, " (", first, ", ", first + 1, ")",
                        loaded && mistake == LoadMistake::OtherMemory ? ", in other memory" : ""));
  }
  return lines;
}

Exercise loading_exercise() {
  return lines_exercise<Loading, LoadMistake>(
      "rush::load_state_dict",
      {{kOne},
       {kNet},
       {kTied},
       {kNet, {{"fc1.weight", Change::Doubled}}},
       {kOne, {{"b", Change::Dropped}}},
       {kOne, {{"c", Change::Added}}},
       {kNet, {{"body.1.weight", Change::Reshaped}}},
       {kNet, {{"fc1.bias", Change::Dropped}, {"fc3.weight", Change::Added}, {"body.1.mean", Change::Reshaped}}}},
      [](const Loading& loading) {
        std::string text = show(loading.tree);
        const char* what[] = {" is missing", " is there, too", " has another shape", " is float64"};
        for (const Change& change : loading.changes) text += str(", in the dict ", change.name, what[change.what]);
        return text;
      },
      learners_loading, right_loading,
      {{"what is missing in the dict is ignored: the module keeps some old values", LoadMistake::IgnoresMissing},
       {"what the module does not have is ignored: a name that is spelled otherwise would not be noticed",
        LoadMistake::IgnoresUnexpected},
       {"the tensors get other memory: load_state_dict copies into that which views and captured graphs know",
        LoadMistake::OtherMemory},
       {"what fits is loaded although the dict does not fit: check all before the first copy",
        LoadMistake::LoadsWhatFits},
       {"what comes before the first misfit is loaded: check all before the first copy", LoadMistake::LoadsUntilWrong},
       {"the message names one problem only", LoadMistake::OneProblem},
       {"the buffers are not loaded", LoadMistake::NoBuffers},
       {"nothing is loaded: the copy goes elsewhere", LoadMistake::Nothing}});
}

}  // namespace

std::vector<Exercise> module_state_exercises() { return {state_exercise(), loading_exercise()}; }

}  // namespace rush::labs
