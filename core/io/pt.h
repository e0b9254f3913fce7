// PyTorch's own files (.pt, .pth): what torch.save writes, without Python. The format is a ZIP archive of a pickle and
// of the bytes of each storage: https://pytorch.org/docs/stable/notes/serialization.html. Nothing in such a file is
// executed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/dispatch/value.h"
#include "core/io/safetensors.h"
#include "core/tensor.h"

namespace rush::io {

/// The tensors of a file that torch.save wrote, on the CPU, in the file's order: a tensor (its name is empty), or
/// dicts, lists and tuples of tensors, whose names are joined by dots ("model.conv1.weight",
/// "optimizer.state.0.exp_avg"). A state dict has the names that Module::named_parameters has. Numbers, strings and
/// None are left out. Tensors that shared memory still do. The file is taken for hostile. Throws IOError, one line that
/// starts with `path`, if it cannot be read or is not valid; NotImplementedError if it holds a dtype that Rushlight
/// lacks, or objects of other classes, such as a model (save model.state_dict() instead) or a NumPy number among a
/// checkpoint's (save float(x)). So it does if the file is in the format of PyTorch before 1.6: load and save it again.
NamedTensors load_pt(const std::string& path);

/// The same with the numbers and texts among them: tensors, int64_t, double, bool and std::string. Integers of more
/// than 64 bits are left out.
using NamedValues = std::vector<std::pair<std::string, Value>>;
NamedValues load_pt_values(const std::string& path);

/// Writes a dict of the tensors as torch.save does; torch.load(path) reads it, with weights_only=True too. Each is
/// written row-major and by itself, also where they share memory. A single one without a name is written alone. The old
/// file or the whole new one is there, never a part. Throws ValueError for a name that is given twice or is not UTF-8
/// and for an undefined tensor or one without data, and IOError if the file cannot be written.
void save_pt(const std::string& path, const NamedTensors& tensors);

/// The same for a dict of tensors, int64_t, double, bool and std::string, in UTF-8. Throws TypeError for other values.
void save_pt_values(const std::string& path, const NamedValues& values);

/// Whether the file begins as torch.save's do, of whichever PyTorch. Throws IOError if it cannot be read.
bool is_pt(const std::string& path);

}  // namespace rush::io
