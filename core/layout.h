// How a tensor's elements are laid out in memory.
#pragma once
#include <cstdint>
#include <string>

namespace rush {

enum class Layout : int8_t { Strided, Sparse, SparseCsr };
inline constexpr Layout kStrided = Layout::Strided;

// Contiguous is row-major; ChannelsLast stores (N, C, H, W) as N, H, W, C, and ChannelsLast3d likewise with depth.
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

const char* name(Layout layout);
const char* name(MemoryFormat format);
inline void append(std::string& out, Layout layout) { out += name(layout); }
inline void append(std::string& out, MemoryFormat format) { out += name(format); }

}  // namespace rush
