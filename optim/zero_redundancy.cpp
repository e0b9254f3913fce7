#include "optim/zero_redundancy.h"

#include <algorithm>
#include <string>

#include "core/distributed/collectives.h"
#include "nn/parallel/same_everywhere.h"

namespace rush::optim::detail {

std::vector<int> owners_of(const std::vector<Tensor>& params, const distributed::Group& group) {
  std::vector<int64_t> loads(static_cast<size_t>(group->size()));
  std::vector<int> owners;
  for (const Tensor& param : params) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += std::max<int64_t>(param.numel(), 1);
    owners.push_back(static_cast<int>(least - loads.begin()));
  }
  return owners;
}

std::vector<Tensor> own_params(const std::vector<Tensor>& params, const distributed::Group& group) {
  std::vector<std::string> places;
  for (size_t i = 0; i < params.size(); ++i) places.push_back(std::to_string(i));
  nn::parallel::check_same_everywhere("ZeroRedundancyOptimizer", places, params, group);
  RUSH_CHECK_VALUE(params.size() >= static_cast<size_t>(group->size()), "ZeroRedundancyOptimizer: ", params.size(),
                   " parameters cannot be shared out among ", group->size(), " processes");
  const std::vector<int> owners = owners_of(params, group);
  std::vector<Tensor> own;
  for (size_t i = 0; i < params.size(); ++i) {
    if (owners[i] == group->rank()) own.push_back(params[i]);
  }
  return own;
}

void take_from_owners(const std::vector<Tensor>& params, const distributed::Group& group) {
  const std::vector<int> owners = owners_of(params, group);
  std::vector<distributed::WorkPtr> works;
  for (size_t i = 0; i < params.size(); ++i) {
    const int owner = group->ranks()[static_cast<size_t>(owners[i])];
    works.push_back(distributed::broadcast(params[i], owner, group, /*async_op=*/true));
  }
  for (const distributed::WorkPtr& work : works) work->wait();
}

}  // namespace rush::optim::detail
