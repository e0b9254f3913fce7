#include "core/distributed/checkpoint.h"

#include <exception>
#include <filesystem>
#include <optional>

#include "core/distributed/checkpoint_plan.h"
#include "core/distributed/collectives.h"
#include "core/io/atomic_file.h"
#include "core/io/output_file.h"
#include "core/ops/basic.h"
#include "core/threads/thread.h"

namespace rush::distributed {

namespace fs = std::filesystem;

struct PendingSave::Work {
  Group group;
  std::string folder;
  detail::CheckpointPlan plan;
  std::vector<TensorPart> parts;  // those of plan.writes, in their order
  std::exception_ptr failure;     // of the thread, or before it began
  std::optional<rush::detail::Thread> thread;
};

namespace {

// Begins what a process says that has failed; then comes its message.
enum class Failure : char { Value = 1, Io, Other };

std::string failure_text(Failure kind, const std::string& message) { return static_cast<char>(kind) + message; }

// Has each process do its part, and tell the others a text. Where one has thrown, all throw what the first of them has.
template <class Body>
std::vector<std::string> agree(const Group& group, const Body& body) {
  std::string own;
  try {
    own = body();
  } catch (const ValueError& error) {
    own = failure_text(Failure::Value, error.msg());
  } catch (const IOError& error) {
    own = failure_text(Failure::Io, error.msg());
  } catch (const std::exception& error) {
    own = failure_text(Failure::Other, error.what());
  }
  std::vector<std::string> said = all_gather_texts(own, group);
  for (size_t i = 0; i < said.size(); ++i) {
    if (said[i].empty() || said[i][0] > static_cast<char>(Failure::Other)) continue;
    const std::string message = str("save_parts: rank ", group->ranks()[i], ": ", said[i].substr(1));
    switch (static_cast<Failure>(said[i][0])) {
      case Failure::Value: RUSH_THROW(ValueError, message);
      case Failure::Io: RUSH_THROW(IOError, message);
      case Failure::Other: RUSH_THROW(DistributedError, message);
    }
  }
  return said;
}

// Removes the files of saves that are not the checkpoint, and returns the number of the last one that is left. Throws
// IOError.
uint64_t remove_other_saves(const std::string& folder) {
  const std::optional<detail::CheckpointIndex> index = detail::read_index(folder);
  uint64_t last = 0;
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const std::optional<uint64_t> number = detail::save_number(name);
    if (!number) continue;
    const bool is_named =
        index && std::ranges::any_of(index->files, [&](const auto& file) { return file.second == name; });
    if (is_named) {
      last = std::max(last, *number);
    } else {
      others.push_back(entry->path());
    }
  }
  for (size_t i = 0; i < others.size() && !error; ++i) fs::remove(others[i], error);
  RUSH_CHECK_IO(!error, folder, ": cannot remove the files of an earlier save: ", error.message());
  return last;
}

// Makes the folder, removes what killed processes left there, and returns the save's number.
uint64_t prepare(const std::string& folder) {
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  RUSH_CHECK_IO(!error, folder, ": cannot make this folder: ", error.message());
  if (is_new) io::flush_folder(folder, fs::absolute(folder).parent_path());
  const std::string single = folder + "/" + detail::kSingleFile;
  RUSH_CHECK_IO(!fs::exists(single, error), single, ": other programs would load this file, not what is saved beside ",
                "it; choose another folder");
  io::remove_leftovers(folder);
  return remove_other_saves(folder) + 1;
}

void write_part(io::OutputFile& file, uint64_t begin, const TensorPart& part) {
  const Tensor values = part.local.detach().cpu().contiguous();
  const char* const bytes = static_cast<const char*>(values.data_ptr());
  for (const detail::ByteRange& range : detail::ranges_of(part)) {
    file.write(begin + range.in_tensor, bytes + range.in_part, static_cast<size_t>(range.size));
  }
}

std::string path_of(const PendingSave::Work& work, size_t file) {
  return work.folder + "/" + work.plan.files[file].name;
}

// With what comes before the tensors: by the first process. The others find the files, or do not share its folder.
void make_files(const PendingSave::Work& work) {
  for (size_t f = 0; f < work.plan.files.size(); ++f) {
    io::OutputFile file(path_of(work, f), io::OutputFile::Begin::Make);
    const std::string& start = work.plan.files[f].start;
    file.write(0, start.data(), start.size());
    file.finish();
  }
}

// What this process has to write. Each file's writes are neighbours in the plan.
void write(const PendingSave::Work& work) {
  const std::vector<detail::CheckpointPlan::Write>& writes = work.plan.writes;
  for (size_t next = 0; next < writes.size();) {
    const size_t f = writes[next].file;
    io::OutputFile file(path_of(work, f), io::OutputFile::Begin::Open);
    for (; next < writes.size() && writes[next].file == f; ++next) {
      write_part(file, writes[next].begin, work.parts[next]);
    }
    file.finish();
  }
}

// All files are on disk; the rename of the index makes them the checkpoint.
void commit(const PendingSave::Work& work) {
  const std::string index = work.folder + "/" + detail::kIndexFile;
  io::flush_folder(index, work.folder);
  io::write_file_atomically(index, work.plan.index);
}

// What cannot be removed now is an error of the next save.
void try_to_remove_other_saves(const std::string& folder) {
  try {
    remove_other_saves(folder);
  } catch (const IOError&) {
  }
}

// What `body` throws is told to the other processes by wait().
template <class Body>
void keep_failure(PendingSave::Work& work, const Body& body) {
  try {
    body();
  } catch (...) {
    work.failure = std::current_exception();
  }
}

// Calls `body`, and where that fails removes what was written.
template <class Body>
void or_clean_up(const PendingSave::Work& work, const Body& body) {
  try {
    body();
  } catch (const Error&) {
    if (work.group->rank() == 0) try_to_remove_other_saves(work.folder);
    throw;
  }
}

std::weak_ptr<PendingSave>& pending_save() {
  static std::weak_ptr<PendingSave> pending;
  return pending;
}

// What comes before the writing of the parts, with all processes.
std::unique_ptr<PendingSave::Work> begin_save(const std::string& folder, const std::vector<TensorPart>& parts,
                                              const SaveOptions& options) {
  detail::check_member("save_parts", options.group);
  if (const std::shared_ptr<PendingSave> pending = pending_save().lock()) pending->wait();
  const Group& group = options.group;
  const bool is_first = group->rank() == 0;
  const std::vector<std::string> said = agree(group, [&] {
    return detail::describe(parts, options.metadata, options.max_file_bytes, is_first ? prepare(folder) : 0);
  });
  auto work = std::make_unique<PendingSave::Work>();
  work->group = group;
  work->folder = folder;
  work->plan = detail::make_plan(said, group->ranks(), static_cast<size_t>(group->rank()));
  for (const auto& write : work->plan.writes) work->parts.push_back(parts[write.part]);
  or_clean_up(*work, [&] {
    agree(group, [&] {
      if (is_first) make_files(*work);
      return "";
    });
  });
  return work;
}

// Into memory that the caller does not write to.
void copy_to_host(TensorPart& part) {
  const Tensor copy = rush::detail::empty_contiguous(part.local.sizes(), part.local.scalar_type(), kCPU);
  part.local = copy.copy_(part.local.detach());
}

}  // namespace

