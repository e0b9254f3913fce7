// GraphDump: leaves a graph in a folder as it was after each pass, for people to read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/compile/graph.h"
#include "core/str.h"

namespace rush::compiler {

// The texts of some things, with ", " between them.
template <class Range, class Text>
std::string joined(const Range& range, const Text& text) {
  std::string all;
  for (const auto& each : range) all += str(all.empty() ? "" : ", ", std::invoke(text, each));
  return all;
}

// An argument that is no tensor, as a graph's lines have it: "0.5", "[2, 3]".
std::string text_of(const Value& value);

/// The stages of one graph. Does nothing unless RUSH_COMPILE_DEBUG names a folder, in which it leaves for each stage
/// NAME_NUMBER_STAGE.txt and .dot, and NAME.html with a picture of all stages.
class GraphDump {
 public:
  /// Of what is compiled next; `part` is "forward" or "backward".
  explicit GraphDump(const std::string& part);
  bool is_wanted() const { return !folder_.empty(); }
  static bool is_asked_for();  ///< whether RUSH_COMPILE_DEBUG names a folder
  /// The graph after what `stage` names. Warns where the folder cannot be written.
  void add(const std::string& stage, const Graph& graph);

 private:
  void leave(const std::string& file, const std::string& text) const;

  std::string folder_, name_;
  std::string pictures_;  // of the stages so far
  size_t stages_ = 0;
};

/// Writes a line "compile: ..." to stderr under RUSH_COMPILE_LOG=1.
void log(const std::string& line);

}  // namespace rush::compiler
