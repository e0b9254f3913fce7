// The parameters of a kernel, read from its source.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scalar_type.h"

namespace rush::cuda {

struct Parameter {
  std::string name;
  std::string type;                      // without const and "*": "float", "T", "rush::complex<float>"
  std::optional<size_t> type_parameter;  // which of the kernel's it is; none where it is a type
  ScalarType dtype = kFloat32;           // that the type names; of a type parameter, none
  bool is_pointer = false;
  bool is_const = false;  // what it points at
};

struct Signature {
  std::string name;
  std::vector<std::string> type_parameters;  // of `template <class T, typename U>`
  std::vector<Parameter> parameters;
};

// That of the __global__ function `kernel`, or of the first one where `kernel` is empty. Comments, attributes and
// __restrict__ are passed over; macros are not expanded. Throws ValueError where there is no such function, or it has
// a parameter that is no number and no pointer to numbers.
Signature read_signature(std::string_view source, std::string_view kernel);

// The dtype that a C++ type names, "int64_t", "rush::Half" or "__half"; none where there is no such dtype.
std::optional<ScalarType> dtype_named(std::string_view type);
// A C++ type of a dtype: "::rush::Half".
const char* cpp_name(ScalarType dtype);

}  // namespace rush::cuda
