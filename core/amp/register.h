// Gives operators their Autocast kernels.
#pragma once

namespace rush {

class Registry;

void register_autocast(Registry& registry);

}  // namespace rush
