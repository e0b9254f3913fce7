#include "examples/mesh_gpt/mesh_run.h"

#include <filesystem>

#include "core/distributed/checkpoint.h"
#include "core/io/safetensors.h"
#include "optim/state/state_parts.h"

namespace examples {

namespace fs = std::filesystem;
using rush::distributed::TensorPart;

namespace {

// "out/checkpoint.safetensors" -> "out/checkpoint-"
std::string folders_begin(const std::string& checkpoint) {
  return fs::path(checkpoint).replace_extension().string() + "-";
}

std::string folder_of(const std::string& checkpoint, int64_t iteration) {
  return folders_begin(checkpoint) + std::to_string(iteration);
}

}  // namespace

void save_shards(const std::string& checkpoint, int64_t iteration, const MeshNet& net,
                 const rush::optim::AdamW& optimizer) {
  const std::vector<TensorPart> weights = net.parts();
  std::vector<TensorPart> parts = weights;
  for (TensorPart& state : rush::optim::state_parts(optimizer, weights)) parts.push_back(std::move(state));
  rush::distributed::save_parts(folder_of(checkpoint, iteration), parts);
}

void remove_other_shards(const std::string& checkpoint, int64_t iteration) {
  const std::string begin = folders_begin(checkpoint), kept = folder_of(checkpoint, iteration);
  std::error_code error;  // what cannot be removed only takes room
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(begin).parent_path(), error)) {
    const std::string path = entry.path().string();
    const bool is_of_run = path.starts_with(begin) && path.find_first_not_of("0123456789", begin.size()) == path.npos;
    if (is_of_run && path != kept) fs::remove_all(entry.path(), error);
  }
}

void load_shards(const std::string& checkpoint, int64_t iteration, const MeshNet& net, rush::optim::AdamW& optimizer) {
  const std::string folder = folder_of(checkpoint, iteration);
  rush::distributed::load_parts(folder, net.parts());
  rush::optim::load_state_parts(folder, optimizer, net.parts());
}

void check_mesh(const MeshOptions& options, bool graph, const std::string& dtype, double dropout,
                const MemoryOptions& memory) {
  if (!options.need_mesh()) return;
  const auto refuse = [](bool is_given, const char* what) {
    RUSH_CHECK_VALUE(!is_given, what, " is for processes that have the whole model, without --fsdp, --tp, --cp, --pp ",
                     "and --micro_batches");
  };
  refuse(graph, "--graph");
  refuse(dtype == "float16", "--dtype float16");
  refuse(dropout > 0, "--dropout");
  refuse(memory.estimate, "--estimate_memory");
  refuse(memory.checkpoint == "auto", "--checkpoint auto");
}

bool runs_on_mesh(const MeshOptions& options, int64_t processes, const std::string& checkpoint) {
  const bool goes_on = !checkpoint.empty() && fs::exists(checkpoint);
  const bool was_on_mesh = goes_on && !rush::io::SafetensorsFile(checkpoint).find("model.wte.weight");
  RUSH_CHECK_VALUE(!goes_on || was_on_mesh || !options.need_mesh(), checkpoint,
                   " is of a run whose processes have the whole model; go on without the options of a mesh");
  const bool on_mesh = was_on_mesh || options.need_mesh();
  RUSH_CHECK_VALUE(on_mesh || options.dp == 0 || options.dp == processes, "--dp ", options.dp, ": there are ",
                   processes, " processes");
  return on_mesh;
}

}  // namespace examples
