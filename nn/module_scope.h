// ModuleScope: the call of a module that a thread is in, which errors and warnings name.
#pragma once
#include "core/error/error_context.h"

namespace rush::nn {

class Module;

// Note [The module of an error]
// An error or a warning made in a ModuleScope says "in Net.encoder.layers.2.fc1": the names by which parents registered
// the module, from the class of the outermost one. Every forward of this library has such a scope, and so has every
// call through a holder (`net(x)`) or a Sequential, whatever the module's class. `net->forward(x)` of a class of your
// own is a plain call that nothing sees; inside it, the library's modules still know where they are registered. A class
// that wants to be named there too begins its forward with `const ModuleScope scope(*this);`.
class ModuleScope : private ErrorContext {
 public:
  explicit ModuleScope(const Module& module) : ErrorContext(&describe, &module) {}

 private:
  static std::string describe(const void* module);
};

}  // namespace rush::nn
