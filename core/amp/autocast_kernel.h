// The Autocast kernel of an operator: one template for all. See Note [Autocast].
#pragma once
#include <vector>

#include "core/amp/autocast.h"
#include "core/dispatch/registry.h"

namespace rush::autocast {

/// What becomes of a call's tensors. Those that are not eligible stay as they are.
enum class Cast : uint8_t {
  None,         // nothing: the operator takes what it is given
  Lower,        // cast to the 16-bit dtype
  Float32,      // cast to float32
  Output32,     // left as they are; the result is float32, through the `dtype` argument, unless another is asked for
  OutputLower,  // left as they are; the result is in the 16-bit dtype, likewise
  Widest,       // cast to the widest dtype among them
  Refuse,       // Error: the operator is not safe on 16-bit inputs, and its callers need to know
};

/// Casts tensors and lists of them; passes on all other arguments.
struct CastArguments {
  ScalarType dtype;
  DeviceType device;

  Tensor operator()(const Tensor& t) const { return cached_cast(dtype, t, device); }
  std::optional<Tensor> operator()(const std::optional<Tensor>& t) const {
    return t ? std::optional<Tensor>((*this)(*t)) : std::nullopt;
  }
  std::vector<Tensor> operator()(TensorList list) const { return each<Tensor>(list); }
  std::vector<std::optional<Tensor>> operator()(OptionalTensorList list) const {
    return each<std::optional<Tensor>>(list);
  }
  template <class T>
  const T& operator()(const T& other) const {
    return other;
  }

 private:
  template <class T>
  std::vector<T> each(ArrayRef<T> list) const {
    std::vector<T> cast;
    cast.reserve(list.size());
    for (const T& t : list) cast.push_back((*this)(t));
    return cast;
  }
};

/// Sets a `dtype` argument that was not given.
struct SetDtype {
  ScalarType value;

  std::optional<ScalarType> operator()(const std::optional<ScalarType>& dtype) const { return dtype ? dtype : value; }
  template <class T>
  const T& operator()(const T& other) const {
    return other;
  }
};

/// The widest dtype of what it has seen: the 16-bit one unless a tensor is in another.
struct WidestDtype {
  ScalarType dtype;
  DeviceType device;

  void see(const Tensor& t) {
    if (is_eligible(t, device) && t.scalar_type() != dtype) dtype = kFloat32;
  }
  void see(const std::optional<Tensor>& t) {
    if (t) see(*t);
  }
  void see(TensorList list) {
    for (const Tensor& t : list) see(t);
  }
  void see(OptionalTensorList list) {
    for (const auto& t : list) see(t);
  }
  template <class T>
  void see(const T&) {}
};

/// The device whose list a call goes by: an accelerator's if a tensor is there.
template <class... Args>
DeviceType device_of_call(const Args&... args) {
  const KeySet keys = (KeySet() | ... | rush::detail::keys_of(args));
  return keys.has_any(kAccelerators) ? (keys & kAccelerators).device()
         : keys.has(kCPU)            ? kCPU
                                     : rush::detail::standing(kMeta);
}

template <auto& op, Cast on_cpu, Cast on_accelerator>
struct Kernel;

template <class R, class... Args, Op<R(Args...)>& op, Cast on_cpu, Cast on_accelerator>
struct Kernel<op, on_cpu, on_accelerator> {
  static R call(Args... args) {
    const DeviceType device = device_of_call(args...);
    if (is_autocast_enabled(device)) {
      if constexpr (on_cpu != Cast::None) {
        if (device == kCPU) return with<on_cpu>(device, args...);
      }
      if constexpr (on_accelerator != Cast::None) {
        if (Device(device).is_accelerator()) return with<on_accelerator>(device, args...);
      }
    }
    return op.call_without(DispatchKey::Autocast, args...);
  }

 private:
  template <Cast policy>
  static R with(DeviceType device, const Args&... args) {
    if constexpr (policy == Cast::Refuse) {
      RUSH_THROW(Error, op.name(), ": overflows in 16 bits, so it is refused under autocast; use the form that takes ",
                 "logits, or switch autocast off around it and pass float32");
    } else if constexpr (policy == Cast::Output32 || policy == Cast::OutputLower) {
      const bool sets = is_eligible(std::get<0>(std::tie(args...)), device);
      const SetDtype set{policy == Cast::Output32 ? kFloat32 : get_autocast_dtype(device)};
      const Off off;
      return sets ? op.call_without(DispatchKey::Autocast, set(args)...)
                  : op.call_without(DispatchKey::Autocast, args...);
    } else {
      ScalarType dtype = policy == Cast::Float32 ? kFloat32 : get_autocast_dtype(device);
      if constexpr (policy == Cast::Widest) {
        WidestDtype widest{dtype, device};
        (widest.see(args), ...);
        dtype = widest.dtype;
      }
      const CastArguments cast{dtype, device};
      const Off off;
      return op.call_without(DispatchKey::Autocast, cast(args)...);
    }
  }
};

/// Gives all of `operators` the Autocast kernel.
template <Cast on_cpu, Cast on_accelerator, auto&... operators>
void list(Registry& registry, SourceLocation where = SourceLocation::current()) {
  (registry.kernel(operators, DispatchKey::Autocast, &Kernel<operators, on_cpu, on_accelerator>::call, where), ...);
}

}  // namespace rush::autocast
