#include "core/distributed/collectives.h"

#include <algorithm>

#include "core/debug/stack_trace.h"
#include "core/distributed/flight_recorder.h"
#include "core/memory/has_data.h"
#include "core/ops/basic.h"

namespace rush::distributed {

namespace {

constexpr const char* kSend = "send";  // which meet one other process alone
constexpr const char* kRecv = "recv";

// What each member of the group says.
std::vector<std::string> texts_of_all(ProcessGroup& group, const std::string& own) {
  const auto count = static_cast<int64_t>(group.size());
  const auto on = [](ScalarType dtype, Device device) { return TensorOptions(dtype).device(device); };
  const Tensor lengths = empty({count}, on(kInt64, group.device()));
  group.all_gather(lengths, full({1}, static_cast<int64_t>(own.size()), lengths.options()))->wait();
  const int64_t most = lengths.max().item<int64_t>();
  const Tensor padded = zeros({most}, on(kUInt8, kCPU)), all = empty({count, most}, on(kUInt8, group.device()));
  std::copy(own.begin(), own.end(), padded.data_ptr<uint8_t>());
  if (most > 0) group.all_gather(all, padded.to(group.device()))->wait();
  const Tensor bytes = all.cpu(), sizes = lengths.cpu();
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* text = bytes.data_ptr<uint8_t>() + i * most;
    texts.emplace_back(text, text + sizes.data_ptr<int64_t>()[i]);
  }
  return texts;
}

// What each member is about to call.
std::vector<std::string> calls_of_all(ProcessGroup& group, const CollectiveRecord& record) {
  try {
    return texts_of_all(group, str(record.number, ' ', record.what()));
  } catch (const DistributedError& error) {
    RUSH_THROW(DistributedError, record.what(), ", which is compared with the others' before it begins: ", error.msg());
  }
}

// Throws DistributedError, on every process, unless all are about to do the same: Note [Collectives that differ].
void check_agreement(ProcessGroup& group, const CollectiveRecord& record) {
  const std::vector<std::string> calls = calls_of_all(group, record);
  const auto is_other = [&](const std::string& call) { return call != calls[0]; };
  const auto other = static_cast<size_t>(std::ranges::find_if(calls, is_other) - calls.begin());
  if (other == calls.size()) return;
  const std::vector<std::string> callers = texts_of_all(group, record.caller);
  const auto text = [&](size_t i) {
    return str("number ", calls[i], callers[i].empty() ? "" : str(" [called from ", callers[i], "]"));
  };
  RUSH_THROW(DistributedError, "the collectives of the group '", group.name(), "' differ: rank 0 calls ", text(0),
             ", rank ", other, " calls ", text(other));
}

// One call: brings its tensors to where the group reads them, and results back to where they belong.
class Call {
 public:
  Call(const char* who, const Group& group, bool async_op) : who_(who), group_(group.get()), async_op_(async_op) {
    detail::check_member(who, group);
    device_ = group->device();
  }

  const char* who() const { return who_; }
  ProcessGroup& group() const { return *group_; }
  int member(int global_rank) const { return group_->rank_of(who_, global_rank); }

