// libtorch's macros of attributes.
#pragma once
#include "c10/macros/Export.h"
#include "core/macros.h"

#define C10_LIKELY(condition) RUSH_LIKELY(condition)
#define C10_UNLIKELY(condition) RUSH_UNLIKELY(condition)
#define C10_NOINLINE RUSH_NOINLINE
#define C10_ALWAYS_INLINE RUSH_ALWAYS_INLINE
#define C10_NODISCARD [[nodiscard]]
#define C10_UNUSED [[maybe_unused]]
#define C10_USED __attribute__((__used__))
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_RESTRICT __restrict
#define C10_HOST_DEVICE RUSH_HD
#define C10_HOST
#define C10_DEVICE
#define C10_STRINGIZE_(text) #text
#define C10_STRINGIZE(text) C10_STRINGIZE_(text)
#define C10_CONCATENATE_(first, second) first##second
#define C10_CONCATENATE(first, second) C10_CONCATENATE_(first, second)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, C10_UID)
