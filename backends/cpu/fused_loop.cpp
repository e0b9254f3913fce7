#include "backends/cpu/fused_loop.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/factories.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

// Note [Fused loops on the CPU]
// Each element-wise operator reads its operands from memory and writes its result there, and memory is what it waits
// for. A fused loop takes a block of elements through all of its kernels before it goes on to the next: what one kernel
// leaves for another stays in the first levels of the cache, in a buffer of a block's elements, and never gets to
// memory unless a call outside of the loop reads it. The kernels are those that the operators have (Note [Lowering]),
// given iterators over one block; so the results are the operators', bit for bit, except for complex products, which
// the vectors of a loop and its last elements round differently. Threads take blocks.
//
// A block is a part of the innermost dimension, or several rows where these are short, as when an operand broadcasts.
// Where rows are reduced, Note [Row loops], it has whole rows, as many as come to kBlockOfRows elements, or one that is
// longer; a reduction is given tensors of them.
class FusedLoop final : public ElementWiseLoop {
 public:
  explicit FusedLoop(LoopDescription description) : loop_(std::move(description)), buffer_of_(loop_.places.size(), -1) {
    assign_buffers();
    while (loop_.shape.size() < 2) {
      loop_.shape.push_back(1);
      for (LoopDescription::Place& place : loop_.places) place.strides.push_back(0);
    }
    const bool has_rows = loop_.has_rows();
    columns_ = std::max<int64_t>(1, has_rows ? loop_.shape[0] : std::min(kBlock, loop_.shape[0]));
    rows_ = std::max<int64_t>(1, std::min((has_rows ? kBlockOfRows : kBlock) / columns_, loop_.shape[1]));
    blocks_ = blocks_in_row() * ((loop_.shape[1] + rows_ - 1) / rows_);
    for (size_t d = 2; d < loop_.shape.size(); ++d) blocks_ *= loop_.shape[d];
  }

