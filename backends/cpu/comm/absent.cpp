// Stands for the rest of this folder where the library is built without MPI.
#include "core/distributed/init.h"

namespace rush::distributed {

bool detail::has_mpi() { return false; }

Group detail::make_mpi_group(const InitOptions&) {
  RUSH_THROW(DistributedError,
             "init_process_group: this library was built without MPI; install libopenmpi-dev and "
             "openmpi-bin, and build it with -DRUSH_MPI=ON");
}

}  // namespace rush::distributed
