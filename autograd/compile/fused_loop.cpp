#include "autograd/compile/fused_loop.h"

#include <algorithm>
#include <numeric>

#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/ops/view/view.h"

namespace rush {

namespace {

// Bytes from one element to the next in dimension d of the loop; 0 where the place broadcasts.
int64_t stride_of(const FusedLoop::Place& place, size_t d, size_t dims) {
  const size_t kept = place.is_row ? std::min(dims - 1, place.sizes.size()) : place.sizes.size();
  const size_t lead = place.is_row ? 0 : dims - kept;
  if (place.id == Graph::kNone || d < lead || d - lead >= kept || place.sizes[d - lead] == 1) return 0;
  return place.strides[d - lead] * element_size(place.dtype);
}

// The dimensions, innermost first: in the order of the strides of the first tensor that has an element of its own for
// each of the loop's, or else of the first that has all of them. Those of rows are in the tensors' order.
std::vector<size_t> dimensions(IntArrayRef sizes, const std::vector<FusedLoop::Place>& places, bool has_rows) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  if (has_rows) return order;
  const auto has_all = [&](const FusedLoop::Place& place) {
    return place.id != Graph::kNone && IntArrayRef(place.sizes) == sizes;
  };
  auto leader = std::ranges::find_if(places, [&](const FusedLoop::Place& place) {
    return has_all(place) && !may_overlap(place.sizes, place.strides);
  });
  if (leader == places.end()) leader = std::ranges::find_if(places, has_all);
  if (leader != places.end()) {
    std::ranges::stable_sort(order, {}, [&](size_t d) { return sizes[d] == 1 ? 0 : leader->strides[d]; });
  }
  return order;
}

LoopDescription describe(IntArrayRef sizes, Device device, const std::vector<FusedLoop::Place>& places,
                         std::vector<LoopDescription::Step> steps, bool is_one_row) {
  LoopDescription loop{{}, {}, std::move(steps)};
  for (const FusedLoop::Place& place : places)
    loop.places.push_back({place.dtype, place.id == Graph::kNone, place.device != device, place.is_row, {}});
  const bool has_rows = loop.has_rows();
  for (const size_t d : dimensions(sizes, places, has_rows)) {
    if (sizes[d] == 1) continue;
    bool merges = loop.shape.size() > (has_rows && !is_one_row ? 1 : 0);
    for (size_t i = 0; i < places.size() && merges; ++i) {
      merges = loop.places[i].is_inner ||
               stride_of(places[i], d, sizes.size()) == loop.places[i].strides.back() * loop.shape.back();
    }
    if (merges) {
      loop.shape.back() *= sizes[d];
      continue;
    }
    loop.shape.push_back(sizes[d]);
    for (size_t i = 0; i < places.size(); ++i) loop.places[i].strides.push_back(stride_of(places[i], d, sizes.size()));
  }
  return loop;
}

std::vector<size_t> written_places(const std::vector<LoopDescription::Step>& steps) {
  std::vector<size_t> places;
  for (const LoopDescription::Step& step : steps) places.push_back(step.places[0]);
  return places;
}

bool lie_alike(const FusedLoop::Place& a, const FusedLoop::Place& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides;
}

}  // namespace

FusedLoop::FusedLoop(IntArrayRef sizes, Device device, std::vector<Place> places,
                     std::vector<LoopDescription::Step> steps, bool is_one_row)
    : device_(device),
      places_(std::move(places)),
      written_(written_places(steps)),
      is_empty_(std::ranges::find(sizes, 0) != sizes.end()),
      loop_(backend_of(device.type).fuse(describe(sizes, device, places_, std::move(steps), is_one_row))) {}

void FusedLoop::prepare() {
  const DeviceGuard guard(device_);
  if (!is_empty_) loop_->prepare();
}

FusedLoop::Reuses FusedLoop::reuses(const std::vector<Graph::Id>& unread) const {
  Reuses found;
  if (device_.is_cpu() || std::ranges::any_of(places_, &Place::is_row)) return found;
  const auto is_free = [&](size_t read) {
    const Graph::Id id = places_[read].id;
    return !places_[read].is_new && std::ranges::count(places_, id, &Place::id) == 1 &&
           std::ranges::find(unread, id) != unread.end() && std::ranges::find(written_, read) == written_.end() &&
           std::ranges::find(found, read, &std::pair<size_t, size_t>::second) == found.end();
  };
  for (size_t made = 0; made < places_.size(); ++made) {
    if (!places_[made].is_new) continue;
    for (size_t read = 0; read < places_.size(); ++read) {
      if (places_[read].id == Graph::kNone || !lie_alike(places_[made], places_[read]) || !is_free(read)) continue;
      found.emplace_back(made, read);
      break;
    }
  }
  return found;
}

bool owns_all_of_its_memory(const Tensor& tensor) {
  const StorageImpl& storage = *tensor.storage();
  return tensor.use_count() == 1 && storage.use_count() == 1 &&
         static_cast<size_t>(tensor.nbytes()) == storage.nbytes();
}

void FusedLoop::run(std::vector<Tensor>& tensors, const Reuses& reuses) {
  const DeviceGuard guard(device_);
  std::vector<char*> data(places_.size(), nullptr);
  const auto tensor_of = [&](size_t place) -> Tensor& { return tensors[static_cast<size_t>(places_[place].id)]; };
  const auto note = [&](size_t place) {
    const Place& expected = places_[place];
    const Tensor& tensor = tensor_of(place);
    RUSH_CHECK_VALUE(tensor.sizes() == IntArrayRef(expected.sizes) && tensor.strides() == IntArrayRef(expected.strides),
                     "compile: a fused loop was made for sizes ", expected.sizes, " and strides ", expected.strides,
                     ", not ", tensor.sizes(), " and ", tensor.strides(),
                     ": an operator of the program's own whose sizes depend on values needs Tag::DynamicOutputShape");
    data[place] = static_cast<char*>(tensor.data_ptr());
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].id == Graph::kNone) continue;
    places_[i].is_new ? tensor_of(i).reset() : note(i);
  }
  for (const auto& [made, read] : reuses) {
    Tensor& given = tensor_of(read);
    if (owns_all_of_its_memory(given)) tensor_of(made) = std::move(given);
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (!place.is_new) continue;
    if (Tensor& tensor = tensor_of(i); !tensor.defined())
      tensor = detail::empty_strided(place.sizes, place.strides, place.dtype, place.device);
    note(i);
  }
  if (!is_empty_) loop_->run(data.data());
}

}  // namespace rush
