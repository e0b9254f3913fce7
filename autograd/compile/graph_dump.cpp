#include "autograd/compile/graph_dump.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/environment_flag.h"
#include "core/error/error.h"
#include "core/error/warning.h"
#include "core/io/atomic_file.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr std::string_view kHead = R"(<!doctype html>
<meta charset="utf-8">
<style>
body { font: 13px sans-serif; display: flex; gap: 3em; align-items: flex-start; }
svg { font: 12px monospace; overflow: visible; }
path { fill: none; stroke: #888; opacity: 0.5; }
path:hover { stroke: #d00; stroke-width: 3; opacity: 1; }
.fused { fill: #c40; }
.host { fill: #06c; }
.view { fill: #999; }
</style>
)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text)
    safe += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return safe;
}

// The calls, one below the other; an arc goes from the call that makes a tensor to each that reads it.
std::string picture(const std::string& title, const Graph& graph) {
  constexpr size_t kRow = 18, kText = 130;
  std::string arcs, texts;
  std::map<Graph::Id, size_t> makers;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Graph::Call& call = graph.calls[i];
    const size_t y = (i + 1) * kRow;
    const char* const kind = call.fused                      ? "fused"
                             : call.host                     ? "host"
                             : call.op && call.op->is_view() ? "view"
                                                             : "call";
    texts += str("<text class=\"", kind, "\" x=\"", kText, "\" y=\"", y, "\">", escaped(call.name), "<title>",
                 escaped(graph.line(call)), "</title></text>\n");
    for (const Graph::Id id : Graph::tensors_of(call.arguments)) {
      const auto maker = makers.find(id);
      if (maker == makers.end()) continue;
      const size_t from = (maker->second + 1) * kRow,
                   far = kText - 10 - std::min<size_t>(110, 10 + 3 * (i - maker->second));
      arcs += str("<path d=\"M ", kText - 6, ' ', from, " C ", far, ' ', from, ' ', far, ' ', y, ' ', kText - 6, ' ', y,
                  "\"><title>", escaped(graph.describe(id)), "</title></path>\n");
    }
    for (const Graph::Id id : Graph::tensors_of(call.results)) makers[id] = i;
  }
  return str("<section><h3>", escaped(title), ": ", graph.calls.size(), " calls</h3>\n<svg width=\"460\" height=\"",
             (graph.calls.size() + 2) * kRow, "\">\n", arcs, texts, "</svg></section>\n");
}

std::atomic<int> dumped = 0;  // graphs of this process

}  // namespace

GraphDump::GraphDump(const std::string& part) : folder_(environment("RUSH_COMPILE_DEBUG")) {
  if (is_wanted()) name_ = str("graph", dumped++, '_', part);
}

bool GraphDump::is_asked_for() { return !environment("RUSH_COMPILE_DEBUG").empty(); }

void GraphDump::add(const std::string& stage, const Graph& graph) {
  if (!is_wanted()) return;
  const std::string name = str(name_, '_', stages_++, '_', stage);
  pictures_ += picture(stage, graph);
  leave(name + ".txt", graph.print());
  leave(name + ".dot", graph.dot());
  leave(name_ + ".html", str(kHead, "<title>", name_, "</title>\n", pictures_));
}

void GraphDump::leave(const std::string& file, const std::string& text) const {
  std::error_code failed;  // shows when the file is opened
  std::filesystem::create_directories(folder_, failed);
  try {
    io::write_file_atomically(str(folder_, '/', file), text);
  } catch (const IOError& error) {
    RUSH_WARN("RUSH_COMPILE_DEBUG: ", error.msg());
  }
}

void log(const std::string& line) {
  if (environment_flag("RUSH_COMPILE_LOG")) std::fputs(str("compile: ", line, '\n').c_str(), stderr);
}

}  // namespace rush::compiler