  // All tensors of the call have one dtype.
  void check(const Tensor& tensor) {
    RUSH_CHECK_TYPE(tensor.defined(), who_, ": a tensor is undefined");
    RUSH_CHECK_TYPE(tensor.layout() == kStrided, who_, ": expected a dense tensor, got one that is ", tensor.layout());
    RUSH_CHECK_TYPE(tensor.is_meta() || rush::detail::has_data(tensor), who_,
                    ": expected a tensor with memory of its own, got a DTensor; DTensor::to_local has a local tensor");
    RUSH_CHECK_TYPE(!dtype_ || *dtype_ == tensor.scalar_type(), who_, ": tensors are of ", *dtype_, " and ",
                    tensor.scalar_type());
    dtype_ = tensor.scalar_type();
    is_meta_ |= tensor.is_meta();
    if (group_->takes_any_device()) device_ = tensor.device();
  }
  void check(TensorList tensors) {
    for (const Tensor& tensor : tensors) check(tensor);
  }
  // A list with a tensor for each process, which have as many elements as `like`.
  void check_list(TensorList tensors, const Tensor& like) {
    RUSH_CHECK_VALUE(tensors.size() == static_cast<size_t>(group_->size()), who_, ": expected a tensor for each of ",
                     group_->size(), " processes, got ", tensors.size());
    check(tensors);
    for (const Tensor& tensor : tensors) {
      RUSH_CHECK_VALUE(tensor.sizes() == like.sizes(), who_, ": tensors are of shapes ", like.sizes(), " and ",
                       tensor.sizes());
    }
  }
  // One that the root alone has, the process of that rank among all.
  void check_list_of_root(TensorList tensors, const Tensor& like, int global_rank) {
    if (group_->rank() == record_.root) return check_list(tensors, like);
    RUSH_CHECK_VALUE(tensors.empty(), who_, ": a list of tensors is for process ", global_rank, " alone");
  }
  // A tensor with a block as large as `part` for each process.
  void check_blocks(const Tensor& whole, const Tensor& part) {
    check(whole);
    check(part);
    RUSH_CHECK_VALUE(whole.numel() == part.numel() * group_->size(), who_, ": a tensor of shape ", whole.sizes(),
                     " has no block of shape ", part.sizes(), " for each of ", group_->size(), " processes");
  }

  // What the group reads: the tensor itself, or a copy.
  Tensor read(const Tensor& tensor) const {
    const Tensor plain = tensor.detach();
    return (is_meta_ ? plain : plain.to(device_)).contiguous();
  }
  // What it writes, and reads before: the values go to `tensor` at the end.
  Tensor updated(const Tensor& tensor) {
    Tensor staged = read(tensor);
    write_back(tensor, staged);
    return staged;
  }
  // What it only writes: elements that go to the tensors at the end, one after the other.
  Tensor written(TensorList tensors) {
    if (tensors.size() == 1 && tensors[0].is_contiguous() && tensors[0].device() == device_) return updated(tensors[0]);
    int64_t count = 0;
    for (const Tensor& tensor : tensors) count += tensor.numel();
    Tensor staged = block(count);
    share_out(staged, tensors);
    return staged;
  }
  // The elements of several tensors, one after the other.
  Tensor joined(TensorList tensors) const {
    std::vector<Tensor> flat{block(0)};
    for (const Tensor& tensor : tensors) flat.push_back(read(tensor).flatten());
    return cat(flat, 0);
  }
  void share_out(const Tensor& staged, TensorList tensors) {
    int64_t start = 0;
    for (const Tensor& tensor : tensors) {
      write_back(tensor, staged.narrow(0, start, tensor.numel()).view(tensor.sizes()));
      start += tensor.numel();
    }
  }

  // What all processes must agree on, beside the name and the dtype.
  Call& reduces(ReduceOp op) {
    check_reduction(who_, op, *dtype_);
    record_.op = op;
    return *this;
  }
  Call& has_root(int member) {
    record_.root = member;
    return *this;
  }
  Call& of(int64_t elements) {
    record_.elements = elements;
    return *this;
  }

  // `begin` begins the collective; on meta there is nothing to do.
  template <class Begin>
  WorkPtr run(const Begin& begin) {
    const WorkPtr work = is_meta_ ? Work::completed() : recorded(begin);
    for (const auto& [target, source] : copies_) work->copy_when_done(target, source);
    if (!async_op_) work->wait();
    return work;
  }

 private:
  template <class Begin>
  WorkPtr recorded(const Begin& begin) {
    const bool is_message = who_ == kSend || who_ == kRecv;
    record_.name = who_;
    record_.group = group_->name();
    record_.dtype = dtype_;
    record_.number = is_message ? 0 : flight_recorder().next_number(record_.group);
    record_.begun = std::chrono::system_clock::now();
    if (detail::is_debug() && !is_message) {
      record_.caller = join_frames(StackTrace::capture().frames_outside_library());
      check_agreement(*group_, record_);
    }
    const WorkPtr work = begin();
    record_.work = work;
    flight_recorder().add(std::move(record_));
    return work;
  }
  Tensor block(int64_t count) const {
    return empty({count}, TensorOptions(*dtype_).device(is_meta_ ? Device(kMeta) : device_));
  }
  void write_back(const Tensor& tensor, const Tensor& staged) {
    if (staged.data_ptr() == tensor.data_ptr()) {
      tensor.bump_version();
    } else {
      copies_.emplace_back(tensor.detach(), staged);
    }
  }

