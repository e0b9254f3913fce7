// Reading of ZIP archives.
#include <zip.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "core/error/error.h"
#include "core/io/input_file.h"
#include "core/io/zip_archive.h"

// Note [Hostile archives]
// libzip is asked for its consistency checks: the directory lies within the file and agrees with the header before each
// entry, and no name comes twice. It compares an entry's size and checksum once all of it is unpacked. What it leaves
// open is checked here, because a small file must not make us allocate much, nor unpack the same bytes again and again:
//  - an entry's size must be one to which its compressed size can unpack, and the compressed sizes together must fit
//    into the file, all before anything is read;
//  - no two entries share bytes of the file. libzip does not say where an entry lies, but it reads through a
//    callback of ours, which notes the part of the file that each entry touched.
namespace rush::io {
namespace {

constexpr uint64_t kMaxRatio = 1032;  // deflate: 258 bytes from at best two bits

struct Range {
  uint64_t begin = std::numeric_limits<uint64_t>::max(), end = 0;
  void include(uint64_t from, uint64_t to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

// The file as libzip sees it.
struct SourceFile {
  explicit SourceFile(std::string path) : file(std::move(path)) { zip_error_init(&error); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  ~SourceFile() { zip_error_fini(&error); }

  int64_t read(void* out, uint64_t size) {
    const uint64_t count = std::min(size, file.size() - position);
    file.read(position, out, static_cast<size_t>(count));
    touched.include(position, position + count);
    position += count;
    return static_cast<int64_t>(count);
  }

  int64_t seek(void* arguments, uint64_t size) {
    const auto length = static_cast<int64_t>(file.size());
    const int64_t to = zip_source_seek_compute_offset(position, length, arguments, size, &error);
    if (to < 0) return -1;
    position = static_cast<uint64_t>(to);
    touched.include(position, position);
    return 0;
  }

  int64_t stat(void* out) const {
    auto* stat = static_cast<zip_stat_t*>(out);
    zip_stat_init(stat);
    stat->size = file.size();
    stat->valid = ZIP_STAT_SIZE;
    return sizeof(*stat);
  }

  int64_t answer(void* data, uint64_t size, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_OPEN: position = 0; return 0;
      case ZIP_SOURCE_READ: return read(data, size);
      case ZIP_SOURCE_SEEK: return seek(data, size);
      case ZIP_SOURCE_TELL: return static_cast<int64_t>(position);
      case ZIP_SOURCE_STAT: return stat(data);
      case ZIP_SOURCE_ERROR: return zip_error_to_data(&error, data, size);
      case ZIP_SOURCE_ACCEPT_EMPTY:  // no: a file of no bytes is no archive
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE: return 0;
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_SEEK,
                                              ZIP_SOURCE_TELL, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
                                              ZIP_SOURCE_ACCEPT_EMPTY, ZIP_SOURCE_CLOSE, ZIP_SOURCE_FREE, -1);
      default: zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
  }

  // No exception may pass through libzip: it waits here until libzip reports the failure.
  static zip_int64_t callback(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
    auto* source = static_cast<SourceFile*>(self);
    try {
      return source->answer(data, size, command);
    } catch (...) {
      source->failure = std::current_exception();
      zip_error_set(&source->error, ZIP_ER_READ, 0);
      return -1;
    }
  }

  InputFile file;
  uint64_t position = 0;
  Range touched;
  zip_error_t error;
  std::exception_ptr failure;
};

[[noreturn]] void fail(const SourceFile& source, const std::string& what, zip_error_t* error) {
  if (source.failure) std::rethrow_exception(source.failure);
  const int code = zip_error_code_zip(error);
  RUSH_CHECK_NOT_IMPLEMENTED(code != ZIP_ER_MULTIDISK, source.file.path(),
                             ": an archive of several files is not supported");
  RUSH_THROW(IOError, source.file.path(), ": ", what, ": ", zip_error_strerror(error));
}

}  // namespace

struct ZipReader::Archive {
  Archive(std::string path, const char* kind) : source(std::move(path)) {
    zip_source_t* bytes = zip_source_function_create(&SourceFile::callback, &source, &source.error);
    if (bytes) zip = zip_open_from_source(bytes, ZIP_CHECKCONS | ZIP_RDONLY, &source.error);
    if (zip) return;
    if (bytes) zip_source_free(bytes);
    fail(source, str("not ", kind, ", truncated or corrupt"), &source.error);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive() {
    if (zip) zip_discard(zip);
  }

  // Adds what the entry just read has touched.
  void check_overlap(const std::string& name) {
    for (const Range& other : taken) {
      RUSH_CHECK_IO(!source.touched.overlaps(other), source.file.path(), ": corrupt archive: entry '", name,
                    "' overlaps another");
    }
    taken.push_back(source.touched);
  }

  SourceFile source;
  zip_t* zip = nullptr;
  std::vector<Range> taken;
};

// An entry's bytes, unpacked.
class ZipReader::EntrySource final : public ByteSource {
 public:
  EntrySource(Archive& archive, const Entry& entry, size_t index)
      : archive_(archive), entry_(entry), left_(entry.size) {
    archive.source.touched = {};
    file_ = zip_fopen_index(archive.zip, index, 0);
    if (!file_) fail(archive.source, str("corrupt: entry '", entry.name, "'"), zip_get_error(archive.zip));
  }
  EntrySource(const EntrySource&) = delete;
  EntrySource& operator=(const EntrySource&) = delete;
  ~EntrySource() override { zip_fclose(file_); }

