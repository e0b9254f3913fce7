// TensorOptions: dtype, layout, device and the like, as factories take them: dtype(kFloat64).device(kCUDA).
#pragma once
#include <optional>

#include "core/device/device.h"
#include "core/layout.h"
#include "core/type_meta.h"

namespace rush {

class TensorOptions {
 public:
  TensorOptions() = default;
  /// Implicit, so that factories take `kFloat64` or `kCUDA` where options are expected.
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(TypeMeta dtype) : dtype_(dtype.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device, int index = -1) : device_(Device(device, index)) {}
  /// These options with one changed; nullopt takes it back.
  TensorOptions dtype(std::optional<ScalarType> value) const { return with(&TensorOptions::dtype_, value); }
  TensorOptions device(std::optional<Device> value) const { return with(&TensorOptions::device_, value); }
  TensorOptions device(DeviceType type, int index) const { return device(Device(type, index)); }
  TensorOptions layout(std::optional<Layout> value) const { return with(&TensorOptions::layout_, value); }
  TensorOptions requires_grad(std::optional<bool> value) const { return with(&TensorOptions::requires_grad_, value); }
  TensorOptions pinned_memory(std::optional<bool> value) const { return with(&TensorOptions::pinned_memory_, value); }
  TensorOptions memory_format(std::optional<MemoryFormat> value) const {
    return with(&TensorOptions::memory_format_, value);
  }

  /// What was given, else the default.
  TypeMeta dtype() const { return dtype_.given ? TypeMeta(dtype_.value) : get_default_dtype(); }
  Device device() const { return device_.given ? device_.value : get_default_device(); }
  int device_index() const { return device().index; }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_memory_.value_or(false); }

  /// Exactly what was given.
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_memory_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  /// Whether it was given.
  bool has_dtype() const { return dtype_.given; }
  bool has_device() const { return device_.given; }
  bool has_layout() const { return layout_.given; }
  bool has_requires_grad() const { return requires_grad_.given; }
  bool has_pinned_memory() const { return pinned_memory_.given; }
  bool has_memory_format() const { return memory_format_.given; }
  /// These options, with those that `other` was given in their place.
  TensorOptions merge_in(const TensorOptions& other) const {
    TensorOptions merged = *this;
    if (other.has_dtype()) merged.dtype_ = other.dtype_;
    if (other.has_device()) merged.device_ = other.device_;
    if (other.has_layout()) merged.layout_ = other.layout_;
    if (other.has_requires_grad()) merged.requires_grad_ = other.requires_grad_;
    if (other.has_pinned_memory()) merged.pinned_memory_ = other.pinned_memory_;
    if (other.has_memory_format()) merged.memory_format_ = other.memory_format_;
    return merged;
  }

 private:
  // An optional whose value is initialised even when there is none: GCC 12 warns of copies of an empty std::optional,
  // in the caller's code (GCC bug 80635).
  template <class T>
  struct Given {
    T value{};
    bool given = false;

    constexpr Given() = default;
    constexpr Given(std::optional<T> value) : value(value.value_or(T())), given(value.has_value()) {}
    operator std::optional<T>() const { return given ? std::optional<T>(value) : std::nullopt; }
    T value_or(T other) const { return given ? value : other; }
  };

  template <class Member, class Value>
  TensorOptions with(Member member, Value value) const {
    TensorOptions changed = *this;
    changed.*member = value;
    return changed;
  }

  Given<ScalarType> dtype_;
  Given<Device> device_;
  Given<Layout> layout_;
  Given<bool> pinned_memory_;
  Given<MemoryFormat> memory_format_;
  Given<bool> requires_grad_;
};

/// "TensorOptions(dtype=double, device=cpu (default), ...)": every option, and whether it is the default's.
void append(std::string& out, const TensorOptions& options);
/// Options with this one given, to which others can be added.
inline TensorOptions dtype(ScalarType value) { return TensorOptions(value); }
inline TensorOptions device(Device value) { return TensorOptions(value); }
inline TensorOptions requires_grad(bool value = true) { return TensorOptions().requires_grad(value); }

}  // namespace rush
