// Calls seen from the key Trace, as RUSH_SHOW_DISPATCH=1 sees them: Note [Watching calls].
#include <atomic>
#include <filesystem>

#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"
#include "rushlight.h"
#include "tools/diagrams/facts.h"

// The same for an expression that is not evaluated yet.
#define RUSH_SHOWN_CALL(...) #__VA_ARGS__, [&] { return __VA_ARGS__; }

namespace rush::diagrams {

namespace {

Json stops;
int depth = 0;

// Highest first. Undefined is no key that a call stops at.
template <class Predicate>
Json keys_where(const Predicate& has) {
  Json keys = Json::array();
  for (int i = kNumDispatchKeys; --i > 0;) {
    if (has(static_cast<DispatchKey>(i))) keys.push_back(i);
  }
  return keys;
}

Json keys_in(KeySet keys) {
  return keys_where([&](DispatchKey key) { return keys.has(key); });
}

// The path below the root of the repository.
std::string short_path(const char* file) {
  static const std::filesystem::path root = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  return std::filesystem::path(file).lexically_relative(root).generic_string();
}

void note_stop(const OpBase& op, KeySet keys, Stack& stack) {
  const KeySet behind = stops_behind(keys);
  const DispatchKey served = op.served_by(keys.without(KeySet(DispatchKey::Trace) | DispatchKey::Profiler));
  stops.push_back({{"op", op.name()},
                   {"depth", depth},
                   {"keys", keys_in(keys.without(DispatchKey::Trace))},
                   {"kernels", keys_where([&](DispatchKey key) { return op.has_kernel(key); })},
                   {"served", served},
                   {"file", short_path(op.registered_at(served).file_name())}});
  ++depth;
  op.call_boxed(stack, behind);
  --depth;
}

template <class Call>
Json stops_of(const char* code, const Call& call) {
  stops = Json::array();
  const std::atomic_ref<KeySet> watched(watching);
  watched = watched.load() | DispatchKey::Trace;
  call();
  watched = watched.load().without(DispatchKey::Trace);
  return {{"code", code}, {"stops", stops}};
}

// The keys that a call carries at its first stop.
template <class Call>
Json carried_by(const char* when, const char* code, const Call& call) {
  return {{"code", std::string(code) + when}, {"keys", stops_of(code, call)["stops"][0]["keys"]}};
}

Json carried_keys() {
  const Tensor a = ones({2, 2}, requires_grad()), b = ones({2, 2}), s = b.to_sparse();
  Json rows = {carried_by("", RUSH_SHOWN_CALL(b + b)), carried_by(" (a requires a gradient)", RUSH_SHOWN_CALL(a + b)),
               carried_by(" (s is sparse)", RUSH_SHOWN_CALL(s + s))};
  {
    const autocast::Autocast lower(kCPU, kBFloat16);
    rows.push_back(carried_by(" under Autocast", RUSH_SHOWN_CALL(b + b)));
  }
  {
    const IncludeDispatchKeyGuard guard(registry().take_key("the program's"));
    rows.push_back(carried_by(" under a program's own key", RUSH_SHOWN_CALL(b + b)));
  }
  const profiler::Profile profile({.with_devices = false});
  rows.push_back(carried_by(" while a profile records", RUSH_SHOWN_CALL(b + b)));
  return rows;
}

}  // namespace

Json dispatch_facts() {
  registry().fallback(DispatchKey::Trace, note_stop);
  Json keys = Json::array();  // by number
  for (int i = 0; i < kNumDispatchKeys; ++i) keys.push_back(name(static_cast<DispatchKey>(i)));
  const Tensor a = ones({2, 2}, requires_grad()), b = ones({2, 2});
  Json facts = {{"keys", keys}, {"add", stops_of(RUSH_SHOWN_CALL(a + b))}, {"view", stops_of(RUSH_SHOWN_CALL(a.t()))}};
  {
    const Tensor h = b.to(kBFloat16);
    const autocast::Autocast lower(kCPU, kBFloat16);
    facts["autocast"] = stops_of(RUSH_SHOWN_CALL(a.mm(h)));
  }
  facts["carried"] = carried_keys();
  return facts;
}

}  // namespace rush::diagrams
