// The backend "nccl": process groups that are communicators of NCCL.
#include <dlfcn.h>
#include <nccl.h>

#include <cstdlib>
#include <optional>

#include "backends/cuda/devices.h"
#include "backends/cuda/register.h"
#include "backends/cuda/stream/stream.h"
#include "core/device/guard.h"
#include "core/distributed/collectives.h"
#include "core/distributed/environment.h"
#include "core/distributed/init.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

using distributed::Environment;
using distributed::Group;
using distributed::InitOptions;
using distributed::ProcessGroup;
using distributed::ReduceOp;
using distributed::Work;
using distributed::WorkPtr;

// ---- the library, which is looked up at run time: a program that makes no group needs none

// clang-format off
#define RUSH_NCCL_FUNCTIONS(_) \
  _(ncclGetErrorString) _(ncclGetLastError) _(ncclGetUniqueId) \
  _(ncclCommInitRank) _(ncclCommSplit) _(ncclCommDestroy) _(ncclCommGetAsyncError) \
  _(ncclAllReduce) _(ncclReduce) _(ncclBroadcast) _(ncclAllGather) _(ncclReduceScatter) \
  _(ncclSend) _(ncclRecv) _(ncclGroupStart) _(ncclGroupEnd)
// clang-format on

struct Nccl {
#define RUSH_DECLARE(name) decltype(&::name) name = nullptr;
  RUSH_NCCL_FUNCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE
};

// Empty, or what is missing.
std::string load(Nccl& functions) {
  const std::string soname = str("libnccl.so.", NCCL_MAJOR);
  void* library = nullptr;
  for (const std::string& name : {soname, std::string(RUSH_NCCL_LIBRARY)}) {
    if (!library && !name.empty()) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) return soname + " is not found";
#define RUSH_LOAD(name)                                                               \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (!functions.name) return soname + " has no " #name;
  RUSH_NCCL_FUNCTIONS(RUSH_LOAD)
#undef RUSH_LOAD
  return {};
}

// Throws DistributedError where there is no library, or an old one.
const Nccl& nccl() {
  static Nccl functions;
  static const std::string missing = load(functions);
  RUSH_CHECK_DISTRIBUTED(missing.empty(), "NCCL: ", missing);
  return functions;
}

// Throws DistributedError, with NCCL's words for the status, unless it is ncclSuccess.
void check_nccl(ncclResult_t status, const char* call) {
  RUSH_CHECK_DISTRIBUTED(status == ncclSuccess, call, ": ", nccl().ncclGetErrorString(status), ": ",
                         nccl().ncclGetLastError(nullptr));
}

// The one way in which functions of NCCL are called.
#define RUSH_NCCL_CALL(function, ...) check_nccl(nccl().function(__VA_ARGS__), #function)

// ---- groups

// Note [Collectives on a stream]
// Each group has a stream of its own. A collective waits there for what the current stream has been given, and
// Work::wait() has the current stream wait for the collective; the host waits for neither, and what a program computes
// in between overlaps with it. Memory that a collective uses is not given to others before the stream is done with it.
// In a graph that is captured the group's stream takes part, as any that has waited for the captured one.

// Note [Messages that wait]
// The kernel of a send or receive spins until the other end comes, on as many multiprocessors as would copy fastest: 16
// of an H100's 132, so that a product of 128 tiles takes two turns where it took one. Where messages are begun long
// before both ends are there, they go over a communicator of two, whose 40 GB/s are a stage's output in microseconds.
constexpr int kWaitingProcessors = 2;

std::byte* data_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }
size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.nbytes()); }

// How NCCL sees a reduction of elements. True is 1: a sum of bools is their or, a product their and. Complex numbers
// are pairs of real ones, which no product of them is.
struct Reduction {
  ncclDataType_t type;
  size_t count;
  ncclRedOp_t op;

  Reduction(const char* who, const Tensor& tensor, ReduceOp reduce_op, int processes)
      : type(type_of(who, tensor.scalar_type())),
        count(static_cast<size_t>(tensor.numel() * (tensor.is_complex() ? 2 : 1))),
        op(op_of(reduce_op, tensor.scalar_type() == kBool, processes)) {
    const ScalarType dtype = tensor.scalar_type();
    RUSH_CHECK_NOT_IMPLEMENTED(!tensor.is_complex() || reduce_op != ReduceOp::PRODUCT, who,
                               ": NCCL has no products of ", dtype);
    RUSH_CHECK_NOT_IMPLEMENTED(element_size(dtype) > 1 || reduce_op != ReduceOp::AVG, who, ": NCCL has no means of ",
                               dtype);
  }

