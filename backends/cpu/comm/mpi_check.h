// RUSH_MPI_CALL: the one way in which functions of MPI are called.
#pragma once
#include <mpi.h>

#include "core/distributed/distributed_error.h"

namespace rush::cpu {

/// Throws DistributedError, with MPI's words for the status, unless it is MPI_SUCCESS.
void check_mpi(int status, const char* call);

}  // namespace rush::cpu

#define RUSH_MPI_CALL(function, ...) ::rush::cpu::check_mpi(function(__VA_ARGS__), #function)
