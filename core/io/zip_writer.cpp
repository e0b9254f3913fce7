// Writing of ZIP archives.
#include <zip.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/error/error.h"
#include "core/io/zip_archive.h"

namespace rush::io {
namespace {

constexpr uint16_t kMidnight = 0, kFirstDay = 0x21;  // 1980-01-01: equal contents make equal files, as NumPy has it
constexpr uint32_t kDeflateLevel = 6;                // zlib's default, which libzip does not take by itself
constexpr size_t kMaxName = 0xffff;
constexpr std::string_view kEmptyArchive("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);

}  // namespace

struct ZipWriter::Archive {
  // What libzip reads for an entry.
  struct Content {
    Archive* archive;
    std::unique_ptr<ByteSource> bytes;
  };

  explicit Archive(std::string name) : path(std::move(name)), file(path) {
    zip_error_init(&error);
    // The archive is always a new one; libzip's own way to files would rename without flushing them to disk.
    zip_source_t* target = zip_source_function_create(&callback<Archive>, this, &error);
    if (target) zip = zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (zip) return;
    if (target) zip_source_free(target);
    RUSH_THROW(IOError, path, ": cannot start an archive: ", zip_error_strerror(&error));
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive() {
    if (zip) zip_discard(zip);
    zip_error_fini(&error);
  }

  // No exception may pass through libzip: it waits here until libzip reports the failure.
  template <class Source>
  static zip_int64_t callback(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
    Archive& archive = archive_of(static_cast<Source*>(self));
    try {
      if (command == ZIP_SOURCE_ERROR) return zip_error_to_data(&archive.error, data, size);
      return answer(*static_cast<Source*>(self), data, size, command);
    } catch (...) {
      archive.failure = std::current_exception();
      zip_error_set(&archive.error, ZIP_ER_WRITE, 0);
      return -1;
    }
  }
  static Archive& archive_of(Archive* archive) { return *archive; }
  static Archive& archive_of(Content* content) { return *content->archive; }

  // The file is made visible by ZipWriter::commit, so libzip's begin and end of writing mean nothing.
  static int64_t answer(Archive& archive, void* data, uint64_t size, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_WRITE: archive.write(data, size); return static_cast<int64_t>(size);
      case ZIP_SOURCE_SEEK_WRITE: return archive.seek(data, size);
      case ZIP_SOURCE_TELL_WRITE: return static_cast<int64_t>(archive.position);
      case ZIP_SOURCE_STAT: return stat(data, 0);
      case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
      case ZIP_SOURCE_OPEN:
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE:
      case ZIP_SOURCE_BEGIN_WRITE:
      case ZIP_SOURCE_COMMIT_WRITE:
      case ZIP_SOURCE_ROLLBACK_WRITE: return 0;
      default: zip_error_set(&archive.error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
  }

  static int64_t answer(Content& content, void* data, uint64_t size, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_READ: {
        const auto count = static_cast<size_t>(std::min(size, content.bytes->left()));
        content.bytes->read(data, count);
        return static_cast<int64_t>(count);
      }
      case ZIP_SOURCE_STAT: return stat(data, content.bytes->left());
      case ZIP_SOURCE_OPEN:
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE: return 0;
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_CLOSE, ZIP_SOURCE_FREE, -1);
      default: zip_error_set(&content.archive->error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
  }

  static int64_t stat(void* out, uint64_t size) {
    auto* stat = static_cast<zip_stat_t*>(out);
    zip_stat_init(stat);
    stat->size = size;
    stat->valid = ZIP_STAT_SIZE;
    return sizeof(*stat);
  }

  void write(const void* bytes, uint64_t size) {
    file.write(bytes, static_cast<size_t>(size));
    position += size;
    end = std::max(end, position);
  }

  int64_t seek(void* arguments, uint64_t size) {
    const int64_t to = zip_source_seek_compute_offset(position, end, arguments, size, &error);
    if (to < 0) return -1;
    position = static_cast<uint64_t>(to);
    file.seek(position);
    return 0;
  }

  std::string path;
  AtomicFile file;
  uint64_t position = 0, end = 0;
  zip_error_t error;
  std::exception_ptr failure;
  std::vector<std::unique_ptr<Content>> contents;
  zip_t* zip = nullptr;
};

ZipWriter::ZipWriter(std::string path) : archive_(std::make_unique<Archive>(std::move(path))) {}
ZipWriter::~ZipWriter() = default;

void ZipWriter::add(const std::string& name, std::unique_ptr<ByteSource> bytes, bool deflated) {
  RUSH_CHECK_VALUE(name.size() <= kMaxName, "zip: a name of ", name.size(), " bytes is too long");
  RUSH_CHECK_VALUE(name.find('\0') == std::string::npos, "zip: a name holds a zero byte");
  Archive& archive = *archive_;
  archive.contents.push_back(std::unique_ptr<Archive::Content>(new Archive::Content{&archive, std::move(bytes)}));
  Archive::Content* content = archive.contents.back().get();
  zip_source_t* source = zip_source_function(archive.zip, &Archive::callback<Archive::Content>, content);
  const zip_int64_t index = source ? zip_file_add(archive.zip, name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
  if (index < 0) {
    if (source) zip_source_free(source);
    RUSH_THROW(ValueError, "zip: cannot add '", name, "': ", zip_strerror(archive.zip));
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  const bool set = zip_set_file_compression(archive.zip, entry, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                            deflated ? kDeflateLevel : 0) == 0 &&
                   zip_file_set_dostime(archive.zip, entry, kMidnight, kFirstDay, 0) == 0;
  RUSH_INTERNAL_ASSERT(set, "zip: ", zip_strerror(archive.zip));
}

void ZipWriter::commit() {
  Archive& archive = *archive_;
  if (archive.contents.empty()) {  // libzip writes no archive without entries
    archive.file.write(kEmptyArchive);
  } else {
    const int status = zip_close(archive.zip);
    if (status != 0 && archive.failure) std::rethrow_exception(archive.failure);
    RUSH_CHECK_IO(status == 0, archive.path, ": cannot write the archive: ", zip_strerror(archive.zip));
    archive.zip = nullptr;
  }
  archive.file.commit();
}

}  // namespace rush::io
