// Recorded operator calls: a .jsonl file with a case a line, and the .safetensors file beside it with their tensors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch/value.h"
#include "core/io/safetensors.h"

namespace conformance {

struct Case {
  std::string id;        // "add/float64/3"
  std::string family;    // "add"
  std::string overload;  // "aten::add.Tensor"
  std::string schema;
  rush::ScalarType dtype;
  // As the file gives them: a tensor is {"tensor": KEY, "dtype": ..., "shape": ...}.
  nlohmann::json args, kwargs, outputs, grad_outputs, grads;
  std::string refused;  // why the call must throw; empty where it must not
};

/// How arguments whose strides a case does not give lie in memory: row-major; with the first dimension innermost; or
/// row-major with a gap behind each element.
enum class ArgumentOrder { RowMajor, Reversed, Spread };

class CaseFile {
 public:
  /// Throws IOError, one line that names the file (and the line in it), if either file is missing or malformed.
  explicit CaseFile(const std::string& path, ArgumentOrder order = ArgumentOrder::RowMajor);

  ArgumentOrder order() const { return order_; }
  const std::vector<Case>& cases() const { return cases_; }
  /// The tensor that `spec` describes, on the CPU, row-major.
  rush::Tensor tensor(const nlohmann::json& spec) const;

 private:
  std::vector<Case> cases_;
  ArgumentOrder order_;
  rush::io::SafetensorsFile tensors_;
};

/// Turns a case's arguments into the Values of a call on one device.
class ArgumentReader {
 public:
  ArgumentReader(const CaseFile& file, rush::Device device) : file_(file), device_(device) {}

  /// `type` is the argument's type in the schema: it tells what an empty list is a list of.
  /// Throws ValueError for a form that no schema type takes.
  rush::Value read(const nlohmann::json& json, const std::string& type);

  /// The tensors read so far, with their keys.
  const std::vector<std::pair<std::string, rush::Tensor>>& tensors() const { return tensors_; }
  /// Those of them that are to be differentiated.
  const std::vector<std::pair<std::string, rush::Tensor>>& differentiated() const { return differentiated_; }

 private:
  rush::Value read_list(const nlohmann::json& list, const std::string& type);
  rush::Value read_object(const nlohmann::json& object);
  rush::Tensor read_tensor(const nlohmann::json& spec);

  const CaseFile& file_;
  rush::Device device_;
  std::vector<std::pair<std::string, rush::Tensor>> tensors_, differentiated_;
};

/// The dtype of this name ("float32"). Throws ValueError for any other text.
rush::ScalarType dtype_named(const std::string& name);

}  // namespace conformance