  void run(char* const* data) override {
    const int64_t work = static_cast<int64_t>(loop_.steps.size()) * rows_ * columns_;
    parallel_for(0, blocks_, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      std::unique_ptr<Walker> walker = take_walker();
      walk(*walker, data, begin, end);
      give_back(std::move(walker));
    });
  }

 private:
  static constexpr int64_t kBlock = 2048, kBlockOfRows = 4096;

  int64_t blocks_in_row() const { return (loop_.shape[0] + columns_ - 1) / columns_; }

  // What one thread works with: an iterator for each kernel, and the buffers.
  struct Walker {
    explicit Walker(const FusedLoop& fused) : buffers(static_cast<size_t>(fused.buffers_)) {
      constexpr int64_t kWidest = sizeof(complex<double>);
      const int64_t bytes = fused.rows_ * fused.columns_ * kWidest;
      for (Tensor& buffer : buffers) buffer = detail::empty_contiguous({bytes}, kByte, kCPU);
      for (const LoopDescription::Step& step : fused.loop_.steps) {
        // The tensors stand for their dtypes alone: where the operands lie is set for each block.
        const auto stand_in = [&](size_t place) {
          return detail::empty_contiguous({1}, fused.loop_.places[place].dtype, kCPU);
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
      for (const size_t place : loop_.steps[s].places) last[place] = s;
    }
    std::vector<int> free;
    for (size_t s = 0; s < loop_.steps.size(); ++s) {
      const std::vector<size_t>& places = loop_.steps[s].places;
      int& of_output = buffer_of_[places[0]];
      if (loop_.places[places[0]].is_inner && of_output < 0) {
        if (free.empty()) free.push_back(buffers_++);
        of_output = free.back();
        free.pop_back();
      }
      for (const size_t place : std::set<size_t>(places.begin(), places.end())) {
        if (buffer_of_[place] >= 0 && last[place] == s) free.push_back(buffer_of_[place]);
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

  // Where a place's elements of a block lie, from element to element and from row to row.
  struct Operand {
    char* data;
    int64_t stride, row_stride;
  };
  struct Block {
    int64_t columns = 0, rows = 0;
    std::vector<Operand> operands;  // of each place
  };

  void locate(const Walker& walker, char* const* data, int64_t index, Block& block) const {
    const int64_t column = index % blocks_in_row() * columns_, down = (loop_.shape[1] + rows_ - 1) / rows_;
    index /= blocks_in_row();
    const int64_t row = index % down * rows_;
    block.columns = std::min(columns_, loop_.shape[0] - column);
    block.rows = std::min(rows_, loop_.shape[1] - row);
    block.operands.clear();
    for (size_t i = 0; i < loop_.places.size(); ++i) {
      const LoopDescription::Place& place = loop_.places[i];
      if (place.is_inner) {
        const int64_t size = element_size(place.dtype);
        block.operands.push_back({static_cast<char*>(walker.buffers[static_cast<size_t>(buffer_of_[i])].data_ptr()),
                                  place.is_row ? 0 : size, place.is_row ? size : block.columns * size});
        continue;
      }
      char* at = data[i] + column * place.strides[0] + row * place.strides[1];
      int64_t outer = index / down;
      for (size_t d = 2; d < loop_.shape.size(); ++d) {
        at += outer % loop_.shape[d] * place.strides[d];
        outer /= loop_.shape[d];
      }
      block.operands.push_back({at, place.strides[0], place.strides[1]});
    }
  }

  void walk(Walker& walker, char* const* data, int64_t begin, int64_t end) const {
    const SerialLoopsGuard serial;
    Block block;
    for (int64_t index = begin; index < end; ++index) {
      locate(walker, data, index, block);
      for (size_t s = 0; s < loop_.steps.size(); ++s) {
        const LoopDescription::Step& step = loop_.steps[s];
        if (step.reduces != Reduces::Nothing) {
          reduce(step, block, *walker.iterators[s]);
        } else {
          run_element_wise(step, block, *walker.iterators[s]);
        }
      }
    }
  }

  void reduce(const LoopDescription::Step& step, const Block& block, TensorIterator& iterator) const {
    const int64_t columns[] = {1, block.columns};
    for (int i = 0; i < 2; ++i) {
      const size_t place = step.places[static_cast<size_t>(i)];
      char* const data = block.operands[place].data;
      iterator.move_operand(i, from_blob(data, {block.rows, columns[i]}, loop_.places[place].dtype), data);
    }
    step.call->run(kCPU, iterator);
  }

  void run_element_wise(const LoopDescription::Step& step, const Block& block, TensorIterator& iterator) const {
    char* data[TensorIterator::kMaxOperands];
    int64_t strides[TensorIterator::kMaxOperands][2];
    const bool is_of_rows = loop_.places[step.places[0]].is_row;
    bool is_flat = true;  // rows of all operands follow each other
    for (size_t i = 0; i < step.places.size(); ++i) {
      const Operand& operand = block.operands[step.places[i]];
      data[i] = operand.data;
      strides[i][0] = is_of_rows ? operand.row_stride : operand.stride;
      strides[i][1] = operand.row_stride;
      is_flat &= operand.row_stride == block.columns * operand.stride;
    }
    if (is_of_rows) {
      iterator.set_rows(data, strides, block.rows, 1);
    } else if (is_flat) {
      iterator.set_rows(data, strides, block.rows * block.columns, 1);
    } else {
      iterator.set_rows(data, strides, block.columns, block.rows);
    }
    step.call->run(kCPU, iterator);
  }

  LoopDescription loop_;
  std::vector<int> buffer_of_;  // of each place, -1 for none
  int buffers_ = 0;
  int64_t columns_, rows_, blocks_;  // of a block, and how many there are
  std::mutex mutex_;
  std::vector<std::unique_ptr<Walker>> idle_;
};

}  // namespace

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) {
  return std::make_unique<FusedLoop>(std::move(description));
}

}  // namespace rush::cpu
