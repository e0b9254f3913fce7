#include "core/ops/reduce/sort.h"

#include "autograd/derivatives/index/selected.h"
#include "autograd/derivatives/register.h"
#include "core/ops/reduce/order_statistics.h"

namespace rush {

namespace {

struct SortStableBackward final : SelectionBackward {
  RUSH_SAVED(indices)
  void save(const Tensor& self, std::optional<bool>, int64_t along, bool) { save_selection(self, along); }
};

struct TopkBackward final : SelectionBackward {
  RUSH_SAVED(indices)
  void save(const Tensor& self, int64_t, int64_t along, bool, bool) { save_selection(self, along); }
};

struct KthValueBackward final : SelectionBackward {
  RUSH_SAVED(indices)
  void save(const Tensor& self, int64_t, int64_t along, bool) { save_selection(self, along); }
};

}  // namespace

void register_sort_derivatives(Registry& r) {
  derive<ops::sort, SelectAlongBackward>(r);
  derive<ops::sort_stable, SortStableBackward>(r);
  derive<ops::topk, TopkBackward>(r);
  derive<ops::kthvalue, KthValueBackward>(r);
  derive_all<SelectAlongBackward, ops::median_dim, ops::nanmedian_dim, ops::mode>(r);
}

}  // namespace rush