  const char* const who_;
  ProcessGroup* const group_;
  const bool async_op_;
  bool is_meta_ = false;
  Device device_;  // where the group reads and writes
  std::optional<ScalarType> dtype_;
  CollectiveRecord record_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
  const DispatchStateGuard below_autograd_{KeySet(DispatchKey::Autograd)};
};

// In elements: of the rows of `tensor` that go to or come from each process.
std::vector<int64_t> split_sizes(const Call& call, const Tensor& tensor, IntArrayRef splits, const char* whose) {
  RUSH_CHECK_VALUE(tensor.dim() > 0, call.who(), ": the ", whose, " has no rows, since it has no dimension");
  const int64_t rows = tensor.size(0), count = call.group().size();
  std::vector<int64_t> sizes(splits.begin(), splits.end());
  if (splits.empty()) {
    RUSH_CHECK_VALUE(rows % count == 0, call.who(), ": the ", whose, " has ", rows,
                     " rows, which cannot be split among ", count, " processes; give splits");
    sizes.assign(static_cast<size_t>(count), rows / count);
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    RUSH_CHECK_VALUE(size >= 0, call.who(), ": a split of the ", whose, " is ", size);
    sum += size;
  }
  RUSH_CHECK_VALUE(static_cast<int64_t>(sizes.size()) == count && sum == rows, call.who(), ": ", sizes.size(),
                   " splits of together ", sum, " rows do not split the ", whose, ", which has ", rows, " rows, among ",
                   count, " processes");
  const int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  for (int64_t& size : sizes) size *= row;
  return sizes;
}

std::vector<int64_t> element_counts(TensorList tensors) {
  std::vector<int64_t> counts;
  for (const Tensor& tensor : tensors) counts.push_back(tensor.numel());
  return counts;
}

}  // namespace

WorkPtr all_reduce(const Tensor& tensor, ReduceOp op, const Group& group, bool async_op) {
  Call call("all_reduce", group, async_op);
  call.check(tensor);
  call.reduces(op).of(tensor.numel());
  const Tensor staged = call.updated(tensor);
  return call.run([&] { return group->all_reduce(staged, op); });
}

WorkPtr all_reduce_coalesced(TensorList tensors, ReduceOp op, const Group& group, bool async_op) {
  Call call("all_reduce_coalesced", group, async_op);
  call.check(tensors);
  if (tensors.empty()) return Work::completed();
  call.reduces(op);
  const Tensor staged = call.joined(tensors);
  call.share_out(staged, tensors);
  call.of(staged.numel());
  return call.run([&] { return group->all_reduce(staged, op); });
}

WorkPtr reduce(const Tensor& tensor, int dst, ReduceOp op, const Group& group, bool async_op) {
  Call call("reduce", group, async_op);
  call.check(tensor);
  const int root = call.member(dst);
  call.reduces(op).of(tensor.numel()).has_root(root);
  const Tensor staged = root == group->rank() ? call.updated(tensor) : call.read(tensor);
  return call.run([&] { return group->reduce(staged, op, root); });
}

WorkPtr broadcast(const Tensor& tensor, int src, const Group& group, bool async_op) {
  Call call("broadcast", group, async_op);
  call.check(tensor);
  const int root = call.member(src);
  call.of(tensor.numel()).has_root(root);
  const Tensor staged = root == group->rank() ? call.read(tensor) : call.written(tensor);
  return call.run([&] { return group->broadcast(staged, root); });
}

WorkPtr all_gather(TensorList outputs, const Tensor& input, const Group& group, bool async_op) {
  Call call("all_gather", group, async_op);
  call.check(input);
  call.check_list(outputs, input);
  call.of(input.numel());
  const Tensor staged = call.written(outputs), read = call.read(input);
  return call.run([&] { return group->all_gather(staged, read); });
}

WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, const Group& group, bool async_op) {
  Call call("all_gather_into_tensor", group, async_op);
  call.check_blocks(output, input);
  call.of(input.numel());
  const Tensor staged = call.written(output), read = call.read(input);
  return call.run([&] { return group->all_gather(staged, read); });
}

