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

}  // namespace rush
