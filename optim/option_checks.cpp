// Checks of options, which name an option as PyTorch does.
#include <string_view>

#include "optim/optimizer.h"

namespace rush::optim {

void check_not_negative(const char* optimizer, const char* option, double value) {
  const bool is_lr = option == std::string_view("lr"), is_eps = option == std::string_view("eps");
  RUSH_CHECK_VALUE(value >= 0, optimizer, ": Invalid ",
                   is_lr ? "learning rate" : str(is_eps ? "epsilon" : option, " value"), ": ", value, ", ", option,
                   " must be at least 0");
}

void check_betas(const char* optimizer, const std::tuple<double, double>& betas) {
  const double both[] = {std::get<0>(betas), std::get<1>(betas)};
  for (int i : {0, 1}) {
    RUSH_CHECK_VALUE(both[i] >= 0 && both[i] < 1, optimizer, ": Invalid beta parameter at index ", i, ": ", both[i],
                     ", the betas must be in [0, 1)");
  }
}

}  // namespace rush::optim
