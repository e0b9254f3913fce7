// TensorBoard's event file: a sequence of records, each with its length and checksums.
#pragma once
#include <mutex>
#include <string>

#include "core/io/file_descriptor.h"
#include "core/io/proto_message.h"

namespace rush::summary {

using io::ProtoMessage;

// Note [Event files]
// An event file is a TFRecord file (https://www.tensorflow.org/tutorials/load_data/tfrecord) of Event messages
// (tensorboard/compat/proto/event.proto). Each record goes to the kernel in full when it is added, in one call, so a
// killed process leaves all that it has logged. What a full disk does not take waits in memory, in order, and is
// written before the next record: the file continues where it broke off. A record that broke off at the end is what
// TensorBoard takes for the end of a file that is still being written.
class EventFile {
 public:
  /// Makes the folder and a new file in it, "events.out.tfevents.TIME.HOST.PROCESS.NUMBER" + suffix. Throws IOError.
  EventFile(const std::string& folder, const std::string& suffix);

  /// Appends an Event message. Throws Error after close(), and IOError when the disk has been full for so long that the
  /// records in memory have become too many; `event` is then lost. Any thread may call this.
  void add(const ProtoMessage& event);
  /// Waits until all that was added is on the disk. Throws IOError if it is not (disk full, ...).
  void flush();
  /// The same, then closes the file.
  void close();

  const std::string& path() const { return path_; }

 private:
  int write_waiting();
  void flush_locked();

  std::string path_;
  std::mutex mutex_;
  io::FileDescriptor file_;
  std::string waiting_;  // bytes that are not written yet
};

/// The time since 1970, in seconds.
double wall_time();
/// This machine's name; empty where there is none.
std::string host_name();

}  // namespace rush::summary
