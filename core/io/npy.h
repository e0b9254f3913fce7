// NumPy's files: one array (.npy, format versions 1 to 3) and several by name (.npz, a ZIP archive of .npy files).
// Described at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. No pickled object is ever read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/io/safetensors.h"
#include "core/tensor.h"

namespace rush::io {

/// Writes `tensor` to `path`, byte for byte as numpy.save does: column-major ("Fortran order") where that is how it
/// lies in memory, else row-major. The old file or the whole new one is there, never a part. Throws ValueError for a
/// tensor that is undefined, sparse or has no data, TypeError for bfloat16, which NumPy lacks, and IOError if the file
/// cannot be written.
void save_npy(const std::string& path, const Tensor& tensor);

/// The array of `path` as a new CPU tensor, with the strides of its order in the file. The file is taken for hostile.
/// Throws IOError, one line that starts with `path`, if it cannot be read or is not valid, and NotImplementedError for
/// a dtype that Rushlight lacks (structured, text, big-endian, wide unsigned) or an unknown version.
Tensor load_npy(const std::string& path);

enum class NpzCompression { Stored, Deflated };

/// Writes the tensors as numpy.savez does (Deflated: numpy.savez_compressed), each under its name. Throws as save_npy,
/// and ValueError for a name that is given twice.
void save_npz(const std::string& path, const NamedTensors& tensors,
              NpzCompression compression = NpzCompression::Stored);

/// All arrays of `path` by their names without ".npy", in the archive's order. Checksums are compared.
/// Together they may unpack to `max_bytes`, by default 64 times the size of the file, or 256 MiB where that is more:
/// zeros compress a thousandfold, and a small file from elsewhere could fill the memory with them. Throws as load_npy;
/// IOError, before anything is unpacked, if the arrays are larger, and if the archive holds anything else than arrays.
NamedTensors load_npz(const std::string& path, std::optional<uint64_t> max_bytes = std::nullopt);

}  // namespace rush::io
