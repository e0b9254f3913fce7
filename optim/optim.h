// Every optimiser and schedule, and the files that keep them.
#pragma once
#include "optim/adafactor.h"
#include "optim/adam.h"
#include "optim/adaptive.h"
#include "optim/amp/grad_scaler.h"
#include "optim/graphs/graphed_step.h"
#include "optim/lbfgs.h"
#include "optim/muon.h"
#include "optim/schedules/cosine_schedules.h"
#include "optim/schedules/factor_schedules.h"
#include "optim/schedules/lr_scheduler.h"
#include "optim/schedules/reduce_on_plateau.h"
#include "optim/schedules/sequential_lr.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "optim/state/checkpoint.h"
#include "optim/state/serialize.h"

namespace rush {
class Registry;
}

namespace rush::optim {

/// Calls f(Step()) for each step that is made of calls to tensor operators: Note [An optimiser from a description].
template <class F>
void for_each_composed_step(const F& f) {
  f(AdafactorStep());
  f(MuonStep());
}

/// Lists the operators of all steps.
void register_step_operators(Registry& registry);

}  // namespace rush::optim
