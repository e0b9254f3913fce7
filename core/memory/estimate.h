// The memory that a program needs, known before anything is allocated.
#pragma once
#include <functional>
#include <string>

#include "core/memory/memory_use.h"

namespace rush {

/// What estimate_memory found, in bytes as the device's allocator counts them.
struct MemoryEstimate {
  int64_t peak = 0;    ///< what tensors hold together at most
  MemoryUses at_peak;  ///< what it is for
  int64_t at_end = 0;  ///< what they hold when the program ends
  Device device;       ///< that it is for

  /// A line for each use, and the peak.
  std::string table() const;
};

// Note [Estimates on the meta device]
// Tensors on the meta device have sizes, dtypes and storages, but no memory; operators on them compute shapes, and
// record graphs, as everywhere. So a training step runs there in milliseconds, however large, and its storages are made
// and freed in the order in which the real ones would be: their sum is the memory that the step needs.
//
// Kernels do not run there. What one allocates for the time of its call counts where its backend tells: the estimate
// goes through a kernel that is made of other operators (Kernel::set_by_parts), and asks others for the bytes that they
// work in (Kernel::set_scratch), as the CPU's products and convolutions; what threads work in counts for all at once.
// cuBLAS's workspace counts from the first product on. cuDNN is asked for the plans that it would run, and for their
// workspaces, where there is a GPU; without one, an estimate for CUDA is made as if cuDNN were switched off.

/// Runs `program` on the meta device, and adds up what its tensors hold. It makes its model, its optimiser and a batch,
/// and takes two steps: an optimiser's states are there from the second on. Tensors that it makes without naming a
/// device are on the meta device; others it makes on kMeta. Under autocast::Autocast(kMeta, ...) operators have the
/// dtypes that they have on `device`, whose allocator's rounding counts, too. Throws what `program` throws (no tensor
/// has a value, so that item() is an error, and data_ptr() is null), and Error while another estimate is made.
///
///   const rush::MemoryEstimate estimate = rush::estimate_memory([] {
///     Net net;
///     rush::optim::Adam adam(net->parameters(), 1e-3);
///     for (int i = 0; i < 2; ++i) {
///       adam.zero_grad();
///       net->forward(rush::zeros({64, 3, 224, 224})).sum().backward();
///       adam.step();
///     }
///   }, rush::kCUDA);
///   std::cout << estimate.table();
MemoryEstimate estimate_memory(const std::function<void()>& program, Device device = kCPU);

/// Within a program that is being estimated: what it has needed at most so far is forgotten, and counts again from what
/// its tensors hold now. After a first step, it leaves the making of the model out. Does nothing while no estimate is
/// made.
void reset_estimated_peak();

/// The largest n in [1, most] for which program(n) needs at most `bytes`; 0 if there is none. What it needs must not
/// fall as n grows.
int64_t largest_that_fits(const std::function<void(int64_t n)>& program, int64_t bytes, int64_t most,
                          Device device = kCPU);

/// Bytes that tensors on the device may hold together in this process: of a GPU what is free or theirs already.
int64_t memory_for_tensors(Device device);

}  // namespace rush