 private:
  static ncclDataType_t type_of(const char* who, ScalarType dtype) {
    switch (dtype) {
      case kInt8: return ncclInt8;
      case kUInt8:
      case kBool: return ncclUint8;
      case kInt32: return ncclInt32;
      case kInt64: return ncclInt64;
      case kFloat16: return ncclFloat16;
      case kBFloat16: return ncclBfloat16;
      case kFloat32:
      case kComplex64: return ncclFloat32;
      case kFloat64:
      case kComplex128: return ncclFloat64;
      case kFloat8_e4m3fn: return ncclFloat8e4m3;
      case kFloat8_e5m2: return ncclFloat8e5m2;
      default: RUSH_THROW(NotImplementedError, who, ": NCCL does not reduce ", dtype);
    }
  }
  // A mean over one process is a copy, which NCCL makes of a sum without a kernel of its own.
  static ncclRedOp_t op_of(ReduceOp op, bool is_bool, int processes) {
    switch (op) {
      case ReduceOp::SUM: return is_bool ? ncclMax : ncclSum;
      case ReduceOp::AVG: return processes == 1 ? ncclSum : ncclAvg;
      case ReduceOp::PRODUCT: return is_bool ? ncclMin : ncclProd;
      case ReduceOp::MIN: return ncclMin;
      case ReduceOp::MAX: return ncclMax;
    }
    RUSH_THROW(ValueError, "unknown reduction");
  }
};

class NcclGroup final : public ProcessGroup {
 public:
  NcclGroup(std::string name, std::vector<int> ranks, int rank, ncclComm_t comm, Device device, Group control)
      : ProcessGroup(std::move(name), std::move(ranks), rank),
        comm_(comm),
        device_(device),
        stream_(getStreamFromPool(/*is_high_priority=*/true, device.index)),
        control_(std::move(control)) {}

  const char* backend() const override { return "nccl"; }
  Device device() const override { return device_; }

  WorkPtr all_reduce(const Tensor& tensor, ReduceOp op) override {
    return run("all_reduce", {tensor}, [&](cudaStream_t stream) {
      const Reduction r("all_reduce", tensor, op, size());
      RUSH_NCCL_CALL(ncclAllReduce, data_of(tensor), data_of(tensor), r.count, r.type, r.op, comm_, stream);
    });
  }
  WorkPtr reduce(const Tensor& tensor, ReduceOp op, int root) override {
    return run("reduce", {tensor}, [&](cudaStream_t stream) {
      const Reduction r("reduce", tensor, op, size());
      RUSH_NCCL_CALL(ncclReduce, data_of(tensor), data_of(tensor), r.count, r.type, r.op, root, comm_, stream);
    });
  }
  WorkPtr broadcast(const Tensor& tensor, int root) override {
    return run("broadcast", {tensor}, [&](cudaStream_t stream) {
      RUSH_NCCL_CALL(ncclBroadcast, data_of(tensor), data_of(tensor), bytes_of(tensor), ncclUint8, root, comm_, stream);
    });
  }
  WorkPtr all_gather(const Tensor& output, const Tensor& input) override {
    return run("all_gather", {output, input}, [&](cudaStream_t stream) {
      RUSH_NCCL_CALL(ncclAllGather, data_of(input), data_of(output), bytes_of(input), ncclUint8, comm_, stream);
    });
  }
  WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) override {
    return run("reduce_scatter", {output, input}, [&](cudaStream_t stream) {
      const Reduction r("reduce_scatter", output, op, size());
      RUSH_NCCL_CALL(ncclReduceScatter, data_of(input), data_of(output), r.count, r.type, r.op, comm_, stream);
    });
  }
  WorkPtr all_to_all(const Tensor& output, const Tensor& input, IntArrayRef output_splits,
                     IntArrayRef input_splits) override {
    return run("all_to_all", {output, input}, [&](cudaStream_t stream) {
      const int64_t element = element_size(input.scalar_type());
      std::byte *to = data_of(output), *from = data_of(input);
      RUSH_NCCL_CALL(ncclGroupStart);
      for (size_t i = 0; i < output_splits.size(); ++i) {
        const int64_t arriving = output_splits[i] * element, leaving = input_splits[i] * element;
        receive(to, arriving, static_cast<int>(i), stream);
        send(from, leaving, static_cast<int>(i), stream);
        to += arriving;
        from += leaving;
      }
      RUSH_NCCL_CALL(ncclGroupEnd);
    });
  }
  // NCCL tells messages apart by their order alone, not by tags.
  WorkPtr send(const Tensor& tensor, int destination, int /*tag*/) override {
    return run("send", {tensor},
               [&](cudaStream_t stream) { send(data_of(tensor), tensor.nbytes(), destination, stream); });
  }
  WorkPtr recv(const Tensor& tensor, int source, int /*tag*/) override {
    return run("recv", {tensor},
               [&](cudaStream_t stream) { receive(data_of(tensor), tensor.nbytes(), source, stream); });
  }
  WorkPtr barrier() override {
    const WorkPtr work = all_reduce(zeros({1}, TensorOptions(kInt32).device(device_)), ReduceOp::SUM);
    stream_.synchronize();
    return work;
  }

  Group split(std::string name, std::vector<int> ranks) override {
    check_alive("new_group");
    const int place = place_in(ranks);
    const DeviceGuard guard(device_);
    ncclComm_t part = nullptr;
    RUSH_NCCL_CALL(ncclCommSplit, comm_, place < 0 ? NCCL_SPLIT_NOCOLOR : 0, place, &part, nullptr);
    if (place < 0) return nullptr;
    return std::make_shared<NcclGroup>(std::move(name), std::move(ranks), place, part, device_, nullptr);
  }

  Group for_messages() override {
    check_alive("for_messages");
    if (!messages_) {
      const DeviceGuard guard(device_);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.maxCTAs = kWaitingProcessors;
      ncclComm_t comm = nullptr;
      RUSH_NCCL_CALL(ncclCommSplit, comm_, 0, rank(), &comm, &config);
      messages_ = std::make_shared<NcclGroup>(name() + " (messages)", ranks(), rank(), comm, device_, nullptr);
    }
    return messages_;
  }

  void shut_down() override {
    if (messages_) messages_->shut_down();
    const DeviceGuard guard(device_);
    stream_.synchronize();
    RUSH_NCCL_CALL(ncclCommDestroy, std::exchange(comm_, nullptr));
    if (control_) control_->shut_down();
  }

 private:
  template <class Collective>
  WorkPtr run(const char* who, std::initializer_list<Tensor> tensors, const Collective& collective) {
    check_alive(who);
    const DeviceGuard guard(device_);
    const Stream own = stream_.unwrap();
    wait_stream(own, current_stream(device_));
    collective(stream_.stream());
    for (const Tensor& tensor : tensors) {
      if (tensor.defined()) tensor.record_stream(own);
    }
    const auto work = std::make_shared<Work>();
    work->finish_on(own);
    return work;
  }
  void send(const std::byte* from, int64_t bytes, int to, cudaStream_t stream) const {
    if (bytes > 0) RUSH_NCCL_CALL(ncclSend, from, static_cast<size_t>(bytes), ncclUint8, to, comm_, stream);
  }
  void receive(std::byte* to, int64_t bytes, int from, cudaStream_t stream) const {
    if (bytes > 0) RUSH_NCCL_CALL(ncclRecv, to, static_cast<size_t>(bytes), ncclUint8, from, comm_, stream);
  }
  // Also of what went wrong since the last collective, such as a process that has gone.
  void check_alive(const char* who) const {
    RUSH_CHECK_DISTRIBUTED(comm_, who, ": destroy_process_group has ended the group '", name(), "'");
    ncclResult_t status = ncclSuccess;
    RUSH_NCCL_CALL(ncclCommGetAsyncError, comm_, &status);
    check_nccl(status, who);
  }

  ncclComm_t comm_;
  const Device device_;
  const CUDAStream stream_;
  const Group control_;  // of the same processes, for what goes before and after NCCL; or null
  Group messages_;       // see Note [Messages that wait]; null before it is asked for
};