WorkPtr gather(const Tensor& input, TensorList outputs, int dst, const Group& group, bool async_op) {
  Call call("gather", group, async_op);
  call.check(input);
  const int root = call.member(dst);
  call.of(input.numel()).has_root(root);
  call.check_list_of_root(outputs, input, dst);
  const Tensor staged = call.written(outputs), read = call.read(input);
  const detail::RootSplits splits(*group, root, input.numel());
  return call.run([&] { return group->all_to_all(staged, read, splits.with_all, splits.with_root); });
}

WorkPtr scatter(const Tensor& output, TensorList inputs, int src, const Group& group, bool async_op) {
  Call call("scatter", group, async_op);
  call.check(output);
  const int root = call.member(src);
  call.of(output.numel()).has_root(root);
  call.check_list_of_root(inputs, output, src);
  const Tensor staged = call.written(output), read = call.joined(inputs);
  const detail::RootSplits splits(*group, root, output.numel());
  return call.run([&] { return group->all_to_all(staged, read, splits.with_root, splits.with_all); });
}

WorkPtr reduce_scatter(const Tensor& output, TensorList inputs, ReduceOp op, const Group& group, bool async_op) {
  Call call("reduce_scatter", group, async_op);
  call.check(output);
  call.check_list(inputs, output);
  call.reduces(op).of(output.numel());
  const Tensor staged = call.written(output), read = call.joined(inputs);
  return call.run([&] { return group->reduce_scatter(staged, read, op); });
}

WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op, const Group& group,
                              bool async_op) {
  Call call("reduce_scatter_tensor", group, async_op);
  call.check_blocks(input, output);
  call.reduces(op).of(output.numel());
  const Tensor staged = call.written(output), read = call.read(input);
  return call.run([&] { return group->reduce_scatter(staged, read, op); });
}

WorkPtr all_to_all(TensorList outputs, TensorList inputs, const Group& group, bool async_op) {
  Call call("all_to_all", group, async_op);
  const auto count = static_cast<size_t>(call.group().size());
  RUSH_CHECK_VALUE(outputs.size() == count && inputs.size() == count,
                   "all_to_all: expected an output and an input for each of ", count, " processes, got ",
                   outputs.size(), " and ", inputs.size());
  call.check(outputs);
  call.check(inputs);
  const Tensor staged = call.written(outputs), read = call.joined(inputs);
  return call.run([&] { return group->all_to_all(staged, read, element_counts(outputs), element_counts(inputs)); });
}

WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, IntArrayRef output_splits,
                          IntArrayRef input_splits, const Group& group, bool async_op) {
  Call call("all_to_all_single", group, async_op);
  call.check(output);
  call.check(input);
  const std::vector<int64_t> arriving = split_sizes(call, output, output_splits, "output");
  const std::vector<int64_t> leaving = split_sizes(call, input, input_splits, "input");
  const Tensor staged = call.written(output), read = call.read(input);
  return call.run([&] { return group->all_to_all(staged, read, arriving, leaving); });
}

WorkPtr isend(const Tensor& tensor, int dst, const Group& group, int tag) {
  Call call(kSend, group, /*async_op=*/true);
  call.check(tensor);
  const int member = call.member(dst);
  const Tensor read = call.read(tensor);
  return call.run([&] { return group->send(read, member, tag); });
}

WorkPtr irecv(const Tensor& tensor, int src, const Group& group, int tag) {
  Call call(kRecv, group, /*async_op=*/true);
  call.check(tensor);
  const int member = call.member(src);
  const Tensor staged = call.written(tensor);
  return call.run([&] { return group->recv(staged, member, tag); });
}

void send(const Tensor& tensor, int dst, const Group& group, int tag) { isend(tensor, dst, group, tag)->wait(); }
void recv(const Tensor& tensor, int src, const Group& group, int tag) { irecv(tensor, src, group, tag)->wait(); }

WorkPtr barrier(const Group& group, bool async_op) {
  Call call("barrier", group, async_op);
  return call.run([&] { return group->barrier(); });
}

std::vector<std::string> all_gather_texts(const std::string& own, const Group& group) {
  std::vector<std::string> texts;
  Call("all_gather_texts", group, /*async_op=*/false).run([&] {
    texts = texts_of_all(*group, own);
    return Work::completed();
  });
  return texts;
}

}  // namespace rush::distributed
