// The backend "mpi": process groups that are communicators of MPI.
#include <algorithm>

#include "backends/cpu/comm/mpi_thread.h"
#include "backends/cpu/comm/rank_order.h"
#include "core/distributed/environment.h"
#include "core/distributed/init.h"
#include "core/ops/factory/factories.h"

namespace rush::cpu {

namespace {

using distributed::Environment;
using distributed::Group;
using distributed::InitOptions;
using distributed::ProcessGroup;
using distributed::ReduceOp;
using distributed::WorkPtr;

constexpr int64_t kReducedBytes = 1 << 18;  // of a process, at a time
constexpr int64_t kFewBytes = 512;          // which take no longer on their way to all than to one
constexpr int kSplitTag = 32767;            // of all_to_all; the highest that every MPI has

std::byte* data_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

// Memory for what arrives, or leaves, in another form than the tensor's.
Tensor scratch(int64_t bytes) { return empty({bytes}, kUInt8); }

// Bytes of each of several blocks that lie one behind the other: element i of this datatype is those of block i.
class BlockBytes {
 public:
  BlockBytes(int64_t bytes, int64_t block_bytes) {
    MPI_Datatype plain;
    RUSH_MPI_CALL(MPI_Type_contiguous, static_cast<int>(bytes), MPI_BYTE, &plain);
    RUSH_MPI_CALL(MPI_Type_create_resized, plain, 0, block_bytes, &type_);
    RUSH_MPI_CALL(MPI_Type_commit, &type_);
    RUSH_MPI_CALL(MPI_Type_free, &plain);
  }
  ~BlockBytes() { MPI_Type_free(&type_); }
  BlockBytes(const BlockBytes&) = delete;
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_;
};

// What all groups share: MPI itself, and the thread that calls it.
struct Mpi {
  Mpi(const InitOptions& init, bool ends_it)
      : options(init), ends(ends_it), thread(std::make_unique<MpiThread>(*init.timeout)) {}
  const InitOptions options;
  const bool ends;  // else the program has started MPI itself, and ends it
  std::unique_ptr<MpiThread> thread;
};

class MpiGroup final : public ProcessGroup {
 public:
  MpiGroup(std::string name, std::vector<int> ranks, int rank, MPI_Comm comm, std::shared_ptr<Mpi> mpi)
      : ProcessGroup(std::move(name), std::move(ranks), rank), comm_(comm), mpi_(std::move(mpi)) {}

  const char* backend() const override { return "mpi"; }

