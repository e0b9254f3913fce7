// What onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto) numbers: fields, dtypes and attributes.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/scalar_type.h"

namespace rush::onnx {

inline constexpr int64_t kOpset = 21, kIrVersion = 10;

// The fields of messages, by their names there.
namespace model {
enum Field : uint32_t { ir_version = 1, producer_name = 2, graph = 7, opset_import = 8 };
}
namespace graph {
enum Field : uint32_t { node = 1, name = 2, initializer = 5, input = 11, output = 12 };
}
namespace node {
enum Field : uint32_t { input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7 };
}
namespace attribute {
enum Field : uint32_t { name = 1, f = 2, i = 3, s = 4, t = 5, floats = 7, ints = 8, strings = 9, type = 20 };
enum Type : int64_t { Float = 1, Int = 2, String = 3, Ints = 7, Strings = 8 };
}  // namespace attribute
namespace tensor {
enum Field : uint32_t {
  dims = 1,
  data_type = 2,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  external_data = 13,
  data_location = 14
};
inline constexpr int64_t kExternal = 1;  // TensorProto.DataLocation
}  // namespace tensor

// TensorProto.DataType; nothing where the other side lacks it.
struct DataType {
  int64_t number;
  ScalarType dtype;
};
inline constexpr DataType kDataTypes[] = {
    {1, kFloat32}, {2, kUInt8},    {3, kInt8},     {4, kUInt16},  {5, kInt16},   {6, kInt32},     {7, kInt64},
    {9, kBool},    {10, kFloat16}, {11, kFloat64}, {12, kUInt32}, {13, kUInt64}, {16, kBFloat16},
};

// A recurrent layer: the order of its gates there, and here (the formulas are in core/ops/nn/recurrent.h), and the
// activations of one direction that it has here.
struct RecurrentLayer {
  std::string_view node, gates, gates_here, activations;
};
inline constexpr RecurrentLayer kRecurrentLayers[] = {
    {"LSTM", "iofg", "ifgo", "Sigmoid Tanh Tanh "}, {"GRU", "zrn", "rzn", "Sigmoid Tanh "}, {"RNN", "h", "h", "Tanh "}};

}  // namespace rush::onnx
