#include "nn/parallel/same_everywhere.h"

#include <algorithm>
#include <sstream>

#include "core/distributed/collectives.h"

namespace rush::nn::parallel {

void check_same_everywhere(const char* who, const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                           const distributed::Group& group) {
  const auto described = [](const Tensor& t) { return str(t.scalar_type(), " of shape ", t.sizes()); };
  std::string own;  // a line for each tensor
  for (const Tensor& tensor : tensors) own += described(tensor) + '\n';
  const std::vector<std::string> all = distributed::all_gather_texts(own, group);
  if (std::ranges::count(all, all[0]) == group->size()) return;

  RUSH_CHECK_DISTRIBUTED(own != all[0], who, ": the parameters of another process are not those of this one");
  const int first = group->ranks()[0];
  std::istringstream lines(all[0]);
  std::string theirs;
  for (size_t i = 0; i < tensors.size() && std::getline(lines, theirs); ++i) {
    RUSH_CHECK_DISTRIBUTED(described(tensors[i]) == theirs, who, ": the parameter '", names[i], "' is ",
                           described(tensors[i]), " on this process, of rank ", group->rank(), ", and ", theirs,
                           " on process ", first);
  }
  RUSH_THROW(DistributedError, who, ": this process has ", tensors.size(), " parameters, process ", first, " has ",
             std::ranges::count(all[0], '\n'));
}

}  // namespace rush::nn::parallel
