// OrderedDict: a dictionary that keeps the order of insertion, as Python's does.
#pragma once
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error/error.h"

namespace rush {

template <class Key, class Value>
class OrderedDict {
 public:
  /// A key and its value; the key cannot be changed.
  class Item {
   public:
    /// * and -> are those of the value.
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    Value& operator*() noexcept { return value(); }
    const Value& operator*() const noexcept { return value(); }
    Value* operator->() noexcept { return &value(); }
    const Value* operator->() const noexcept { return &value(); }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  /// `key_description` names a key in errors.
  explicit OrderedDict(std::string key_description = "Key") : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict() {
    for (const Item& item : items) insert(item.key(), item.value());
  }
  /// The key's name in errors, and the items in the order in which they were inserted. contains() takes O(1).
  const std::string& key_description() const noexcept { return key_description_; }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  bool contains(const Key& key) const noexcept { return index_.count(key) != 0; }
  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }
  const std::vector<Item>& items() const noexcept { return items_; }
  /// The first and the last item, and that at a position. Throw IndexError when there is none.
  Item& front() { return (*this)[size_t{0}]; }
  Item& back() { return (*this)[items_.size() - 1]; }
  Item& operator[](size_t index) {
    RUSH_CHECK_INDEX(!is_empty(), "OrderedDict: an item of an empty dictionary of ", key_description_, "s");
    RUSH_CHECK_INDEX(index < items_.size(), "OrderedDict: ", key_description_, " ", index, " of ", items_.size());
    return items_[index];
  }
  const Item& operator[](size_t index) const { return const_cast<OrderedDict&>(*this)[index]; }

  /// The value of a key. Throws ValueError when there is none.
  Value& operator[](const Key& key) {
    Value* value = find(key);
    RUSH_CHECK_VALUE(value, key_description_, " '", key, "' is not defined");
    return *value;
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }

  /// Null when there is none.
  Value* find(const Key& key) noexcept {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &items_[found->second].value();
  }
  const Value* find(const Key& key) const noexcept { return const_cast<OrderedDict*>(this)->find(key); }

  /// Throws ValueError when the key is there already; whatever it throws, nothing was changed.
  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    const auto [place, added] = index_.emplace(key, items_.size());
    RUSH_CHECK_VALUE(added, key_description_, " '", place->first, "' already defined");
    try {
      items_.emplace_back(std::forward<K>(key), std::forward<V>(value));
    } catch (...) {
      index_.erase(place);
      throw;
    }
    return items_.back().value();
  }
  Value& insert(Key key, Value&& value) {  // so that braces make a value: insert("a", {1, 2})
    return insert<Key, Value>(std::move(key), std::move(value));
  }
  /// Inserts all of `other`.
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  /// Throws ValueError when there is no such key.
  void erase(const Key& key) {
    const auto found = index_.find(key);
    RUSH_CHECK_VALUE(found != index_.end(), key_description_, " '", key, "' is not defined");
    const size_t gone = found->second;
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(gone));
    index_.erase(found);
    for (auto& [other_key, position] : index_) position -= position > gone ? 1 : 0;
  }
  void clear() {
    index_.clear();
    items_.clear();
  }
  /// Copies, in the order in which they were inserted.
  std::vector<Key> keys() const { return each(&Item::key); }
  std::vector<Value> values() const { return each<Value>(&Item::value); }
  std::vector<std::pair<Key, Value>> pairs() const { return each(&Item::pair); }

 private:
  template <class Part>
  std::vector<Part> each(const Part& (Item::*part)() const noexcept) const {
    std::vector<Part> parts;
    parts.reserve(size());
    for (const Item& item : items_) parts.push_back((item.*part)());
    return parts;
  }

  std::unordered_map<Key, size_t> index_;
  std::vector<Item> items_;
  std::string key_description_;
};

}  // namespace rush
