#include "core/ops/factory/tensor_data.h"

#include <cstring>

#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/reduce/reduce.h"

namespace rush {

TensorData::TensorData(const void* values, size_t size, ScalarType dtype)
    : kind_(Kind::Array), array_(detail::empty_contiguous(static_cast<int64_t>(size), dtype, Device())) {
  if (size) std::memcpy(array_.data_ptr(), values, static_cast<size_t>(array_.nbytes()));
}

TensorData::TensorData(const std::vector<bool>& values)
    : kind_(Kind::Array), array_(detail::empty_contiguous(static_cast<int64_t>(values.size()), kBool, Device())) {
  std::copy(values.begin(), values.end(), array_.data_ptr<bool>());
}

DimVector TensorData::sizes() const {
  if (kind_ == Kind::Number) return {};
  if (kind_ == Kind::Array) return array_.sizes();
  DimVector sizes{static_cast<int64_t>(list_.size())};
  for (size_t i = 0; i < list_.size(); ++i) {
    const DimVector inner = list_[i].sizes();
    if (i == 0) {
      for (int64_t size : inner) sizes.push_back(size);
    }
    RUSH_CHECK_VALUE(IntArrayRef(inner) == IntArrayRef(sizes).slice(1),
                     "tensor: lists on one level must agree: one has sizes ", IntArrayRef(sizes).slice(1), ", another ",
                     inner);
  }
  return sizes;
}

ScalarType TensorData::type() const {
  if (kind_ == Kind::Number) return type_;
  if (kind_ == Kind::Array) return array_.scalar_type();
  if (list_.empty()) return kFloat64;
  ScalarType type = list_[0].type();
  for (const TensorData& element : list_) {
    const ScalarType other = element.type();
    const bool has_large = type == kUInt64 || other == kUInt64;  // a number that an int64 does not hold
    type = has_large && is_integral(type, false) && is_integral(other, false) ? kUInt64 : promote_types(type, other);
  }
  return type;
}

template <class T>
void TensorData::write(T*& next) const {
  if (kind_ == Kind::Number) *next++ = number_.to<T>();
  for (const TensorData& element : list_) element.write(next);
  if (kind_ == Kind::Array) {
    const Tensor values = array_.to(scalar_type_of<T>);
    next = std::copy_n(values.data_ptr<T>(), values.numel(), next);
  }
}

Tensor TensorData::to_tensor() const {
  if (kind_ == Kind::Array) return array_;
  const Tensor out = detail::empty_contiguous(sizes(), type(), Device());
  switch (out.scalar_type()) {
#define RUSH_WRITE(enumerator, cpp, ...)            \
  case ScalarType::enumerator: {                    \
    auto* next = static_cast<cpp*>(out.data_ptr()); \
    write(next);                                    \
    break;                                          \
  }
    RUSH_FORALL_SCALAR_TYPES(RUSH_WRITE)
#undef RUSH_WRITE
  }
  return out;
}

Tensor tensor(const TensorData& data, const TensorOptions& options) {
  const Tensor values = data.to_tensor();
  const ScalarType type = values.scalar_type();
  const ScalarType natural = type == kInt32                         ? kInt64
                             : type == kFloat32 || type == kFloat64 ? get_default_dtype()
                                                                    : type;
  const ScalarType dtype = options.dtype_opt().value_or(natural);
  const bool drops_imaginary = rush::is_complex(type) && !rush::is_complex(dtype) && dtype != kBool;
  RUSH_CHECK_TYPE(!drops_imaginary || !rush::imag(values).any().item<bool>(),
                  "tensor: complex numbers cannot be converted to ", dtype, "; take their real parts");
  return detail::finish_factory(values.to(options.device(), dtype), options);
}

}  // namespace rush
