#include "core/type_meta.h"

#include <algorithm>
#include <atomic>

#include "core/error/error.h"
#include "core/print/stream_output.h"

namespace rush {

namespace {
std::atomic<ScalarType> default_dtype{kFloat32};
}

std::string_view TypeMeta::name() const {  // as libtorch's that GCC built, in the order of the table
  static constexpr std::string_view kNames =
      "unsigned char|signed char|short int|int|long int|c10::Half|float|double|c10::complex<float>|"
      "c10::complex<double>|bool|c10::BFloat16|c10::Float8_e5m2|c10::Float8_e4m3fn|"
      "short unsigned int|unsigned int|long unsigned int";
  static_assert(std::count(kNames.begin(), kNames.end(), '|') + 1 == kNumScalarTypes, "a dtype lacks its name");
  std::string_view names = kNames;
  for (int i = 0; i < static_cast<int>(type_); ++i) names.remove_prefix(names.find('|') + 1);
  return names.substr(0, names.find('|'));
}

TypeMeta get_default_dtype() { return TypeMeta(default_dtype.load(std::memory_order_relaxed)); }

void set_default_dtype(ScalarType type) {
  RUSH_CHECK_TYPE(is_floating_point(type) && has_arithmetic(type),
                  "set_default_dtype: expected a floating point type that has arithmetic, got ", type);
  default_dtype.store(type, std::memory_order_relaxed);
}

}  // namespace rush