  uint64_t left() const override { return left_; }

  void read(void* out, size_t size) override {
    RUSH_CHECK_IO(size <= left_, path(), ": truncated: entry '", entry_.name, "' has only ", left_, " of the next ",
                  size, " bytes");
    if (size == 0) return;
    auto* next = static_cast<uint8_t*>(out);
    for (size_t done = 0; done < size;) {
      const size_t got = read_some(next + done, size - done);
      RUSH_CHECK_IO(got > 0, path(), ": corrupt: entry '", entry_.name, "' unpacks to less than its size");
      done += got;
    }
    left_ -= size;
    if (left_ == 0) finish();
  }

 private:
  const std::string& path() const { return archive_.source.file.path(); }

  size_t read_some(void* out, size_t size) {
    const zip_int64_t got = zip_fread(file_, out, size);
    if (got < 0) fail(archive_.source, str("corrupt: entry '", entry_.name, "'"), zip_file_get_error(file_));
    return static_cast<size_t>(got);
  }

  // Only beyond the last byte does libzip compare.
  void finish() {
    uint8_t extra;
    RUSH_CHECK_IO(read_some(&extra, 1) == 0, path(), ": corrupt: entry '", entry_.name,
                  "' unpacks to more than its size");
    archive_.check_overlap(entry_.name);
  }

  Archive& archive_;
  const Entry& entry_;
  uint64_t left_;  // bytes that the caller may still read
  zip_file_t* file_;
};

ZipReader::ZipReader(std::string path, const char* kind) : archive_(std::make_unique<Archive>(std::move(path), kind)) {
  const InputFile& file = archive_->source.file;
  uint64_t room = file.size();
  const zip_int64_t count = zip_get_num_entries(archive_->zip, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const int status = zip_stat_index(archive_->zip, static_cast<zip_uint64_t>(i), 0, &stat);
    if (status != 0) fail(archive_->source, str("corrupt archive: entry ", i), zip_get_error(archive_->zip));
    const std::string name = stat.name;
    RUSH_CHECK_NOT_IMPLEMENTED(stat.encryption_method == ZIP_EM_NONE, file.path(), ": entry '", name, "' is encrypted");
    const bool stored = stat.comp_method == ZIP_CM_STORE;
    RUSH_CHECK_NOT_IMPLEMENTED(stored || stat.comp_method == ZIP_CM_DEFLATE, file.path(), ": entry '", name,
                               "' is compressed by method ", stat.comp_method,
                               "; supported are 0 (stored) and 8 (deflate)");
    const bool possible = stored ? stat.size == stat.comp_size : stat.size / kMaxRatio <= stat.comp_size;
    RUSH_CHECK_IO(possible && stat.comp_size <= room, file.path(), ": corrupt archive: entry '", name, "' of ",
                  stat.comp_size, " bytes, ", stat.size, " unpacked, cannot be in a file of ", file.size());
    room -= stat.comp_size;
    entries_.push_back({name, stat.size});
  }
}

ZipReader::~ZipReader() = default;

uint64_t ZipReader::packed_size() const { return archive_->source.file.size(); }

uint64_t ZipReader::unpacked_size() const {
  uint64_t size = 0;  // at most kMaxRatio times the file's
  for (const Entry& entry : entries_) size += entry.size;
  return size;
}

std::unique_ptr<ByteSource> ZipReader::open(size_t index) {
  return std::make_unique<EntrySource>(*archive_, entries_[index], index);
}

}  // namespace rush::io
