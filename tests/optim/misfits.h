// What the tests of gradients, states and lists that do not fit share.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rushlight.h"

namespace rush::testing {

inline Tensor waves(IntArrayRef sizes, ScalarType dtype = kFloat32) {
  return (arange(0, checked_numel(sizes), kFloat64) * 0.7).sin().reshape(sizes).to(dtype);
}

// Not the default one; on the CPU alone it is one without memory.
inline Device other_device() { return get_default_device().is_cpu() ? Device(kMeta) : Device(kCPU); }

// ---- 30 tensors that cannot take the place of one of shape (20, 25) in float32

struct Misfit {
  std::string name;
  Tensor tensor;
};

inline std::vector<Misfit> misfits() {
  std::vector<Misfit> all;
  const std::vector<std::vector<int64_t>> shapes = {{},       {1},      {2},      {500},       {25},        {20},
                                                    {1, 25},  {20, 1},  {25, 20}, {19, 25},    {21, 25},    {20, 24},
                                                    {20, 26}, {10, 50}, {50, 10}, {1, 20, 25}, {20, 25, 1}, {20, 1, 25},
                                                    {0},      {0, 25},  {20, 0}};
  for (const std::vector<int64_t>& sizes : shapes) all.push_back({str("shape ", IntArrayRef(sizes)), waves(sizes)});
  all.push_back({"shape (40, 25), expanded", waves({1, 25}).expand({40, 25})});
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kComplex64, kComplex128}) {
    all.push_back({str(dtype), zeros({20, 25}, dtype)});
  }
  all.push_back({str(other_device()), zeros({20, 25}, TensorOptions(kFloat32).device(other_device()))});
  all.push_back({str("2,000,000 elements"), waves({2000, 1000})});
  return all;
}

// What a tensor is and holds.
inline std::string contents(const Tensor& t) {
  if (!t.defined()) return "none";
  const std::string kind = str(t.sizes(), t.scalar_type(), t.device());
  if (t.is_meta() || t.layout() != kStrided) return kind;
  const Tensor host = t.detach().to(kCPU).contiguous();
  return kind + std::string(static_cast<const char*>(host.data_ptr()), static_cast<size_t>(host.nbytes()));
}

// The message of the ValueError, TypeError or, for a sparse tensor, NotImplementedError that `call` throws.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const ValueError& error) {
    return error.what();
  } catch (const TypeError& error) {
    return error.what();
  } catch (const NotImplementedError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The message of the ValueError that `call` throws.
template <class Call>
std::string value_error_of(const Call& call) {
  try {
    call();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The bad call is refused with a message that has all `words`, and `unchanged()` is as before.
template <class Call, class Unchanged>
void check_refused(const std::string& name, const std::vector<std::string>& words, const Call& call,
                   const Unchanged& unchanged) {
  CAPTURE(name);
  const std::string before = unchanged();
  const std::string message = refusal(call);
  for (const std::string& word : words) CHECK_MESSAGE(message.find(word) != std::string::npos, word, ": ", message);
  CHECK(unchanged() == before);
}

// What an error about a wrong tensor says of it.
inline std::string said_of(const Tensor& wrong) {
  if (wrong.sizes() != IntArrayRef({20, 25})) return str(wrong.sizes());
  if (wrong.scalar_type() != kFloat32) return str(wrong.scalar_type());
  return str(wrong.device());
}

}  // namespace rush::testing
