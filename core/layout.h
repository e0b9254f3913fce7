// The layout of a tensor: strided or one of the sparse ones.
#pragma once
#include <cstdint>
#include <string>

namespace rush {

/// Strided is dense; the others are described in Note [Sparse tensors].
enum class Layout : int8_t { Strided, Sparse, SparseCsr, SparseCsc, SparseBsr, SparseBsc };
inline constexpr Layout kStrided = Layout::Strided;
inline constexpr Layout kSparse = Layout::Sparse;
inline constexpr Layout kSparseCsr = Layout::SparseCsr;
inline constexpr Layout kSparseCsc = Layout::SparseCsc;
inline constexpr Layout kSparseBsr = Layout::SparseBsr;
inline constexpr Layout kSparseBsc = Layout::SparseBsc;

/// Whether one dimension's indices are compressed to where each of its rows, or columns, starts.
constexpr bool is_compressed(Layout layout) { return layout >= Layout::SparseCsr; }
/// Whether that dimension is the rows'.
constexpr bool compresses_rows(Layout layout) { return layout == Layout::SparseCsr || layout == Layout::SparseBsr; }
/// Whether an index stands for a block of elements.
constexpr bool is_blocked(Layout layout) { return layout == Layout::SparseBsr || layout == Layout::SparseBsc; }

/// Contiguous is row-major; ChannelsLast stores (N, C, H, W) as N, H, W, C, and ChannelsLast3d likewise with depth.
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

const char* name(Layout layout);                                                    // "sparse_coo": PyTorch's names
const char* name(MemoryFormat format);                                              // "channels_last"
inline void append(std::string& out, Layout layout) { out += name(layout); }        // name(layout)
inline void append(std::string& out, MemoryFormat format) { out += name(format); }  // name(format)

}  // namespace rush