  WorkPtr all_reduce(const Tensor& tensor, ReduceOp op) override {
    return run("all_reduce", [=, this] {
      if (size() == 1) return;
      if (tensor.nbytes() <= kFewBytes) return reduce_few(tensor, op);
      const Blocks blocks(tensor, size());
      const Tensor whole = blocks.padded(tensor);
      // Nobody else reads this rank's own block, which the sums overwrite.
      reduce_own_block(whole, blocks.bytes, data_of(whole) + rank() * blocks.bytes, tensor.scalar_type(), op);
      all_gather_bytes(MPI_IN_PLACE, data_of(whole), blocks.bytes);
      if (!blocks.fits) std::copy_n(data_of(whole), tensor.nbytes(), data_of(tensor));
    });
  }
  WorkPtr reduce(const Tensor& tensor, ReduceOp op, int root) override {
    return run("reduce", [=, this] {
      if (size() == 1) return;
      const Blocks blocks(tensor, size());
      const Tensor own = scratch(blocks.bytes), whole = scratch(rank() == root ? blocks.bytes * size() : 0);
      reduce_own_block(blocks.padded(tensor), blocks.bytes, data_of(own), tensor.scalar_type(), op);
      in_segments(blocks.bytes, [&](int64_t at, int count, MPI_Datatype type, MPI_Request* request) {
        RUSH_MPI_CALL(MPI_Igather, data_of(own) + at, count, type, data_of(whole) + at, count, type, root, comm_,
                      request);
      });
      if (rank() == root) std::copy_n(data_of(whole), tensor.nbytes(), data_of(tensor));
    });
  }
  WorkPtr broadcast(const Tensor& tensor, int root) override {
    return run("broadcast", [=, this] {
      in_segments(tensor.nbytes(), [&](int64_t at, int count, MPI_Datatype type, MPI_Request* request) {
        RUSH_MPI_CALL(MPI_Ibcast, data_of(tensor) + at, count, type, root, comm_, request);
      });
    });
  }
  WorkPtr all_gather(const Tensor& output, const Tensor& input) override {
    return run("all_gather", [=, this] { all_gather_bytes(data_of(input), data_of(output), input.nbytes()); });
  }
  WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) override {
    return run("reduce_scatter",
               [=, this] { reduce_own_block(input, output.nbytes(), data_of(output), output.scalar_type(), op); });
  }
  WorkPtr all_to_all(const Tensor& output, const Tensor& input, IntArrayRef output_splits,
                     IntArrayRef input_splits) override {
    std::vector<int64_t> arriving(output_splits.begin(), output_splits.end());
    std::vector<int64_t> leaving(input_splits.begin(), input_splits.end());
    return begin("all_to_all", [=, this] {
      std::vector<Message> messages;
      const int64_t bytes = element_size(input.scalar_type());
      int64_t to = 0, from = 0;
      for (int other = 0; other < size(); ++other) {
        const auto i = static_cast<size_t>(other);
        exchange(Way::Receive, data_of(output) + to, arriving[i] * bytes, other, kSplitTag, messages);
        exchange(Way::Send, data_of(input) + from, leaving[i] * bytes, other, kSplitTag, messages);
        to += arriving[i] * bytes;
        from += leaving[i] * bytes;
      }
      return messages;
    });
  }
  WorkPtr send(const Tensor& tensor, int destination, int tag) override {
    return begin_message(Way::Send, tensor, destination, tag);
  }
  WorkPtr recv(const Tensor& tensor, int source, int tag) override {
    return begin_message(Way::Receive, tensor, source, tag);
  }
  WorkPtr barrier() override {
    return run("barrier", [this] {
      MPI_Request request;
      RUSH_MPI_CALL(MPI_Ibarrier, comm_, &request);
      mpi_->thread->wait(request);
    });
  }

  Group split(std::string name, std::vector<int> ranks) override {
    const int place = place_in(ranks);
    MPI_Comm part = MPI_COMM_NULL;
    run("new_group", [&] {
      RUSH_MPI_CALL(MPI_Comm_split, comm_, place < 0 ? MPI_UNDEFINED : 0, place, &part);
    })->wait();
    if (place < 0) return nullptr;
    return std::make_shared<MpiGroup>(std::move(name), std::move(ranks), place, part, mpi_);
  }

  void shut_down() override {
    const bool is_part = comm_ != MPI_COMM_WORLD, has_failed = mpi_->thread->has_failed();
    if (is_part && !has_failed) run("destroy_process_group", [this] { RUSH_MPI_CALL(MPI_Comm_free, &comm_); })->wait();
    has_ended_ = true;
    if (is_part || has_failed) return;
    mpi_->thread.reset();
    if (mpi_->ends) RUSH_MPI_CALL(MPI_Finalize);
  }

 private:
  enum class Way { Send, Receive };
  // A tensor as `count` blocks of equally many elements, of which the last may reach beyond its end.
  struct Blocks {
    Blocks(const Tensor& tensor, int count)
        : bytes((tensor.numel() + count - 1) / count * element_size(tensor.scalar_type())),
          fits(bytes * count == tensor.nbytes()),
          count(count) {}
    // The tensor, with zeros behind it where it does not fit.
    Tensor padded(const Tensor& tensor) const {
      if (fits) return tensor;
      Tensor whole = scratch(bytes * count);
      std::copy_n(data_of(tensor), tensor.nbytes(), data_of(whole));
      std::fill_n(data_of(whole) + tensor.nbytes(), bytes * count - tensor.nbytes(), std::byte{0});
      return whole;
    }
    const int64_t bytes;  // of a block
    const bool fits;
    const int count;
  };

