// Archives: values by name in one file, as libtorch's programs write and read them key by key.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/dispatch/value.h"
#include "core/io/pt.h"
#include "core/tensor.h"
#include "nn/state/state_dict.h"
#include "nn/state/temporary_file.h"

// Note [Archives]
// An archive holds tensors, numbers, texts and archives by name. It is saved as a dict in PyTorch's own format
// (core/io/pt.h), an inner archive's names behind its own and a dot, so that Python's torch.load reads it:
//
//   rush::serialize::OutputArchive out;            // {"epoch": 3, "net.fc.weight": ..., "net.fc.bias": ...}
//   rush::serialize::OutputArchive inner;
//   net->save(inner);
//   out.write("net", inner);
//   out.write("epoch", rush::Value(3));
//   out.save_to("run.pt");
//
// and the same names of a file that Python's torch.save wrote are read by an InputArchive.
namespace rush::serialize {

/// Mirrors torch::serialize::OutputArchive.
class OutputArchive {
 public:
  /// `is_buffer` says in libtorch's files what takes no gradient; here it changes nothing. Throws ValueError for a key
  /// that is there already, and for an undefined tensor.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const Value& value);
  /// What `nested` holds now.
  void write(const std::string& key, const OutputArchive& nested);

  bool is_empty() const { return values_.empty(); }  // nothing was written
  /// The old file or the whole new one is there, never a part. Throws IOError.
  void save_to(const std::string& filename) const;
  void save_to(std::ostream& stream) const;
  void save_to(const ByteWriter& writer) const;

 private:
  io::NamedValues values_;
};

/// Mirrors torch::serialize::InputArchive.
class InputArchive {
 public:
  /// Reads a file, or what a stream, memory or a reader of so many bytes holds of one: what OutputArchive::save_to,
  /// torch.save in Python or rush::save wrote. Tensors go to `device`, by default the CPU. Throws IOError, and then
  /// holds what it held.
  void load_from(const std::string& filename, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt);
  void load_from(const ByteReader& reader, const std::function<size_t()>& size,
                 std::optional<Device> device = std::nullopt);

  /// Copies into a defined tensor, which may have another floating-point dtype; an undefined one becomes the archive's.
  /// Throws ValueError naming the key when there is none of that kind, or the shape is another.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  void read(const std::string& key, Value& value) const;
  void read(const std::string& key, InputArchive& nested) const;
  /// False, and nothing changed, when there is none.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  bool try_read(const std::string& key, Value& value) const;
  bool try_read(const std::string& key, InputArchive& nested) const;

  /// The names at this level, each once.
  std::vector<std::string> keys() const;
  /// All tensors, those of inner archives by their names behind the archive's and a dot.
  io::NamedTensors tensors() const;
  /// With the numbers and texts among them.
  const io::NamedValues& values() const { return values_; }

 private:
  io::NamedValues values_;
  std::string prefix_;  // of an inner archive, for messages

  const Value* find(const std::string& key) const;
};

/// The tensors of a state dict in an archive, and back.
void save_state(OutputArchive& archive, const StateDict& dict);
StateDict load_state(const InputArchive& archive);
/// Those alone whose names begin so, and not a module's that was saved beside them, say.
StateDict load_state(const InputArchive& archive, const char* what, std::initializer_list<std::string_view> beginnings);

}  // namespace rush::serialize
