#include "backends/cuda/copy/peer.h"

#include <array>
#include <mutex>

#include "backends/cuda/check.h"
#include "backends/cuda/thread_state.h"
#include "core/device/guard.h"

namespace rush::cuda {

namespace {

enum class Access : char { Unknown, Yes, No };

struct PeerTable {
  std::mutex mutex;
  std::array<std::array<Access, kMaxDevices>, kMaxDevices> access{};
};
PeerTable& table() {
  static auto& instance = *new PeerTable;
  return instance;
}

Access enable(int device, int peer) {
  int can = 0;
  RUSH_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  if (!can) return Access::No;
  const DeviceGuard guard(Device(kCUDA, device));
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
  } else {
    RUSH_CUDA_CHECK(status);
  }
  return Access::Yes;
}

}  // namespace

bool enable_peer_access(int device, int peer) {
  PeerTable& peers = table();
  const std::lock_guard lock(peers.mutex);
  const auto from = static_cast<size_t>(device), to = static_cast<size_t>(peer);
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    Access& known = peers.access[a][b];
    if (known == Access::Unknown) known = enable(static_cast<int>(a), static_cast<int>(b));
  }
  return peers.access[from][to] == Access::Yes;
}

}  // namespace rush::cuda
