// What belongs to one stream of one device, made when that stream first needs it: see Note [Handles of libraries].
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

// The State of the current device's current stream. A State has members `device` and `stream`; set_up(state) completes
// one that has just been made.
template <class State, void (*set_up)(State&)>
State& state_of_current_stream() {
  struct Table {
    std::mutex mutex;
    std::map<std::pair<int, cudaStream_t>, std::unique_ptr<State>> states;
  };
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const cudaStream_t stream = current_stream();
  // Most calls of a thread go to the stream of its last one.
  thread_local State* last = nullptr;
  if (last && last->device == device && last->stream == stream) return *last;
  static Table& table = *new Table;
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::unique_ptr<State>& state = table.states[{device, stream}];
  if (!state) {
    const OutsideCapture relaxed;
    auto made = std::make_unique<State>();
    made->device = device;
    made->stream = stream;
    set_up(*made);
    state = std::move(made);
  }
  return *(last = state.get());
}

}  // namespace rush::cuda
