// What an extension of PyTorch includes. There is no Python here to bind it to: the block of PYBIND11_MODULE is parsed,
// and nothing calls it. Programs call the functions themselves, or by the names that TORCH_LIBRARY gives them.
#pragma once
#include "torch/all.h"
#include "torch/library.h"

#ifndef PYBIND11_MODULE
namespace pybind11 {
// There is no interpreter whose lock could be given back or taken.
struct gil_scoped_release {
  gil_scoped_release() {}
};
struct gil_scoped_acquire {
  gil_scoped_acquire() {}
};
struct arg {
  explicit arg(const char*) {}
  template <class T>
  arg& operator=(const T&) {
    return *this;
  }
};
struct module_ {
  template <class... Bound>
  module_& def(const Bound&...) {
    return *this;
  }
};
using module = module_;
}  // namespace pybind11
namespace py = pybind11;
#define PYBIND11_MODULE(name, variable) \
  template <class Module>               \
  [[maybe_unused]] static void python_module([[maybe_unused]] Module& variable)
#endif
