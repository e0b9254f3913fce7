// Asking for CUDA devices, whether or not a backend for them is part of this program.
#pragma once
#include <cstdint>

namespace rush::cuda {

namespace detail {
// Set by the CUDA backend when it registers its operators.
using DeviceCount = int (*)();
inline constinit DeviceCount count_devices = nullptr;
}  // namespace detail

// How many devices this program can use: none without the backend. torch::cuda::device_count.
inline int64_t device_count() { return detail::count_devices ? detail::count_devices() : 0; }
// torch::cuda::is_available.
inline bool is_available() { return device_count() > 0; }

}  // namespace rush::cuda
