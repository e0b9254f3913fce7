// What happens to an element that is written at an index: old value and new value to what is stored.
#pragma once
#include "core/macros.h"

namespace rush::functors {

struct WriteAssign {
  template <class T>
  RUSH_HD T operator()(T, T value) const {
    return value;
  }
};

struct WriteAdd {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return static_cast<T>(old + value);
  }
};

struct WriteMultiply {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return static_cast<T>(old * value);
  }
};

// NaN on either side stays, as in PyTorch's reductions.
struct WriteMinimum {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return value < old || value != value ? value : old;
  }
};

struct WriteMaximum {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return old < value || value != value ? value : old;
  }
};

}  // namespace rush::functors
