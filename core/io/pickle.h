// What the reader and the writer of PyTorch's files know of Python's pickles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scalar_type.h"

namespace rush::io {

// The class that names a storage's dtype.
struct StorageClass {
  ScalarType dtype;
  const char* name;
};
inline constexpr StorageClass kStorageClasses[] = {
    {kFloat32, "FloatStorage"},
    {kFloat64, "DoubleStorage"},
    {kFloat16, "HalfStorage"},
    {kInt64, "LongStorage"},
    {kBFloat16, "BFloat16Storage"},
    {kInt32, "IntStorage"},
    {kUInt8, "ByteStorage"},
    {kBool, "BoolStorage"},
    {kInt16, "ShortStorage"},
    {kInt8, "CharStorage"},
    {kComplex64, "ComplexFloatStorage"},
    {kComplex128, "ComplexDoubleStorage"},
};

// Newer dtypes have no class: their storages are bytes, and the tensor says of what.
inline constexpr const char* kBytesClass = "torch.storage.UntypedStorage";

inline const char* storage_class(ScalarType dtype) {
  for (const StorageClass& known : kStorageClasses) {
    if (known.dtype == dtype) return known.name;
  }
  return nullptr;
}

inline std::optional<ScalarType> storage_dtype(const std::string& name) {
  if (name == kBytesClass) return kUInt8;
  for (const StorageClass& known : kStorageClasses) {
    if (name == std::string("torch.") + known.name) return known.dtype;
  }
  return std::nullopt;
}

// The instructions of pickles of protocol 2, which torch.save writes, and those of later ones that may stand in their
// place: https://github.com/python/cpython/blob/main/Lib/pickletools.py.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersistentId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinFloat = 'G',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kProtocol = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

}  // namespace rush::io
