#include "nn/parallel/same_everywhere.h"

#include <algorithm>

#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;

void check_same_everywhere(const char* who, const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                           const distributed::Group& group) {
  const TensorOptions numbers = TensorOptions(kInt64).device(kCPU);  // whatever the default device is
  std::vector<int64_t> own, begins;
  for (const Tensor& tensor : tensors) {
    begins.push_back(static_cast<int64_t>(own.size()));
    own.push_back(static_cast<int64_t>(tensor.scalar_type()));
    own.push_back(tensor.dim());
    own.insert(own.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  const int root = group->ranks()[0];
  Tensor counts = tensor({static_cast<int64_t>(tensors.size()), static_cast<int64_t>(own.size())}, numbers);
  distributed::broadcast(counts, root, group);
  Tensor first = tensor(own, numbers);
  if (const auto numel = counts[1].item<int64_t>(); numel != first.numel()) first = empty({numel}, numbers);
  distributed::broadcast(first, root, group);

  const int64_t* theirs = first.data_ptr<int64_t>();
  const auto common = std::min(own.size(), static_cast<size_t>(first.numel()));
  const auto differs = static_cast<int64_t>(
      std::mismatch(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(common), theirs).first - own.begin());
  const bool same = own.size() == static_cast<size_t>(first.numel()) && differs == first.numel();
  Tensor all_same = tensor({int64_t{same}}, numbers);
  distributed::all_reduce(all_same, ReduceOp::MIN, group);
  if (all_same.item<int64_t>()) return;
  RUSH_CHECK_DISTRIBUTED(!same, who, ": the parameters of another process are not those of this one");
  const auto number = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), differs) - begins.begin());
  RUSH_CHECK_DISTRIBUTED(
      number > 0 && number <= tensors.size() && counts[0].item<int64_t>() >= static_cast<int64_t>(number), who,
      ": this process has ", tensors.size(), " parameters, process ", root, " has ", counts[0].item<int64_t>());
  const Tensor& parameter = tensors[number - 1];
  RUSH_THROW(DistributedError, who, ": the parameter '", names[number - 1], "' is ", parameter.scalar_type(),
             " of shape ", parameter.sizes(), " on this process, of rank ", group->rank(),
             ", and has another shape or dtype on process ", root);
}

}  // namespace rush::nn::parallel