// The key by which the processes find each other, which rank 0 makes. MPI brings it to the others; without MPI, NCCL
// finds rank 0 at an address: NCCL_COMM_ID, or torchrun's.
ncclUniqueId unique_id(const Group& control, const Environment& environment, int rank, int size) {
  ncclUniqueId id;
  if (control) {
    if (rank == 0) RUSH_NCCL_CALL(ncclGetUniqueId, &id);
    const std::string own(id.internal, sizeof(id.internal));
    distributed::all_gather_texts(own, control)[0].copy(id.internal, sizeof(id.internal));
    return id;
  }
  if (size > 1 && !std::getenv("NCCL_COMM_ID")) {
    RUSH_CHECK_DISTRIBUTED(environment.master_addr && environment.master_port,
                           "init_process_group: nothing says where the process of rank 0 is: start the program by "
                           "`./rush launch -n 2 PROGRAM` or torchrun, or set NCCL_COMM_ID=ADDRESS:PORT");
    // The port itself is that of torchrun's own store.
    const std::string address = str(*environment.master_addr, ':', *environment.master_port + 1);
    setenv("NCCL_COMM_ID", address.c_str(), /*overwrite=*/1);
  }
  RUSH_NCCL_CALL(ncclGetUniqueId, &id);
  return id;
}

Group make_nccl_group(const InitOptions& options, const Group& control) {
  RUSH_CHECK_DISTRIBUTED(is_available(), "init_process_group: there is no GPU for NCCL");
  const Environment environment = distributed::read_environment();
  const auto [rank, size] =
      control ? std::pair(control->rank(), control->size()) : environment.place(options.rank, options.world_size);
  if (environment.local_rank) set_device(*environment.local_rank % device_count());
  const Device device(kCUDA, static_cast<int>(current_device()));
  const ncclUniqueId id = unique_id(control, environment, rank, size);
  ncclComm_t comm = nullptr;
  RUSH_NCCL_CALL(ncclCommInitRank, &comm, size, id, rank);
  return std::make_shared<NcclGroup>("default", distributed::detail::ranks_of_world(size), rank, comm, device, control);
}

}  // namespace

void register_nccl() { distributed::register_backend("nccl", make_nccl_group); }

}  // namespace rush::cuda
