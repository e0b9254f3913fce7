#include "core/ops/reduce/sort.h"

#include "autograd/derivatives/index/selected.h"
#include "autograd/derivatives/register.h"
#include "core/ops/reduce/order_statistics.h"

namespace rush {

namespace {

// Operators f(self, how, dim, flags).
template <class How, class... Flags>
struct SelectHowBackward : SelectionBackward {
  void save(const Tensor& self, How, int64_t along, Flags...) { save_selection(self, along); }
};
struct SortStableBackward final : SelectHowBackward<std::optional<bool>, bool> {};
struct TopkBackward final : SelectHowBackward<int64_t, bool, bool> {};
struct KthValueBackward final : SelectHowBackward<int64_t, bool> {};

}  // namespace

void register_sort_derivatives(Registry& r) {
  derive<ops::sort, SelectAlongBackward>(r);
  derive<ops::sort_stable, SortStableBackward>(r);
  derive<ops::topk, TopkBackward>(r);
  derive<ops::kthvalue, KthValueBackward>(r);
  derive_all<SelectAlongBackward, ops::median_dim, ops::nanmedian_dim, ops::mode>(r);
}

}  // namespace rush
