// The fake backend: a program for many processes runs on one, which sends nothing.
#pragma once
#include <optional>

#include "core/distributed/process_group.h"

namespace rush::distributed {

/// A group of `world_size` processes, of which this one is number `rank`; where one is not given, as the environment
/// says, and 0 and 1 without one. Collectives check their arguments and are done at once. all_gather fills the
/// blocks of all processes with what this one sends, reduce_scatter takes the block of this rank, and all_reduce,
/// reduce and broadcast leave the tensor as it is. all_to_all, gather and scatter move what this process sends to
/// itself; zeros come from the others, as in recv. For dry runs: shapes and memory are those of a real run. Throws
/// ValueError unless 0 <= rank < world_size.
Group make_fake_group(std::optional<int> rank, std::optional<int> world_size);

}  // namespace rush::distributed