PendingSave::PendingSave(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PendingSave::~PendingSave() = default;

void PendingSave::wait() {
  if (!work_) return;
  const std::unique_ptr<Work> work = std::move(work_);
  const bool is_first = work->group->rank() == 0;
  or_clean_up(*work, [&] {
    agree(work->group, [&] {
      work->thread.reset();  // waits for it
      if (work->failure) std::rethrow_exception(work->failure);
      return "";
    });
    agree(work->group, [&] {
      if (is_first) commit(*work);
      return "";
    });
  });
  if (is_first) try_to_remove_other_saves(work->folder);
}

void save_parts(const std::string& folder, const std::vector<TensorPart>& parts, const SaveOptions& options) {
  std::unique_ptr<PendingSave::Work> work = begin_save(folder, parts, options);
  keep_failure(*work, [&] { write(*work); });
  PendingSave(std::move(work)).wait();
}

std::shared_ptr<PendingSave> save_parts_async(const std::string& folder, const std::vector<TensorPart>& parts,
                                              const SaveOptions& options) {
  std::unique_ptr<PendingSave::Work> work = begin_save(folder, parts, options);
  keep_failure(*work, [writing = work.get()] {
    for (TensorPart& part : writing->parts) copy_to_host(part);
    writing->thread.emplace([writing] { keep_failure(*writing, [&] { write(*writing); }); });
  });
  const auto pending = std::make_shared<PendingSave>(std::move(work));
  pending_save() = pending;
  return pending;
}

}  // namespace rush::distributed