  // Has the thread carry the collective out, which is done when `fn` returns.
  template <class Collective>
  WorkPtr run(const char* collective, Collective fn) {
    return begin(collective, [fn = std::move(fn)] {
      fn();
      return std::vector<Message>();
    });
  }
  // The same, which is done when the messages that `fn` returns have arrived.
  template <class Messages>
  WorkPtr begin(const char* collective, Messages fn) {
    RUSH_CHECK_DISTRIBUTED(!has_ended_ && mpi_->thread, collective, ": destroy_process_group has ended the group '",
                           name(), "'");
    return mpi_->thread->begin(str(collective, " of rank ", rank(), " of ", size(), " in the group '", name(), "'"),
                               std::move(fn));
  }

  // Calls begin(at, count, type, &request) for all bytes of a block, few enough at a time, and waits for each: `count`
  // elements of `type` are the bytes from `at` on of one block.
  template <class Begin>
  void in_segments(int64_t block_bytes, const Begin& begin) const {
    const int64_t most = mpi_->options.message_bytes;
    for (int64_t at = 0; at < block_bytes; at += most) {
      MPI_Request request;
      if (block_bytes <= most) {
        begin(at, static_cast<int>(block_bytes), MPI_BYTE, &request);
      } else {
        const BlockBytes segment(std::min(most, block_bytes - at), block_bytes);
        begin(at, 1, segment.type(), &request);
      }
      mpi_->thread->wait(request);
    }
  }
  // With MPI_IN_PLACE for `from`, this rank's block is where it belongs.
  void all_gather_bytes(const void* from, std::byte* to, int64_t block_bytes) const {
    in_segments(block_bytes, [&](int64_t at, int count, MPI_Datatype type, MPI_Request* request) {
      const void* sent = from == MPI_IN_PLACE ? from : static_cast<const std::byte*>(from) + at;
      RUSH_MPI_CALL(MPI_Iallgather, sent, count, type, to + at, count, type, comm_, request);
    });
  }
  // Writes to `own` this rank's block of the reduction, so much at a time that what arrives stays in the caches: Note
  // [Sums in the order of ranks].
  void reduce_own_block(const Tensor& blocks, int64_t block_bytes, std::byte* own, ScalarType dtype,
                        ReduceOp op) const {
    const int64_t element = element_size(dtype), most = std::min(mpi_->options.message_bytes, kReducedBytes);
    const int64_t step = std::max(most / element, int64_t{1}) * element;
    const Tensor arriving = scratch(std::min(step, block_bytes) * size());
    for (int64_t at = 0; at < block_bytes; at += step) {
      const int64_t length = std::min(step, block_bytes - at);
      const BlockBytes segment(length, block_bytes);
      MPI_Request request;
      RUSH_MPI_CALL(MPI_Ialltoall, data_of(blocks) + at, 1, segment.type(), data_of(arriving), static_cast<int>(length),
                    MPI_BYTE, comm_, &request);
      mpi_->thread->wait(request);
      reduce_in_rank_order(own + at, data_of(arriving), length / element, size(), dtype, op);
    }
  }
  // Everything goes to everyone, who reduces it: one exchange in place of two.
  void reduce_few(const Tensor& tensor, ReduceOp op) const {
    const Tensor all = scratch(tensor.nbytes() * size());
    all_gather_bytes(data_of(tensor), data_of(all), tensor.nbytes());
    reduce_in_rank_order(data_of(tensor), data_of(all), tensor.numel(), size(), tensor.scalar_type(), op);
  }

