#include "core/amp/autocast.h"

#include <unordered_map>

#include "core/amp/cast_weights.h"
#include "core/device/backend.h"
#include "core/error/error.h"
#include "core/error/warning.h"
#include "core/ops/pointwise/cast_all.h"
#include "core/ops/view/copy.h"

namespace rush::autocast {

namespace {

// Holds its weight too, so that no other tensor takes the address that stands for it.
struct KeptCast {
  Tensor weight, cast;
  int64_t version = -1;  // of the weight, when it was cast
};

struct Cache {
  std::unordered_map<const TensorImpl*, KeptCast> casts;
  int nesting = 0;
};
thread_local Cache cache;

// The dispatch key goes with the state.
void set_state(const AutocastState& state) {
  dispatch_state.autocast = state;
  const KeySet key = DispatchKey::Autocast;
  dispatch_state.included = state.devices ? dispatch_state.included | key : dispatch_state.included.without(key);
}

void check_available(const char* who, DeviceType device) {
  RUSH_CHECK_VALUE(is_autocast_available(device), who, ": there is no autocast for device type ",
                   device_type_name(device));
}

bool may_keep(ScalarType dtype, const Tensor& t, DeviceType device) {
  return dispatch_state.autocast.cache && dtype == get_autocast_dtype(device) && t.scalar_type() == kFloat32 &&
         t.requires_grad() && t.is_leaf() && !t.is_view();
}

}  // namespace

StateGuard::StateGuard(const AutocastState& state) : StateGuard() { set_state(state); }
StateGuard::~StateGuard() { set_state(outer_); }

CacheScope::CacheScope() { increment_nesting(); }
CacheScope::~CacheScope() {
  if (decrement_nesting() == 0) clear_cache();
}

Autocast::Autocast(DeviceType device, std::optional<ScalarType> dtype, bool enabled, std::optional<bool> cache) {
  device = rush::detail::standing(device);
  const bool stands = device == rush::detail::meta_stands_for;
  if (enabled && Device(device).is_accelerator() && !stands && !is_available(device)) {
    RUSH_WARN_ONCE("Autocast: there is no ", device_type_name(device), " device, so that autocast there does nothing");
  }
  if (dtype) set_autocast_dtype(device, *dtype);
  set_autocast_enabled(device, enabled);
  if (cache) set_autocast_cache_enabled(*cache);
}

Off::Off() {
  AutocastState off = dispatch_state.autocast;
  off.devices = 0;
  set_state(off);
}

bool is_autocast_available(DeviceType device) { return rush::detail::standing(device) != kMeta; }

void set_autocast_enabled(DeviceType device, bool enabled) {
  check_available("set_autocast_enabled", device);
  AutocastState state = dispatch_state.autocast;
  const int bit = 1 << static_cast<int>(rush::detail::standing(device));
  state.devices = static_cast<uint8_t>(enabled ? state.devices | bit : state.devices & ~bit);
  set_state(state);
}

ScalarType get_autocast_dtype(DeviceType device) {
  check_available("get_autocast_dtype", device);
  return dispatch_state.autocast.dtypes[static_cast<int>(rush::detail::standing(device))];
}

void set_autocast_dtype(DeviceType device, ScalarType dtype) {
  check_available("set_autocast_dtype", device);
  RUSH_CHECK_VALUE(dtype == kFloat16 || dtype == kBFloat16, "autocast: expected float16 or bfloat16, got ", dtype);
  dispatch_state.autocast.dtypes[static_cast<int>(rush::detail::standing(device))] = dtype;
}

void clear_cache() { cache.casts.clear(); }
size_t cache_size() { return cache.casts.size(); }
int increment_nesting() { return ++cache.nesting; }
int decrement_nesting() { return --cache.nesting; }

bool is_eligible(const Tensor& t, DeviceType device) {
  return t.defined() && rush::detail::standing(t.device().type) == device && t.is_floating_point() &&
         t.scalar_type() != kFloat64;
}

namespace {

// Whether the cache has a cast of `t` that may be used again.
bool is_current(const KeptCast& kept, const Tensor& t) {
  const bool lacks_gradient = dispatch_state.grad_mode && !kept.cast.requires_grad();
  return kept.version == t._version() && !lacks_gradient;
}

}  // namespace

Tensor cached_cast(ScalarType dtype, const Tensor& t, DeviceType device) {
  if (!is_eligible(t, device) || t.scalar_type() == dtype) return t;
  if (!may_keep(dtype, t, device)) return t.to(dtype);
  KeptCast& kept = cache.casts[t.impl()];
  if (!is_current(kept, t)) kept = {t, t.to(dtype), t._version()};
  return kept.cast;
}

void cast_weights(TensorList weights) {
  std::vector<Tensor> missing;
  for (const Tensor& t : weights) {
    const DeviceType device = t.device().type;
    if (!is_autocast_available(device) || !is_autocast_enabled(device) || !is_eligible(t, device)) continue;
    if (!may_keep(get_autocast_dtype(device), t, device)) continue;
    if (!missing.empty() && !(t.device() == missing[0].device())) continue;  // of another GPU: when it is used
    const auto kept = cache.casts.find(t.impl());
    if (kept == cache.casts.end() || !is_current(kept->second, t)) missing.push_back(t);
  }
  if (missing.empty()) return;
  const std::vector<Tensor> casts = cast_all(missing, get_autocast_dtype(missing[0].device().type));
  for (size_t i = 0; i < missing.size(); ++i) {
    cache.casts[missing[i].impl()] = {missing[i], casts[i], missing[i]._version()};
  }
}

}  // namespace rush::autocast
