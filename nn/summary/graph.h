// TensorBoard's page of graphs.
#pragma once
#include "core/io/proto_message.h"
#include "nn/module.h"

namespace rush::summary {

using io::ProtoMessage;

/// The GraphDef (tensorboard/compat/proto/graph.proto) of what `model` computed `output` by: a node for each recorded
/// operator and each leaf, from the graph of the backward pass. Parameters have their names, and an operator stands in
/// the scope of the module whose parameters it reads. Throws ValueError unless `output` requires a gradient.
ProtoMessage graph(const nn::Module& model, const Tensor& output);

}  // namespace rush::summary
