#include "core/scalar.h"

#include "core/str.h"

namespace rush {

void Scalar::throw_not_held(const char* kind, size_t bits) const {
  RUSH_THROW(ValueError, "Scalar: ", *this, " cannot be converted to ", kind, bits, " without overflow");
}

void append(std::string& out, const Scalar& scalar) {
  switch (scalar.type()) {
    case kBool: append(out, scalar.toBool()); break;
    case kInt64: append(out, scalar.toLong()); break;
    case kUInt64: append(out, scalar.to<uint64_t>()); break;
    case kFloat64: append(out, scalar.toDouble()); break;
    default: {
      const auto value = scalar.to<complex<double>>();
      out += str("(", value.real(), " + ", value.imag(), "j)");
    }
  }
}

}  // namespace rush
