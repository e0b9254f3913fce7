#include "nn/state/state_dict.h"

#include "core/ops/basic.h"

namespace rush {

namespace {

template <class T>
constexpr ScalarType kDtype = kFloat64;
template <>
constexpr ScalarType kDtype<int64_t> = kInt64;
template <>
constexpr ScalarType kDtype<bool> = kBool;

}  // namespace

std::string detail::joined(const std::vector<std::string>& parts, const char* separator) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : separator) + part;
  return all;
}

StateFields::StateFields(const StateDict& dict) : in_(&dict) {
  for (const StateDict::Item& item : dict) left_.insert(item.key());
}

bool StateFields::any_left() const {
  const auto next = left_.lower_bound(prefix_);
  return next != left_.end() && next->substr(0, prefix_.size()) == prefix_;
}

void StateFields::write(std::string_view name, Tensor value) {
  out_->insert(prefix_ + std::string(name), std::move(value));
}

bool StateFields::contains(std::string_view name) const { return in_->contains(prefix_ + std::string(name)); }

const Tensor* StateFields::take(std::string_view name) {
  const std::string key = prefix_ + std::string(name);
  const Tensor* found = in_->find(key);
  if (!found) {
    missing_.push_back(key);
    return nullptr;
  }
  left_.erase(key);
  if (found->defined()) return found;
  wrong_.push_back(key + " is undefined");
  return nullptr;
}

bool StateFields::fits(std::string_view name, const Tensor& value, IntArrayRef sizes, ScalarType dtype,
                       bool exact_dtype) {
  const ScalarType given = value.scalar_type();
  bool fits = given == dtype || (!exact_dtype && ((is_floating_point(given) && is_floating_point(dtype)) ||
                                                  (is_complex(given) && is_complex(dtype))));
  fits = fits && value.dim() == static_cast<int64_t>(sizes.size());
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] < 0 || value.size(static_cast<int64_t>(i)) == sizes[i];
  }
  if (!fits) problem(name, str("is ", value.scalar_type(), " ", value.sizes(), " instead of ", dtype, " ", sizes));
  return fits;
}

void StateFields::misfit(std::string_view name, size_t expected, size_t got) {
  problem(name, str("has ", got, " entries instead of ", expected));
}

template <class T>
bool StateFields::in_range(std::string_view name, const T& value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (value < -kMostCounted || value > kMostCounted) {
      problem(name, str("is out of range: ", value));
      return false;
    }
  }
  return true;
}

template <class T>
void StateFields::number(std::string_view name, T& value) {
  if (!reading()) return write(name, full({}, value, TensorOptions(kDtype<T>).device(kCPU)));
  const Tensor* saved = take(name);
  if (!saved || !fits(name, *saved, {}, kDtype<T>, /*exact_dtype=*/true)) return;
  const T read = saved->item<T>();
  if (in_range(name, read)) value = read;
}

template <class T>
void StateFields::optional_number(std::string_view name, std::optional<T>& value) {
  if (reading() ? !contains(name) : !value.has_value()) {
    value.reset();
    return;
  }
  T some = value.value_or(T());
  number(name, some);
  value = some;
}

template <class T>
void StateFields::list(std::string_view name, std::vector<T>& values) {
  if (!reading()) return write(name, rush::tensor(ArrayRef<T>(values), TensorOptions(kDtype<T>).device(kCPU)));
  const Tensor* saved = take(name);
  if (!saved || !fits(name, *saved, {-1}, kDtype<T>, /*exact_dtype=*/true)) return;
  const Tensor row = saved->detach().to(Device(kCPU)).contiguous();
  const std::vector<T> read(row.data_ptr<T>(), row.data_ptr<T>() + row.numel());
  for (const T& value : read) {
    if (!in_range(name, value)) return;
  }
  values = read;
}

