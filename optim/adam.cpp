#include "optim/adam.h"

namespace rush::optim {

RUSH_OPTIMIZER_PARTS(, AdamOptions, AdamParamState, AdamStep);
RUSH_OPTIMIZER_PARTS(, AdamWOptions, AdamParamState, AdamStep);

}  // namespace rush::optim
