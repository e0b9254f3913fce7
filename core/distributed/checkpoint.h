// Sharded checkpoints: every process writes what it has, and any other number of processes loads it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/distributed/checkpoint_folder.h"
#include "core/distributed/init.h"

namespace rush::distributed {

// Note [Sharded checkpoints]
// The processes first tell each other which parts of which tensors they have. From that alone each of them computes the
// same plan: the files, where in them each tensor lies, and who writes which part. A part that several processes have
// is written by the one among them that has the fewest bytes to write until then. Then each writes its parts to their
// places, without a word to the others, and at the end they tell each other whether that has worked. If it has, the
// first process replaces the index, and so makes the new files the checkpoint: Note [Checkpoint folders]. Otherwise it
// removes them, and all processes throw the same error.
//
// An asynchronous save copies what this process is to write, and a thread writes it. The thread calls no collective,
// since collectives have to come in the same order on all processes: the agreement at the end is in wait(), which every
// process calls.

/// For save_parts.
struct SaveOptions {
  /// The processes that have the parts.
  Group group = world();
  /// Where a file would become longer, another one begins. A tensor is never divided, so a file may have a longer one.
  /// That of the group's first process counts.
  uint64_t max_file_bytes = 5'000'000'000;
  /// What else is to be kept, as text: the step, a loader's position. That of the group's first process is written,
  /// into the index and every file. No key is "total_size", which the index has.
  io::Metadata metadata;
};

/// Writes a checkpoint to `folder`, which is made if it is not there: Notes [Checkpoint folders], [Sharded
/// checkpoints]. Every process of the group calls it with the parts that it has, of any tensors. Where several have the
/// same part its values are taken to be the same. All processes share the file system. An earlier checkpoint of the
/// folder is replaced in one step, when everything is on disk: a process that is killed at any moment leaves the old
/// one or the new one, whole. One run saves to a folder at a time.
///
/// Throws on every process, and leaves the old checkpoint: ValueError where parts of a tensor overlap without being
/// equal, do not cover it, or differ in its sizes or dtype, where a process gives a part twice with other values, and
/// for names that are no UTF-8; TypeError for a dtype that safetensors lacks (complex128); IOError, which names the
/// rank and the file, where one process cannot write, or the folder has a model.safetensors of another program;
/// DistributedError for what else one process throws.
///
/// torch.distributed.checkpoint.save.
void save_parts(const std::string& folder, const std::vector<TensorPart>& parts, const SaveOptions& options = {});

/// A save that goes on while its caller computes.
class PendingSave {
 public:
  struct Work;
  explicit PendingSave(std::unique_ptr<Work> work);
  ~PendingSave();  // waits for the thread; without wait() the files do not become the checkpoint

  /// Waits until this process's parts are written, and then for the others: the checkpoint is there. Every process of
  /// the group calls it, in the same order among collectives. Throws as save_parts. Later calls do nothing.
  void wait();

 private:
  std::unique_ptr<Work> work_;
};

/// The same, but returns when this process's parts are copied to the host's memory: they may be written to again. Every
/// process calls wait() on what it returns. If that has not been done when the next save begins, of either kind, it is
/// done there, and an error is the next save's, which then does not begin.
/// torch.distributed.checkpoint.async_save.
[[nodiscard]] std::shared_ptr<PendingSave> save_parts_async(const std::string& folder,
                                                            const std::vector<TensorPart>& parts,
                                                            const SaveOptions& options = {});

}  // namespace rush::distributed
