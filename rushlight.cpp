// Where the rooms meet: the registration of everything, in order. See Note [Explicit registration].
#include "autograd/derivatives/register.h"
#include "backends/cpu/register.h"
#ifdef RUSH_HAS_CUDA
#include "backends/cuda/register.h"
#endif
#include "core/amp/register.h"
#include "core/dispatch/registry.h"
#include "core/distributed/functional.h"
#include "core/ops/register.h"
#include "core/profiler/profiled_program.h"
#include "core/profiler/record.h"
#include "optim/optim.h"

#if defined(__unix__) && !defined(__APPLE__)
extern "C" const char rush_gdb_scripts;  // takes tools/gdb/embed.cpp along into every program
[[gnu::used]] static const char* const gdb_scripts = &rush_gdb_scripts;
#endif

namespace rush {

void register_all(Registry& registry) {
  profiler::register_profiler(registry);
  register_ops(registry);
  distributed::register_collectives(registry);
  optim::register_step_operators(registry);
  register_cpu(registry);
#ifdef RUSH_HAS_CUDA
  register_cuda();
#endif
  register_autograd(registry);
  register_autocast(registry);
  profiler::profile_if_asked();
}

}  // namespace rush
