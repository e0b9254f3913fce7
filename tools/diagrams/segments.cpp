// The CUDA caching allocator's decisions: it knows its device by an interface, which is host memory here.
#include <map>
#include <utility>

#include "backends/cuda/memory/device_allocator.h"
#include "core/str.h"
#include "tests/labs/host_memory.h"
#include "tools/diagrams/facts.h"

namespace rush::diagrams {

namespace {

constexpr size_t kKiB = 1024;

// An allocator, and what it held after each step.
class Film {
 public:
  void allocate(const std::string& name, size_t kib) {
    blocks_[name] = allocator_.allocate(kib * kKiB, /*stream=*/nullptr);
    shoot(str("allocate ", name, ", ", kib, " KiB"));
  }
  void free(const std::string& name) {
    allocator_.deallocate(blocks_.at(name));
    shoot(str("free ", name));
  }
  void use_elsewhere(const std::string& name) {
    allocator_.record_stream(blocks_.at(name), /*stream=*/&memory_);
    shoot(str("record_stream(", name, ")"));
  }
  void reach_events() {
    memory_.reached_events = memory_.events.size();
    before_ = "the other stream is done; ";
  }
  void empty_cache() {
    allocator_.empty_cache();
    shoot("empty_cache()");
  }
  Json frames = Json::array();

 private:
  void shoot(const std::string& step) {
    Json segments = Json::array();
    for (const cuda::SegmentInfo& segment : allocator_.snapshot().segments) {
      Json blocks = Json::array();
      for (const cuda::BlockInfo& block : segment.blocks) {
        const char* state = block.allocated ? "used" : block.active ? "waits" : "free";
        blocks.push_back({{"kib", block.size / kKiB}, {"state", state}, {"name", block.active ? name_of(block) : ""}});
      }
      segments.push_back({{"kib", segment.total_size / kKiB}, {"blocks", blocks}});
    }
    frames.push_back({{"step", std::exchange(before_, {}) + step}, {"segments", segments}});
  }
  std::string name_of(const cuda::BlockInfo& info) const {
    for (const auto& [name, block] : blocks_) {
      if (!block->is_free() && reinterpret_cast<uint64_t>(block->data) == info.address) return name;
    }
    return "";
  }

  std::string before_;  // what happened since the last step
  labs::HostMemory memory_{64 * kKiB * kKiB};
  cuda::DeviceAllocator allocator_{0, memory_, {}};
  // The latest first: its record may have been an older one's.
  std::map<std::string, cuda::Block*, std::greater<>> blocks_;
};

}  // namespace

Json segment_facts() {
  Film film;
  film.allocate("a", 512);
  film.allocate("b", 768);
  film.allocate("c", 512);
  film.free("b");
  film.allocate("d", 256);  // fits the rest at the end better than b's hole
  film.allocate("e", 640);
  film.free("a");
  film.free("e");  // merges with the free blocks on both sides
  film.use_elsewhere("c");
  film.free("c");
  film.reach_events();
  film.allocate("f", 1024);
  film.allocate("g", 1024);
  film.free("g");
  film.empty_cache();
  return film.frames;
}

}  // namespace rush::diagrams
