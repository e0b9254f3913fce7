// What a capstone defines, and what it may use: `./rush lab capstone` compiles a project with this header, and grades
// it by these functions. docs/labs/capstone.md says how.
#pragma once
#include <initializer_list>
#include <vector>

#include "core/dispatch/registry.h"

namespace capstone {

// ---- what the project defines ----

/// What the checks have to know of the operator. Its schema begins with two tensors or more, and ends with a number
/// that has a default: capstone::NAME(Tensor a, Tensor b, float c=1) -> Tensor.
struct Subject {
  const char* name;  // "capstone::NAME"
  /// The sizes of all tensor arguments, where the first one's are `sizes`, which may be empty.
  std::vector<rush::DimVector> (*shapes)(rush::IntArrayRef sizes);
  /// The operator's result, by operators of the library.
  rush::Tensor (*reference)(rush::TensorList inputs, double number);
  std::vector<double> numbers;  // values of the number to check the operator with, two at least
  double refused;               // a value of the number that the operator refuses
};
Subject subject();

/// Gives the operator its front, its kernel and its derivative.
void register_operator(rush::Registry& registry);

// ---- what the project may use in its tests ----

/// Calls the fused kernel (fused.h) on the emulated grid. The inputs are float32. Throws what a thread does wrong.
rush::Tensor fused_on_grid(rush::TensorList inputs, double number);

/// A test fails if it throws.
struct Test {
  const char* name;
  void (*run)();
};

/// Runs all of them, prints a line for each, and returns how many fail: the result of `main`.
int run_tests(std::initializer_list<Test> tests);

}  // namespace capstone