  // Begins to send bytes to another member, or to receive them from it.
  void exchange(Way way, std::byte* bytes, int64_t count, int other, int tag, std::vector<Message>& messages) const {
    for (int64_t at = 0; at < count; at += mpi_->options.message_bytes) {
      const int length = static_cast<int>(std::min(mpi_->options.message_bytes, count - at));
      Message& message = messages.emplace_back(MPI_REQUEST_NULL, way == Way::Receive ? length : -1);
      if (way == Way::Receive) {
        RUSH_MPI_CALL(MPI_Irecv, bytes + at, length, MPI_BYTE, other, tag, comm_, &message.request);
      } else {
        RUSH_MPI_CALL(MPI_Isend, bytes + at, length, MPI_BYTE, other, tag, comm_, &message.request);
      }
    }
  }
  WorkPtr begin_message(Way way, const Tensor& tensor, int other, int tag) {
    const char* who = way == Way::Receive ? "recv" : "send";
    RUSH_CHECK_VALUE(tag >= 0 && tag < kSplitTag, who, ": expected a tag from 0 to ", kSplitTag - 1, ", got ", tag);
    return begin(who, [=, this] {
      std::vector<Message> messages;
      exchange(way, data_of(tensor), tensor.nbytes(), other, tag, messages);
      return messages;
    });
  }

  MPI_Comm comm_;
  const std::shared_ptr<Mpi> mpi_;
  bool has_ended_ = false;
};

void check_launcher(const Environment& environment) {
  RUSH_CHECK_DISTRIBUTED(environment.started_by_mpi, "init_process_group: MPI has not started this process",
                         environment.launcher.empty() ? "" : str(" (", environment.launcher, " has)"),
                         ": start the program by `./rush launch -n 2 PROGRAM`, or by `mpirun -n 2 PROGRAM`");
}

void check_agreement(const char* what, std::optional<int> said, const std::string& launcher, int by_mpi) {
  RUSH_CHECK_DISTRIBUTED(!said || *said == by_mpi, "init_process_group: the ", what, " is ", *said,
                         " by the environment variables of ", launcher, ", and ", by_mpi, " by MPI");
}

// Unless the program has done so; whether it was done here.
bool start_mpi() {
  int flag = 0, level = MPI_THREAD_SINGLE;
  RUSH_MPI_CALL(MPI_Finalized, &flag);
  RUSH_CHECK_DISTRIBUTED(!flag, "init_process_group: MPI has ended in this process, and cannot be started again");
  RUSH_MPI_CALL(MPI_Initialized, &flag);
  if (flag) {
    RUSH_MPI_CALL(MPI_Query_thread, &level);
  } else {
    // Open MPI's list of the signals for which it prints a stack of its own, without SIGABRT: the uncaught
    // exception has said where it comes from.
    setenv("OMPI_MCA_opal_signal", "7,8,11", /*overwrite=*/0);
    RUSH_MPI_CALL(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  }
  RUSH_CHECK_DISTRIBUTED(level >= MPI_THREAD_SERIALIZED,
                         "init_process_group: this MPI cannot be called by a thread of its own");
  return !flag;
}

}  // namespace

}  // namespace rush::cpu

namespace rush::distributed {

bool detail::has_mpi() { return true; }

Group detail::make_mpi_group(const InitOptions& options) {
  const Environment environment = read_environment();
  cpu::check_launcher(environment);
  const bool ends = cpu::start_mpi();
  RUSH_MPI_CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, size = 0;
  RUSH_MPI_CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  RUSH_MPI_CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  cpu::check_agreement("rank", environment.rank, environment.launcher, rank);
  cpu::check_agreement("number of processes", environment.world_size, environment.launcher, size);
  return std::make_shared<cpu::MpiGroup>("default", ranks_of_world(size), rank, MPI_COMM_WORLD,
                                         std::make_shared<cpu::Mpi>(options, ends));
}

}  // namespace rush::distributed
