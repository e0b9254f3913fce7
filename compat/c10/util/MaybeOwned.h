// c10::MaybeOwned: what a function returns that sometimes has its argument to return, and sometimes makes something
// new.
#pragma once
#include <rushlight.h>

#include <utility>

namespace rush {

/// A handle that knows whether it is another handle on what the caller had, "borrowed", or the only one.
template <class T>
class MaybeOwned {
 public:
  MaybeOwned() = default;
  static MaybeOwned borrowed(const T& value) { return MaybeOwned(value, true); }
  static MaybeOwned owned(T&& value) { return MaybeOwned(std::move(value), false); }
  template <class... Args>
  static MaybeOwned owned(std::in_place_t, Args&&... args) {
    return MaybeOwned(T(std::forward<Args>(args)...), false);
  }

  const T& operator*() const& { return value_; }
  T operator*() && { return borrowed_ ? value_ : std::move(value_); }
  const T* operator->() const { return &value_; }
  bool unsafeIsBorrowed() const { return borrowed_; }

 private:
  MaybeOwned(T value, bool borrowed) : value_(std::move(value)), borrowed_(borrowed) {}
  T value_;
  bool borrowed_ = true;
};

}  // namespace rush

namespace c10 {
using rush::MaybeOwned;
}
