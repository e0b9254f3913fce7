// Graphs of the emulated accelerator's work: see core/graphs/graph.h.
#pragma once
#include "core/graphs/graph.h"

namespace rush::labs {

// The backend's.
graphs::GraphRuntime& emulated_graphs();

}  // namespace rush::labs
