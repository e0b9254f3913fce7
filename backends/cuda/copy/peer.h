// Access of one GPU to another's memory.
#pragma once

namespace rush::cuda {

// Lets each of both devices read and write the other's memory, once; nothing where the hardware cannot: copies between
// them then go through the host, by the driver. Returns whether `device` can reach `peer`.
bool enable_peer_access(int device, int peer);

}  // namespace rush::cuda
