// c10::Dict: keys and values in the order of their insertion, shared by its copies, as a Python dict is.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/error/error.h"

namespace c10 {

/// Looks a key up by going through all: what files hold is read once, in order.
template <class Key, class Value>
class Dict {
 public:
  class Entry {
   public:
    Entry(Key key, Value value) : key_(std::move(key)), value_(std::move(value)) {}
    const Key& key() const { return key_; }
    const Value& value() const { return value_; }
    void setValue(Value value) const { value_ = std::move(value); }

   private:
    Key key_;
    mutable Value value_;
  };
  using key_type = Key;
  using mapped_type = Value;
  using size_type = size_t;
  using iterator = typename std::vector<Entry>::const_iterator;

  iterator begin() const { return entries_->begin(); }
  iterator end() const { return entries_->end(); }
  bool empty() const { return entries_->empty(); }
  size_t size() const { return entries_->size(); }
  void clear() const { entries_->clear(); }
  void reserve(size_t count) const { entries_->reserve(count); }

  iterator find(const Key& key) const {
    return std::find_if(begin(), end(), [&](const Entry& entry) { return entry.key() == key; });
  }
  bool contains(const Key& key) const { return find(key) != end(); }
  /// Throws IndexError where there is no such key.
  const Value& at(const Key& key) const {
    const iterator found = find(key);
    RUSH_CHECK_INDEX(found != end(), "Dict: it has no such key; it has ", size(), " others");
    return found->value();
  }
  /// Changes nothing where the key is there already, and says so.
  std::pair<iterator, bool> insert(Key key, Value value) const {
    const iterator found = find(key);
    if (found != end()) return {found, false};
    entries_->emplace_back(std::move(key), std::move(value));
    return {end() - 1, true};
  }
  std::pair<iterator, bool> insert_or_assign(Key key, Value value) const {
    const iterator found = find(key);
    if (found == end()) return insert(std::move(key), std::move(value));
    found->setValue(std::move(value));
    return {found, false};
  }
  size_t erase(const Key& key) const {
    const iterator found = find(key);
    if (found == end()) return 0;
    entries_->erase(found);
    return 1;
  }
  void erase(iterator entry) const { entries_->erase(entry); }
  /// With entries of its own.
  Dict copy() const {
    Dict other;
    *other.entries_ = *entries_;
    return other;
  }
  /// Whether both share their entries.
  bool is(const Dict& other) const { return entries_ == other.entries_; }

 private:
  std::shared_ptr<std::vector<Entry>> entries_ = std::make_shared<std::vector<Entry>>();
};

class IValue;
namespace impl {
using GenericDict = Dict<IValue, IValue>;
}  // namespace impl

}  // namespace c10
