// NodeWatcher: what is told of a thread's backward passes while they go on.
#pragma once
#include "autograd/node.h"

namespace rush {

/// Is told of each backward pass of a thread, and of each of its nodes before it runs: so a sharded module knows when
/// its parameters are needed again, whatever its nodes have saved. Passes nest.
class NodeWatcher {
 public:
  /// That of this thread; null for most.
  static thread_local constinit inline NodeWatcher* current = nullptr;

  virtual ~NodeWatcher() = default;
  virtual void begin_pass() = 0;
  /// On the node's stream. Numbers descend within a pass: Note [The engine].
  virtual void before(const Node& node) = 0;
  /// All nodes have run.
  virtual void end_pass() = 0;
  /// The pass ends with an exception instead.
  virtual void abandon_pass() noexcept = 0;
};

/// A backward pass, of which the thread's watcher is told if there is one.
class WatchedPass {
 public:
  WatchedPass() : watcher_(NodeWatcher::current) {
    if (RUSH_UNLIKELY(watcher_)) watcher_->begin_pass();
  }
  ~WatchedPass() {
    if (RUSH_UNLIKELY(watcher_)) watcher_->abandon_pass();
  }
  WatchedPass(const WatchedPass&) = delete;

  void before(const Node& node) {
    if (RUSH_UNLIKELY(watcher_)) watcher_->before(node);
  }
  void finish() {
    if (RUSH_UNLIKELY(watcher_)) watcher_->end_pass();
    watcher_ = nullptr;
  }

 private:
  NodeWatcher* watcher_;  // until it has been told of the end
};

}  // namespace rush
