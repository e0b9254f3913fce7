// Graphs as text: JSON (RFC 8259).
#pragma once
#include <functional>
#include <string>

#include "autograd/compile/pattern.h"

namespace rush::compiler {

// What it takes to run a graph and to print it, but not to change it by passes. Constants are named by their numbers,
// and devices not at all: where it is read, it is for one device. Throws NotImplementedError for a call with an
// argument that cannot be written, such as a generator.
std::string to_json(const Pattern& pattern);

// Reads what to_json wrote. `constant` is asked for each by its number. Throws IOError, whose message begins with
// `path`, for any other text, for numbers that lead nowhere, and for calls of operators that are not known or do not
// take so many arguments. Nothing is promised of sizes, dtypes and values: the operators check those when they run.
Pattern from_json(const std::string& path, const std::string& text, Device device,
                  const std::function<Tensor(Graph::Id)>& constant);

}  // namespace rush::compiler
