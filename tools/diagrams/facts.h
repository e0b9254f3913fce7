// What the diagrams of docs/ show: each function runs a few lines of a program, and returns what the library reported
// of them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

// An expression as it is written, and its value: what a picture says was run is what was run.
#define RUSH_SHOWN(...) #__VA_ARGS__, __VA_ARGS__

namespace rush::diagrams {

using Json = nlohmann::ordered_json;

// The stops of calls on their way to a kernel, and the keys that calls carry.
Json dispatch_facts();
// The storage, sizes and strides of views.
Json view_facts();
// An element-wise loop over operands that broadcast: before the iterator has prepared it, and after.
Json iterator_facts();
// The CUDA caching allocator's segments after each of some requests, on host memory.
Json segment_facts();
// Graphs of backward passes in Graphviz's language, and the gradients that the nodes of the first were given.
Json graph_facts();
// The events of a training step, from a profile's trace, which is written into `folder`.
Json step_facts(const std::string& folder);
// What three streams of the emulated accelerator are given by each line of a program.
Json stream_facts();
// The nodes of a training step's graph on the emulated accelerator with the memory that each reads and writes, and what
// a replay gives to the stream.
Json captured_facts();

}  // namespace rush::diagrams
