// Reference-counted objects that carry their own count, so that a raw pointer can be turned back into an owner.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace rush {

/// Base of everything held by an intrusive_ptr. An object starts with one reference, owned by make_intrusive.
class IntrusiveTarget {
 public:
  IntrusiveTarget() = default;
  IntrusiveTarget(const IntrusiveTarget&) = delete;
  IntrusiveTarget& operator=(const IntrusiveTarget&) = delete;
  virtual ~IntrusiveTarget() = default;

  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }  // how many handles refer to it

  /// Called when the last reference goes. Nodes override it, so that freeing a long graph does not recurse.
  virtual void destroy() { delete this; }

 private:
  template <class T>
  friend class intrusive_ptr;
  mutable std::atomic<uint32_t> count_{1};
};

template <class T>
class intrusive_ptr {  // a handle on a T, an IntrusiveTarget; null holds nothing
 public:
  using element_type = T;

  intrusive_ptr() = default;
  intrusive_ptr(std::nullptr_t) {}
  intrusive_ptr(const intrusive_ptr& other) : target_(other.target_) { retain(); }
  intrusive_ptr(intrusive_ptr&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  template <class U>
  intrusive_ptr(intrusive_ptr<U> other) : target_(other.release()) {}
  intrusive_ptr& operator=(const intrusive_ptr& other) {
    intrusive_ptr(other).swap(*this);
    return *this;
  }
  intrusive_ptr& operator=(intrusive_ptr&& other) noexcept {
    intrusive_ptr(std::move(other)).swap(*this);
    return *this;
  }
  ~intrusive_ptr() { reset(); }

  /// Takes over a reference that the caller owns (from `release`, or the one that a new object starts with).
  static intrusive_ptr take(T* target) {
    intrusive_ptr p;
    p.target_ = target;
    return p;
  }
  /// Adds a reference to an object that has an owner.
  static intrusive_ptr share(T* target) {
    intrusive_ptr p;
    p.target_ = target;
    p.retain();
    return p;
  }

  /// As `share`, for an object whose last reference may be gone: then it returns null. T must have T::revivable.
  static intrusive_ptr try_share(T* target) {
    static_assert(revivable);
    // acquire: who finds no owner left, and puts something in its place, sees what the last one did
    uint32_t count = target->count_.load(std::memory_order_acquire);
    while (count != 0) {
      if (target->count_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return take(target);
    }
    return {};
  }

  /// Gives up the reference without dropping it.
  T* release() noexcept { return std::exchange(target_, nullptr); }
  void reset() noexcept {  // drops the reference
    T* target = std::exchange(target_, nullptr);
    if (!target) return;
    if constexpr (!revivable) {
      // The last owner need not write the count: nobody else can see the object any more.
      if (target->count_.load(std::memory_order_acquire) == 1) return target->destroy();
    }
    if (target->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) target->destroy();
  }
  void swap(intrusive_ptr& other) noexcept { std::swap(target_, other.target_); }
  /// As std::shared_ptr has them; the use_count() of null is 0.
  T* get() const noexcept { return target_; }
  T& operator*() const noexcept { return *target_; }
  T* operator->() const noexcept { return target_; }
  explicit operator bool() const noexcept { return target_ != nullptr; }
  uint32_t use_count() const noexcept { return target_ ? target_->use_count() : 0; }
#include "core/ops/libtorch_intrusive_ptr.inc"

  friend bool operator==(const intrusive_ptr& a, const intrusive_ptr& b) { return a.target_ == b.target_; }
  friend bool operator==(const intrusive_ptr& a, std::nullptr_t) { return a.target_ == nullptr; }

 private:
  // Asked for where T is complete.
  static constexpr bool revivable = requires { T::revivable; };

  void retain() const noexcept {
    if (target_) target_->count_.fetch_add(1, std::memory_order_relaxed);
  }

  T* target_ = nullptr;
};

template <class T, class... Args>
intrusive_ptr<T> make_intrusive(Args&&... args) {  // the handle on a new T(args...)
  return intrusive_ptr<T>::take(new T(std::forward<Args>(args)...));
}

}  // namespace rush
