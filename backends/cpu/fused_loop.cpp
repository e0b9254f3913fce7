#include "backends/cpu/fused_loop.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/iterator/tensor_iterator.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

// Note [Fused loops on the CPU]
// Each element-wise operator reads its operands from memory and writes its result there, and memory is what it waits
// for. A fused loop takes a block of elements through all of its kernels before it goes on to the next: what one kernel
// leaves for another stays in the first levels of the cache, in a buffer of kBlock elements, and never gets to memory
// unless a call outside of the loop reads it. Where rows are short, as when an operand broadcasts, a block is several
// of them. The kernels are those that the operators have (Note [Lowering]), given iterators over one block; so the
// results are the operators', bit for bit, except for complex products, which the vectors of a loop and its last
// elements round differently. Threads take blocks.
class FusedLoop final : public ElementWiseLoop {
 public:
  explicit FusedLoop(LoopDescription description)
      : loop_(std::move(description)),
        buffer_of_(loop_.places.size(), -1),
        run_(size(0)),
        columns_(std::clamp<int64_t>(run_, 1, kBlock)),
        rows_(std::clamp<int64_t>(size(1), 1, kBlock / columns_)),
        blocks_in_run_((run_ + columns_ - 1) / columns_),
        blocks_of_rows_((size(1) + rows_ - 1) / rows_),
        blocks_(blocks_in_run_ * blocks_of_rows_) {
    assign_buffers();
    for (size_t d = 2; d < loop_.shape.size(); ++d) blocks_ *= size(d);
  }

  void run(char* const* data) override {
    const int64_t work = static_cast<int64_t>(loop_.steps.size()) * columns_ * rows_;
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
      for (Tensor& buffer : buffers)
        buffer = detail::empty_contiguous({fused.columns_ * fused.rows_ * kWidest}, kByte, kCPU);
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
    const size_t places = loop_.places.size();
    std::vector<char*> at(places);
    std::vector<std::array<int64_t, 2>> strides(places);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block % blocks_in_run_ * columns_, columns = std::min(columns_, run_ - column);
      const int64_t row = block / blocks_in_run_ % blocks_of_rows_ * rows_, rows = std::min(rows_, size(1) - row);
      for (size_t i = 0; i < places; ++i) {
        const LoopDescription::Place& place = loop_.places[i];
        if (place.is_inner) {
          at[i] = static_cast<char*>(walker.buffers[static_cast<size_t>(buffer_of_[i])].data_ptr());
          strides[i] = {element_size(place.dtype), element_size(place.dtype) * columns};
          continue;
        }
        strides[i] = {stride(place, 0), stride(place, 1)};
        at[i] = data[i] + column * strides[i][0] + row * strides[i][1];
        int64_t outer = block / (blocks_in_run_ * blocks_of_rows_);
        for (size_t d = 2; d < loop_.shape.size(); ++d) {
          at[i] += outer % size(d) * place.strides[d];
          outer /= size(d);
        }
      }
      for (size_t s = 0; s < loop_.steps.size(); ++s) run_step(walker, s, at, strides, columns, rows);
    }
  }

  void run_step(Walker& walker, size_t s, const std::vector<char*>& at,
                const std::vector<std::array<int64_t, 2>>& strides, int64_t columns, int64_t rows) const {
    char* step_data[TensorIterator::kMaxOperands];
    int64_t step_strides[TensorIterator::kMaxOperands][2];
    const std::vector<int>& places = loop_.steps[s].places;
    bool is_one_run = true;  // rows of all operands follow each other
    for (size_t i = 0; i < places.size(); ++i) {
      const auto place = static_cast<size_t>(places[i]);
      step_data[i] = at[place];
      std::ranges::copy(strides[place], step_strides[i]);
      is_one_run &= strides[place][1] == strides[place][0] * columns;
    }
    walker.iterators[s]->set_rows(step_data, step_strides, is_one_run ? columns * rows : columns,
                                  is_one_run ? 1 : rows);
    loop_.steps[s].call->run(kCPU, *walker.iterators[s]);
  }

  int64_t size(size_t d) const { return d < loop_.shape.size() ? loop_.shape[d] : 1; }
  int64_t stride(const LoopDescription::Place& place, size_t d) const {
    return d < loop_.shape.size() ? place.strides[d] : 0;
  }

  const LoopDescription loop_;
  std::vector<int> buffer_of_;  // of each place, -1 for none
  int buffers_ = 0;
  const int64_t run_;             // elements of the innermost dimension
  const int64_t columns_, rows_;  // of a block: of the two innermost dimensions
  const int64_t blocks_in_run_, blocks_of_rows_;
  int64_t blocks_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Walker>> idle_;
};

}  // namespace

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) {
  return std::make_unique<FusedLoop>(std::move(description));
}

}  // namespace rush::cpu
