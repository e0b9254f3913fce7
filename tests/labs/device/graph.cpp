#include "tests/labs/device/graph.h"

#include <atomic>
#include <fstream>
#include <utility>

#include "core/device/backend.h"
#include "tests/labs/device/accelerator.h"

namespace rush::labs {

namespace {

std::atomic<uint64_t> last_pool = 0;

// A graph is the list of its work, in the order in which it was recorded: all of it goes to the stream of the replay.
class EmulatedGraph final : public graphs::GraphImpl {
 public:
  ~EmulatedGraph() override { reset(); }

  void capture_begin(graphs::MempoolId_t pool, graphs::CaptureMode /*mode*/) override {
    RUSH_CHECK(recording_.pool == 0, "graph: capture_begin() of a graph that was captured; reset() it first");
    RUSH_CHECK(!current_recording, "graph: this thread is capturing a graph already");
    RUSH_CHECK(streams().current() != 0, "graph: the default stream cannot be captured; make another one current");
    recording_.pool = pool != 0 ? pool : ++last_pool;
    recording_.streams = {streams().current()};
    device_memory().retain_pool(recording_.pool);
    current_recording = &recording_;
    hooks_of_capture_ = &hooks_;
  }

  void capture_end() override {
    RUSH_CHECK(is_capturing(), "graph: capture_end() without a capture_begin() on this thread");
    leave_capture();
    is_ready_ = true;
  }

  void abandon() noexcept override {
    if (!is_capturing()) return;
    leave_capture();
    reset();
  }

  void replay() override {
    check_not_capturing("the replay of a graph");
    RUSH_CHECK(is_ready_, "graph: replay() of a graph that was not captured");
    const Stream now = current_stream(emulated());
    if (last_replay_.is_queue()) wait_stream(now, last_replay_);
    last_replay_ = now;
    for (const auto& hook : hooks_) hook->before_replay();
    for (const SharedWork& work : recording_.work) {
      for (const Access& access : work->accesses) {
        if (use_of(access.block) != access.use) races().note_freed(*work, access);
      }
      streams().give(streams().current(), work);
    }
  }

  void reset() noexcept override {
    if (is_capturing()) return abandon();
    is_ready_ = false;
    hooks_.clear();
    last_replay_ = {};
    if (recording_.pool != 0) device_memory().release_pool(recording_.pool);
    recording_ = {};
  }

  graphs::MempoolId_t pool() const override {
    RUSH_CHECK(recording_.pool != 0, "graph: pool() of a graph that was not captured");
    return recording_.pool;
  }

  size_t nodes() const override {
    RUSH_CHECK(is_ready_, "graph: nodes() of a graph that was not captured");
    return recording_.work.size();
  }

  void debug_dump(const std::string& path) const override {
    RUSH_CHECK(is_ready_, "graph: debug_dump() of a graph that was not captured");
    std::ofstream file(path);
    file << "digraph {\n";
    for (size_t i = 0; i < recording_.work.size(); ++i) {
      file << "  " << i << " [label=\"" << recording_.work[i]->op << "\"]\n";
      if (i > 0) file << "  " << i - 1 << " -> " << i << "\n";
    }
    file << "}\n";
  }

  // The list that hooks of this thread's capture are added to.
  static inline thread_local constinit std::vector<std::shared_ptr<graphs::ReplayHook>>* hooks_of_capture_ = nullptr;

 private:
  bool is_capturing() const { return current_recording == &recording_; }
  void leave_capture() {
    current_recording = nullptr;
    hooks_of_capture_ = nullptr;
  }

  Recording recording_;
  bool is_ready_ = false;
  std::vector<std::shared_ptr<graphs::ReplayHook>> hooks_;
  Stream last_replay_;
};

class Runtime final : public graphs::GraphRuntime {
 public:
  std::unique_ptr<graphs::GraphImpl> make_graph() override { return std::make_unique<EmulatedGraph>(); }
  graphs::MempoolId_t make_pool_id() override { return ++last_pool; }
  bool is_capturing() const override { return current_recording != nullptr; }
  void before_replay(std::shared_ptr<graphs::ReplayHook> hook) override {
    EmulatedGraph::hooks_of_capture_->push_back(std::move(hook));
  }
  Stream side_stream() override {
    static const Stream stream = backend_of(emulated().type).stream_from_pool(0);
    return stream;
  }
};

}  // namespace

graphs::GraphRuntime& emulated_graphs() {
  static auto& runtime = *new Runtime;
  return runtime;
}

}  // namespace rush::labs
