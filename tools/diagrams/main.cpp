// rush_diagrams FOLDER: writes FOLDER/facts.json, of which tools/diagrams/draw.py draws the diagrams of docs/.
#include <cstdio>
#include <fstream>

#include "core/threads/parallel.h"
#include "tools/diagrams/facts.h"

int main(int argc, char** argv) {
  using namespace rush::diagrams;
  if (argc != 2) {
    std::fputs("usage: rush_diagrams FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  rush::set_num_threads(1);
  Json facts;
  facts["graph"] = graph_facts();  // first: nodes are numbered as they are made
  facts["step"] = step_facts(folder);
  facts["dispatch"] = dispatch_facts();
  facts["views"] = view_facts();
  facts["iterator"] = iterator_facts();
  facts["segments"] = segment_facts();
  facts["streams"] = stream_facts();
  facts["captured"] = captured_facts();
  std::ofstream file(folder + "/facts.json");
  file << facts.dump(1) << '\n';
  return file.flush() ? 0 : 1;
}
