// State dicts of optimisers, schedules, samplers and loaders: what a checkpoint keeps of them.
#pragma once
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/tensor.h"
#include "nn/ordered_dict.h"

namespace rush {

// Note [State dicts]
// A state dict is tensors by name, in an order that is always the same. Numbers stand in it as tensors without
// dimensions (float64, int64, bool) and lists of numbers as vectors, so that all of it goes into a safetensors file as
// it is: `io::save_safetensors(path, optimizer.state_dict().pairs())`. Names join PyTorch's with dots:
// "state.3.exp_avg", "param_groups.0.lr".
// A class that has a state names its members once, in a function that takes StateFields; that function serves saving
// and loading.
using StateDict = OrderedDict<std::string, Tensor>;

namespace detail {
std::string joined(const std::vector<std::string>& parts, const char* separator);
}  // namespace detail

/// One pass over named members: it either writes them into a StateDict or reads them from one. Reading goes on after a
/// failure, leaving such a member alone; `finish` reports all of them at once.
class StateFields {
 public:
  static constexpr int64_t kMostCounted = int64_t{1} << 53;

  /// Writes.
  explicit StateFields(StateDict* dict) : out_(dict) {}
  /// Reads.
  explicit StateFields(const StateDict& dict);

  bool reading() const { return in_ != nullptr; }  // otherwise it writes
  /// Reading: whether the dict has more names within the present scopes.
  bool any_left() const;

  void operator()(std::string_view name, bool& value);
  void operator()(std::string_view name, double& value);
  /// Counters beyond kMostCounted are refused, so that arithmetic on them cannot overflow.
  void operator()(std::string_view name, int64_t& value);
  /// All 64 bits: a seed, say. Kept as two halves.
  void operator()(std::string_view name, uint64_t& value);
  void operator()(std::string_view name, std::tuple<double, double>& value);
  void operator()(std::string_view name, std::vector<double>& values);
  void operator()(std::string_view name, std::vector<int64_t>& values);
  /// Nothing is written for an empty one, and a name that is absent reads as empty.
  void operator()(std::string_view name, std::optional<double>& value);
  void operator()(std::string_view name, std::optional<int64_t>& value);
  /// A list whose length is given by the program: another one is refused.
  template <class T>
  void fixed(std::string_view name, std::vector<T>& values) {
    std::vector<T> read = values;
    (*this)(name, read);
    if (read.size() == values.size()) {
      values = std::move(read);
    } else {
      misfit(name, values.size(), read.size());
    }
  }
  /// A count from 0 to `most`.
  void count(std::string_view name, uint64_t& value, uint64_t most = kMostCounted);
  /// A number that the program gives: another one is refused.
  void given(std::string_view name, uint64_t value);
  /// All names within the present scopes, as a dict of its own.
  void part(StateDict& dict);
  /// An enumeration of `count` values from 0 on.
  template <class Enum>
  void enumeration(std::string_view name, Enum& value, int64_t count) {
    auto number = static_cast<int64_t>(value);
    (*this)(name, number);
    if (number >= 0 && number < count) {
      value = static_cast<Enum>(number);
    } else {
      problem(name, "is no choice: " + std::to_string(number));
    }
  }
  /// A tensor of the sizes, dtype and device of `like`. What is read is copied, and converted to that dtype; an
  /// undefined tensor is not written; one that is not `required` may be absent.
  void tensor(std::string_view name, Tensor& value, const Tensor& like, bool required = true);
  /// Several such tensors, as the rows of one.
  void rows(std::string_view name, std::deque<Tensor>& values, const Tensor& like);

  /// Reading: a failure of the caller's own.
  void problem(std::string_view name, const std::string& what) {
    wrong_.push_back(prefix_ + std::string(name) + " " + what);
  }
  /// Throws ValueError, in one line that starts with `who`, if anything was missing, of a wrong shape or dtype, or left
  /// over.
  void finish(std::string_view who) const;

  /// Puts `prefix` before the names while it lives.
  class Scope {
   public:
    Scope(StateFields& fields, const std::string& prefix) : fields_(fields), length_(fields.prefix_.size()) {
      fields.prefix_ += prefix;
    }
    ~Scope() { fields_.prefix_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StateFields& fields_;
    size_t length_;
  };

 private:
  template <class T>
  void number(std::string_view name, T& value);
  template <class T>
  void optional_number(std::string_view name, std::optional<T>& value);
  template <class T>
  void list(std::string_view name, std::vector<T>& values);
  template <class T>
  bool in_range(std::string_view name, const T& value);
  void write(std::string_view name, Tensor value);
  bool contains(std::string_view name) const;
  // Null, and noted, if there is none.
  const Tensor* take(std::string_view name);
  // -1 in `sizes` stands for any number.
  bool fits(std::string_view name, const Tensor& value, IntArrayRef sizes, ScalarType dtype, bool exact_dtype);
  void misfit(std::string_view name, size_t expected, size_t got);

  StateDict* out_ = nullptr;
  const StateDict* in_ = nullptr;
  std::set<std::string_view> left_;  // names in `in_` that nobody has asked for yet
  std::string prefix_;
  std::vector<std::string> missing_, wrong_;
};

/// What an object that names its members in `visit(StateFields&)` writes there.
template <class T>
StateDict saved_state(T& object) {
  StateDict dict("state");
  StateFields fields(&dict);
  object.visit(fields);
  return dict;
}

/// Lets such an object read them. Throws ValueError, in one line that starts with `who`, and restores the object, if
/// the dict does not fit.
template <class T>
void load_state(T& object, const StateDict& dict, std::string_view who) {
  const StateDict before = saved_state(object);
  try {
    StateFields fields(dict);
    object.visit(fields);
    fields.finish(who);
  } catch (...) {
    StateFields fields(before);
    object.visit(fields);
    throw;
  }
}

}  // namespace rush
