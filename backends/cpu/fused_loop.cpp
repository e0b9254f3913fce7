#include "backends/cpu/fused_loop.h"

#include <algorithm>
#include <mutex>

#include "core/iterator/tensor_iterator.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

// Note [Fused loops on the CPU]
// Each element-wise operator reads its operands from memory and writes its result there, and memory is what it waits
// for. A fused loop takes a block of elements through all of its kernels before it goes on to the next: what one kernel
// leaves for another stays in the first levels of the cache, in a buffer of kBlock elements, and never gets to memory
// unless a call outside of the loop reads it. The kernels are those that the operators have (Note [Lowering]), given
// iterators over one block; so the results are the operators', bit for bit, except for complex products, which the
// vectors of a loop and its last elements round differently. Threads take blocks.
class FusedLoop final : public ElementWiseLoop {
 public:
  explicit FusedLoop(LoopDescription description)
      : loop_(std::move(description)),
        buffer_of_(loop_.places.size(), -1),
        run_(loop_.shape.empty() ? 1 : loop_.shape[0]) {
    assign_buffers();
    blocks_in_run_ = (run_ + kBlock - 1) / kBlock;
    blocks_ = blocks_in_run_;
    for (size_t d = 1; d < loop_.shape.size(); ++d) blocks_ *= loop_.shape[d];
  }

  void run(char* const* data) override {
    const int64_t work = static_cast<int64_t>(loop_.steps.size()) * std::clamp<int64_t>(run_, 1, kBlock);
    parallel_for(0, blocks_, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      std::unique_ptr<Walker> walker = take_walker();
      walk(*walker, data, begin, end);
      give_back(std::move(walker));
    });
  }

 private:
  static constexpr int64_t kBlock = 2048;

  // What one thread works with: an iterator for each kernel, and the buffers.
  struct Walker {
    explicit Walker(const FusedLoop& fused) : buffers(static_cast<size_t>(fused.buffers_)) {
      constexpr int64_t kWidest = sizeof(complex<double>);
      for (Tensor& buffer : buffers) buffer = detail::empty_contiguous({kBlock * kWidest}, kByte, kCPU);
      for (const LoopDescription::Step& step : fused.loop_.steps) {
        // The tensors stand for their dtypes alone: where the operands lie is set for each block.
        const auto stand_in = [&](int place) {
          return detail::empty_contiguous({1}, fused.loop_.places[static_cast<size_t>(place)].dtype, kCPU);
        };
        std::vector<Tensor> inputs;
        for (size_t i = 1; i < step.places.size(); ++i) inputs.push_back(stand_in(step.places[i]));
        const Tensor out = stand_in(step.places[0]);
        iterators.push_back(std::unique_ptr<TensorIterator>(
            new TensorIterator(step.call->kernel(), out, TensorList(inputs), Promotion::None, out.scalar_type())));
      }
    }
    std::vector<Tensor> buffers;
    std::vector<std::unique_ptr<TensorIterator>> iterators;
  };

  // A buffer is used again once the last kernel that reads it has run.
  void assign_buffers() {
    std::vector<size_t> last(loop_.places.size(), 0);
    for (size_t s = 0; s < loop_.steps.size(); ++s) {
      for (const int place : loop_.steps[s].places) last[static_cast<size_t>(place)] = s;
    }
    std::vector<int> free;
    const auto buffer_of = [&](int place) -> int& { return buffer_of_[static_cast<size_t>(place)]; };
    for (size_t s = 0; s < loop_.steps.size(); ++s) {
      std::vector<int> places = loop_.steps[s].places;
      const int out = places[0];
      if (loop_.places[static_cast<size_t>(out)].is_inner && buffer_of(out) < 0) {
        if (free.empty()) free.push_back(buffers_++);
        buffer_of(out) = free.back();
        free.pop_back();
      }
      std::ranges::sort(places);
      places.erase(std::unique(places.begin(), places.end()), places.end());
      for (const int place : places) {
        if (buffer_of(place) >= 0 && last[static_cast<size_t>(place)] == s) free.push_back(buffer_of(place));
      }
    }
  }

  std::unique_ptr<Walker> take_walker() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Walker> walker = std::move(idle_.back());
        idle_.pop_back();
        return walker;
      }
    }
    return std::make_unique<Walker>(*this);
  }
  void give_back(std::unique_ptr<Walker> walker) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(walker));
  }

  void walk(Walker& walker, char* const* data, int64_t begin, int64_t end) const {
    const SerialLoopsGuard serial;
    std::vector<char*> at(loop_.places.size());
    std::vector<int64_t> strides(loop_.places.size());
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block % blocks_in_run_ * kBlock, n = std::min(kBlock, run_ - first);
      for (size_t i = 0; i < loop_.places.size(); ++i) {
        const LoopDescription::Place& place = loop_.places[i];
        if (place.is_inner) {
          at[i] = static_cast<char*>(walker.buffers[static_cast<size_t>(buffer_of_[i])].data_ptr());
          strides[i] = element_size(place.dtype);
          continue;
        }
        strides[i] = loop_.shape.empty() ? 0 : place.strides[0];
        at[i] = data[i] + first * strides[i];
        int64_t outer = block / blocks_in_run_;
        for (size_t d = 1; d < loop_.shape.size(); ++d) {
          at[i] += outer % loop_.shape[d] * place.strides[d];
          outer /= loop_.shape[d];
        }
      }
      for (size_t s = 0; s < loop_.steps.size(); ++s) {
        char* step_data[TensorIterator::kMaxOperands];
        int64_t step_strides[TensorIterator::kMaxOperands];
        const std::vector<int>& places = loop_.steps[s].places;
        for (size_t i = 0; i < places.size(); ++i) {
          step_data[i] = at[static_cast<size_t>(places[i])];
          step_strides[i] = strides[static_cast<size_t>(places[i])];
        }
        walker.iterators[s]->set_flat(step_data, step_strides, n);
        loop_.steps[s].call->run(kCPU, *walker.iterators[s]);
      }
    }
  }

  const LoopDescription loop_;
  std::vector<int> buffer_of_;  // of each place, -1 for none
  int buffers_ = 0;
  const int64_t run_;  // elements of the innermost dimension
  int64_t blocks_in_run_ = 1, blocks_ = 1;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Walker>> idle_;
};

}  // namespace

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) {
  return std::make_unique<FusedLoop>(std::move(description));
}

}  // namespace rush::cpu
