// TensorBoard's page of graphs.
#pragma once
#include "nn/module.h"
#include "nn/summary/proto_message.h"

namespace rush::summary {

/// The GraphDef (tensorboard/compat/proto/graph.proto) of what `model` computed `output` by: a node for each recorded
/// operator and each leaf, from the graph of the backward pass. Parameters have their names, and an operator stands in
/// the scope of the module whose parameters it reads. Throws ValueError unless `output` requires a gradient.
ProtoMessage graph(const nn::Module& model, const Tensor& output);

}  // namespace rush::summary
