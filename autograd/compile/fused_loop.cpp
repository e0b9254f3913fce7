#include "autograd/compile/fused_loop.h"

#include <algorithm>
#include <numeric>

#include "core/geometry.h"
#include "core/iterator/tensor_iterator.h"
#include "core/threads/parallel.h"

namespace rush {

namespace {

constexpr int64_t kWidest = sizeof(complex<double>);

}  // namespace

// What one thread works with: an iterator for each kernel, and the buffers.
struct FusedLoop::Walker {
  Walker(const FusedLoop& loop, int64_t block) : buffers(static_cast<size_t>(loop.buffers_)) {
    for (Tensor& buffer : buffers) buffer = detail::empty_contiguous({block * kWidest}, kByte, kCPU);
    for (const Step& step : loop.steps_) {
      // The tensors stand for their dtypes alone: each block's places are set before it is walked.
      const auto stand_in = [&](int place) {
        return detail::empty_contiguous({1}, loop.places_[static_cast<size_t>(place)].dtype, kCPU);
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

FusedLoop::FusedLoop(IntArrayRef sizes, std::vector<Place> places, std::vector<Step> steps)
    : places_(std::move(places)), steps_(std::move(steps)) {
  set_loop_strides(sizes);
  assign_buffers();
  const int64_t run = shape_.empty() ? 1 : shape_[0];
  blocks_in_run_ = (run + kBlock - 1) / kBlock;
  blocks_ = blocks_in_run_;
  for (size_t d = 1; d < shape_.size(); ++d) blocks_ *= shape_[d];
}
FusedLoop::~FusedLoop() = default;

// In the order of the first new tensor's strides, which is also how it will be written; neighbours that all places have
// one after the other become one dimension.
void FusedLoop::set_loop_strides(IntArrayRef sizes) {
  const size_t dims = sizes.size();
  std::vector<size_t> order(dims);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  const auto leader = std::ranges::find_if(
      places_, [&](const Place& place) { return place.id != Graph::kNone && IntArrayRef(place.sizes) == sizes; });
  if (leader != places_.end()) {
    std::ranges::stable_sort(order, {}, [&](size_t d) { return sizes[d] == 1 ? 0 : leader->strides[d]; });
  }
  for (const size_t d : order) {
    if (sizes[d] == 1) continue;
    const auto stride_of = [&](const Place& place) -> int64_t {
      const size_t lead = dims - place.sizes.size();
      if (place.id == Graph::kNone || d < lead || place.sizes[d - lead] == 1) return 0;
      return place.strides[d - lead] * element_size(place.dtype);
    };
    const bool merges = !shape_.empty() && std::ranges::all_of(places_, [&](const Place& place) {
      return place.id == Graph::kNone || stride_of(place) == place.loop_strides.back() * shape_.back();
    });
    if (merges) {
      shape_.back() *= sizes[d];
      continue;
    }
    shape_.push_back(sizes[d]);
    for (Place& place : places_) place.loop_strides.push_back(stride_of(place));
  }
}

// A buffer is used again once the last kernel that reads it has run, and is not the output of that kernel.
void FusedLoop::assign_buffers() {
  std::vector<size_t> last(places_.size(), 0);
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (const int place : steps_[s].places) last[static_cast<size_t>(place)] = s;
  }
  std::vector<int> free;
  for (size_t s = 0; s < steps_.size(); ++s) {
    Place& out = places_[static_cast<size_t>(steps_[s].places[0])];
    if (out.id == Graph::kNone && out.buffer < 0) {
      if (free.empty()) free.push_back(buffers_++);
      out.buffer = free.back();
      free.pop_back();
    }
    std::vector<int> places = steps_[s].places;
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const int p : places) {
      const Place& place = places_[static_cast<size_t>(p)];
      if (place.id == Graph::kNone && last[static_cast<size_t>(p)] == s) free.push_back(place.buffer);
    }
  }
}

std::unique_ptr<FusedLoop::Walker> FusedLoop::take_walker() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Walker> walker = std::move(idle_.back());
      idle_.pop_back();
      return walker;
    }
  }
  return std::make_unique<Walker>(*this, kBlock);
}

void FusedLoop::give_back(std::unique_ptr<Walker> walker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(walker));
}

void FusedLoop::run(std::vector<Tensor>& tensors) {
  std::vector<char*> data(places_.size(), nullptr);
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.id == Graph::kNone) continue;
    Tensor& tensor = tensors[static_cast<size_t>(place.id)];
    if (place.is_new) tensor = detail::empty_strided(place.sizes, place.strides, place.dtype, kCPU);
    RUSH_INTERNAL_ASSERT(tensor.sizes() == IntArrayRef(place.sizes) && tensor.strides() == IntArrayRef(place.strides),
                         "a fused loop was made for sizes ", place.sizes, " and strides ", place.strides, ", not ",
                         tensor.sizes(), " and ", tensor.strides());
    data[i] = static_cast<char*>(tensor.data_ptr());
  }
  if (std::ranges::find(shape_, 0) != shape_.end()) return;
  const int64_t block = std::min(kBlock, shape_.empty() ? int64_t{1} : shape_[0]);
  const auto work = static_cast<int64_t>(steps_.size()) * block;
  parallel_for(0, blocks_, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    std::unique_ptr<Walker> walker = take_walker();
    walk(*walker, data.data(), begin, end);
    give_back(std::move(walker));
  });
}

void FusedLoop::walk(Walker& walker, char* const* data, int64_t begin, int64_t end) const {
  const SerialLoopsGuard serial;
  const int64_t run = shape_.empty() ? 1 : shape_[0];
  std::vector<char*> at(places_.size());
  std::vector<int64_t> strides(places_.size());
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block % blocks_in_run_ * kBlock, n = std::min(kBlock, run - first);
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (place.id == Graph::kNone) {
        at[i] = static_cast<char*>(walker.buffers[static_cast<size_t>(place.buffer)].data_ptr());
        strides[i] = element_size(place.dtype);
        continue;
      }
      at[i] = data[i];
      strides[i] = shape_.empty() ? 0 : place.loop_strides[0];
      at[i] += first * strides[i];
      int64_t outer = block / blocks_in_run_;
      for (size_t d = 1; d < shape_.size(); ++d) {
        at[i] += outer % shape_[d] * place.loop_strides[d];
        outer /= shape_[d];
      }
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      char* step_data[TensorIterator::kMaxOperands];
      int64_t step_strides[TensorIterator::kMaxOperands];
      const std::vector<int>& places = steps_[s].places;
      for (size_t i = 0; i < places.size(); ++i) {
        step_data[i] = at[static_cast<size_t>(places[i])];
        step_strides[i] = strides[static_cast<size_t>(places[i])];
      }
      walker.iterators[s]->set_flat(step_data, step_strides, n);
      steps_[s].call->run(kCPU, *walker.iterators[s]);
    }
  }
}

}  // namespace rush
