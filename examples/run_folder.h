// The folder that a run leaves its files in, and how the run begins there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/io/file_descriptor.h"
#include "examples/options.h"
#include "optim/state/checkpoint.h"

namespace examples {

/// Makes the folder `path`, before the training, so that a wrong path costs no time. Throws rush::IOError if it cannot
/// be made or written.
void make_folder(const std::string& path);

/// Writes a picture, and says where. Throws rush::IOError.
void write_picture(const std::string& path, const std::string& content);

/// How a run begins where there may be the checkpoint of an earlier one.
struct Beginning {
  bool resume = false, overwrite = false, allow_changes = false;

  void add_to(Options& options);

  /// Throws rush::ValueError for options that do not go together.
  void check(const std::string& out_dir) const;
};

/// The folder of one run, which no other process trains in meanwhile, with the run's checkpoint.
class RunFolder {
 public:
  /// Makes the folder, takes its lock and removes what killed runs left of unfinished files. An empty path stands for
  /// no folder. Throws rush::IOError where another process, which it names, has the lock, and rush::ValueError where
  /// there is a checkpoint and `beginning` does not say what is to become of it.
  /// A folder that is not `is_own` is that of another process of the same run: nothing is written there.
  RunFolder(const std::string& path, const Beginning& beginning, bool is_own = true);

  /// Where the checkpoint goes; empty: nowhere.
  const std::string& checkpoint() const { return checkpoint_; }

  /// For Checkpoint::expect of what --allow_changes allows to change; null without it.
  std::vector<std::string>* changes() { return beginning_.allow_changes ? &changes_ : nullptr; }

  /// Calls load() where the run goes on from the checkpoint, prints what changed, and returns true. Otherwise calls
  /// save(), so that a new run has a checkpoint of its own from the first step on, and nobody goes on from that of an
  /// earlier one. Where the folder is another process's, which has begun before, load() alone may be called. Throws
  /// what they throw.
  bool begin(const std::function<void()>& load, const std::function<void()>& save);

  /// So that the same command starts anew. Throws rush::IOError.
  void remove_checkpoint() const;

 private:
  Beginning beginning_;
  const bool is_own_;
  std::string checkpoint_;
  std::vector<std::string> changes_;
  rush::io::FileDescriptor lock_;
};

/// Writes `run` to `path`. A symbolic link there is replaced: what it leads to may be another run's, and stays.
/// Throws rush::IOError.
void save_checkpoint(const rush::Checkpoint& run, const std::string& path);

/// Calls save() in the middle of a run. A full disk costs what was to be saved and not the run: returns the IOError's
/// message as a warning, or an empty text.
std::string try_to_save(const std::function<void()>& save);

}  // namespace examples
