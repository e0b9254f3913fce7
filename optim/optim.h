// Every optimiser and schedule.
#pragma once
#include "optim/adam.h"
#include "optim/lr_scheduler.h"
#include "optim/sgd.h"
