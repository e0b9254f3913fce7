// The graph of a tensor as a picture.
#pragma once
#include <string>

#include "autograd/node.h"

namespace rush::autograd {

/// The graph that the backward pass of `outputs` would walk, in Graphviz's DOT language (https://graphviz.org/doc/info/
/// lang.html): `dot -Tsvg` draws it. A box for each node: its name, its sequence number, and the tensors it saved with
/// their shapes and versions; red where one was written in place since, so that the backward pass would throw. Leaves
/// are blue ovals, the outputs green ones. An edge that leads to another output of a node than its first is numbered.
/// Throws ValueError when an output does not require a gradient.
std::string to_dot(TensorList outputs);

}  // namespace rush::autograd