void StateFields::operator()(std::string_view name, bool& value) { number(name, value); }
void StateFields::operator()(std::string_view name, double& value) { number(name, value); }
void StateFields::operator()(std::string_view name, int64_t& value) { number(name, value); }
void StateFields::operator()(std::string_view name, std::vector<double>& values) { list(name, values); }
void StateFields::operator()(std::string_view name, std::vector<int64_t>& values) { list(name, values); }
void StateFields::operator()(std::string_view name, std::optional<double>& value) { optional_number(name, value); }
void StateFields::operator()(std::string_view name, std::optional<int64_t>& value) { optional_number(name, value); }

void StateFields::operator()(std::string_view name, std::tuple<double, double>& value) {
  std::vector<double> both = {std::get<0>(value), std::get<1>(value)};
  fixed(name, both);
  value = {both[0], both[1]};
}

void StateFields::operator()(std::string_view name, uint64_t& value) {
  constexpr uint64_t kHalf = uint64_t{1} << 32;
  std::vector<int64_t> halves = {static_cast<int64_t>(value / kHalf), static_cast<int64_t>(value % kHalf)};
  fixed(name, halves);
  for (const int64_t half : halves) {
    if (half < 0 || static_cast<uint64_t>(half) >= kHalf) return problem(name, str("is out of range: ", half));
  }
  value = static_cast<uint64_t>(halves[0]) * kHalf + static_cast<uint64_t>(halves[1]);
}

void StateFields::count(std::string_view name, uint64_t& value, uint64_t most) {
  auto number = static_cast<int64_t>(value);
  (*this)(name, number);
  if (number < 0 || static_cast<uint64_t>(number) > most) {
    problem(name, str("is out of range: ", number, ", expected at most ", most));
  } else {
    value = static_cast<uint64_t>(number);
  }
}

void StateFields::given(std::string_view name, uint64_t value) {
  auto number = static_cast<int64_t>(value);
  (*this)(name, number);
  if (static_cast<uint64_t>(number) != value) problem(name, str("is ", number, " instead of ", value));
}

void StateFields::part(StateDict& dict) {
  if (!reading()) {
    for (const StateDict::Item& item : dict) write(item.key(), item.value());
    return;
  }
  dict.clear();
  for (auto next = left_.lower_bound(prefix_); next != left_.end() && next->substr(0, prefix_.size()) == prefix_;) {
    dict.insert(std::string(next->substr(prefix_.size())), (*in_)[std::string(*next)]);
    next = left_.erase(next);
  }
}

void StateFields::tensor(std::string_view name, Tensor& value, const Tensor& like, bool required) {
  if (!reading()) {
    if (value.defined()) write(name, value.detach());
    return;
  }
  if (!required && !contains(name)) return;
  const Tensor* saved = take(name);
  if (!saved || !fits(name, *saved, like.sizes(), like.scalar_type(), /*exact_dtype=*/false)) return;
  value = empty_like(like.detach()).copy_(saved->detach());
}

void StateFields::rows(std::string_view name, std::deque<Tensor>& values, const Tensor& like) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.insert(sizes.begin(), -1);
  if (!reading()) {
    sizes[0] = 0;
    write(name, values.empty() ? empty(sizes, like.options())
                               : stack(std::vector<Tensor>(values.begin(), values.end())).detach());
    return;
  }
  const Tensor* saved = take(name);
  if (!saved || !fits(name, *saved, sizes, like.scalar_type(), /*exact_dtype=*/false)) return;
  values.clear();
  for (int64_t i = 0; i < saved->size(0); ++i) {
    values.push_back(empty_like(like.detach()).copy_(saved->detach().select(0, i)));
  }
}

void StateFields::finish(std::string_view who) const {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) parts.push_back(what + detail::joined(names, ", "));
  };
  add("missing: ", missing_);
  add("unexpected: ", {left_.begin(), left_.end()});
  add("wrong: ", wrong_);
  RUSH_CHECK_VALUE(parts.empty(), who, ": the state dict does not fit; ", detail::joined(parts, "; "));
}

}  // namespace rush
