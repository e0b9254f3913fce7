// Reading of ZIP archives.
#include <zlib.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/io/crc32.h"
#include "core/io/little_endian.h"
#include "core/io/zip.h"

namespace rush::io {
namespace {

// Records begin with these; sizes are of their fixed parts. Fields are read at their offsets in the APPNOTE, 4.3 and
// 4.5.3.
constexpr uint64_t kLocalSignature = 0x04034b50, kLocalSize = 30;
constexpr uint64_t kCentralSignature = 0x02014b50, kCentralSize = 46;
constexpr uint64_t kEndSignature = 0x06054b50, kEndSize = 22;
constexpr uint64_t kLocator64Signature = 0x07064b50, kLocator64Size = 20;
constexpr uint64_t kEnd64Signature = 0x06064b50, kEnd64Size = 56;
constexpr uint64_t kExtra64 = 1;
constexpr uint64_t kIn64 = 0xffffffff;  // a 32-bit field that says: see the 64-bit one
constexpr uint64_t kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr uint64_t kMaxRatio = 1032;  // deflate: 258 bytes from at best two bits

using Bytes = std::vector<uint8_t>;

Bytes read_bytes(const InputFile& file, uint64_t offset, uint64_t size) {
  RUSH_CHECK_IO(offset <= file.size() && size <= file.size() - offset, file.path(), ": truncated archive: expected ",
                size, " bytes from byte ", offset, " on, the file has ", file.size());
  Bytes bytes(static_cast<size_t>(size));
  file.read(offset, bytes.data(), bytes.size());
  return bytes;
}

uint64_t field(const Bytes& bytes, uint64_t offset, size_t size) {
  return get_little_endian(bytes.data() + offset, size);
}

// Replaces those of the entry's fields that are too big for 32 bits by the zip64 field's, which has only these.
void widen(const std::string& path, ZipReader::Entry& entry, const uint8_t* extra, size_t size) {
  uint64_t* const wanted[] = {&entry.size, &entry.compressed_size, &entry.header};
  if (std::none_of(std::begin(wanted), std::end(wanted), [](uint64_t* value) { return *value == kIn64; })) return;
  for (size_t at = 0; at + 4 <= size;) {
    const uint64_t id = get_little_endian(extra + at, 2), length = get_little_endian(extra + at + 2, 2);
    at += 4;
    if (length > size - at) break;
    if (id == kExtra64) {
      size_t next = at;
      for (uint64_t* value : wanted) {
        if (*value != kIn64) continue;
        RUSH_CHECK_IO(next + 8 <= at + length, path, ": corrupt archive: entry '", entry.name, "' lacks a 64-bit size");
        *value = get_little_endian(extra + next, 8);
        next += 8;
      }
      return;
    }
    at += length;
  }
  RUSH_THROW(IOError, path, ": corrupt archive: entry '", entry.name, "' has no 64-bit sizes");
}

// An entry's bytes, unpacked and summed up on the way.
class EntrySource final : public ByteSource {
 public:
  EntrySource(const InputFile& file, const ZipReader::Entry& entry)
      : file_(file), entry_(entry), left_(entry.size), packed_(entry.compressed_size), at_(entry.data) {
    if (!entry.deflated) return;
    RUSH_CHECK_IO(inflateInit2(&z_, -MAX_WBITS) == Z_OK, file.path(), ": cannot start zlib");
    started_ = true;
  }
  EntrySource(const EntrySource&) = delete;
  EntrySource& operator=(const EntrySource&) = delete;
  ~EntrySource() override {
    if (started_) inflateEnd(&z_);
  }

  uint64_t left() const override { return left_; }

  void read(void* out, size_t size) override {
    RUSH_CHECK_IO(size <= left_, file_.path(), ": truncated: entry '", entry_.name, "' has only ", left_,
                  " of the next ", size, " bytes");
    if (size == 0) return;
    if (entry_.deflated) {
      inflate_next(static_cast<uint8_t*>(out), size);
    } else {
      file_.read(at_, out, size);
      at_ += size;
    }
    sum_.update(out, size);
    left_ -= size;
    if (left_ == 0) finish();
  }

 private:
  static constexpr size_t kInput = size_t{1} << 16;
  static constexpr size_t kMostOutput = size_t{1} << 30;  // zlib counts in 32 bits

  // Inflates until `size` bytes are produced, or the stream ends; returns how many were.
  size_t inflate_some(uint8_t* out, size_t size) {
    size_t done = 0;
    while (done < size && !ended_) {
      if (z_.avail_in == 0 && packed_ > 0) {
        input_.resize(static_cast<size_t>(std::min<uint64_t>(packed_, kInput)));
        file_.read(at_, input_.data(), input_.size());
        at_ += input_.size();
        packed_ -= input_.size();
        z_.next_in = input_.data();
        z_.avail_in = static_cast<uInt>(input_.size());
      }
      const auto room = static_cast<uInt>(std::min(size - done, kMostOutput));
      z_.next_out = out + done;
      z_.avail_out = room;
      const int status = inflate(&z_, Z_NO_FLUSH);
      done += room - z_.avail_out;
      ended_ = status == Z_STREAM_END;
      RUSH_CHECK_IO(ended_ || status == Z_OK, file_.path(), ": corrupt: entry '", entry_.name,
                    "' cannot be unpacked: ", z_.msg ? z_.msg : zError(status));
    }
    return done;
  }

  void inflate_next(uint8_t* out, size_t size) {
    const size_t done = inflate_some(out, size);
    RUSH_CHECK_IO(done == size, file_.path(), ": corrupt: entry '", entry_.name, "' unpacks to ", size - done,
                  " bytes less than its size");
  }

  void finish() {
    if (entry_.deflated) {
      uint8_t extra;
      RUSH_CHECK_IO(inflate_some(&extra, 1) == 0 && packed_ == 0 && z_.avail_in == 0, file_.path(),
                    ": corrupt: entry '", entry_.name, "' unpacks to more than its size");
    }
    RUSH_CHECK_IO(sum_.value() == entry_.crc, file_.path(), ": corrupt: entry '", entry_.name,
                  "' does not have its checksum (CRC-32)");
  }

  const InputFile& file_;
  const ZipReader::Entry& entry_;
  uint64_t left_;         // bytes that the caller may still read
  uint64_t packed_, at_;  // bytes in the file that were not read, and where they begin
  Crc32 sum_;
  z_stream z_{};
  bool started_ = false, ended_ = false;
  Bytes input_;
};

}  // namespace

ZipReader::ZipReader(std::string path) : file_(std::move(path)) {
  const Directory directory = find_directory();
  read_directory(directory);
  for (Entry& entry : entries_) locate_data(entry, directory.offset);
  check_overlaps();
}

// The record that ends the archive is the last thing in it but for a comment, whose length it gives.
ZipReader::Directory ZipReader::find_directory() const {
  const std::string& path = file_.path();
  const uint64_t most = std::min<uint64_t>(file_.size(), kEndSize + 0xffff);
  const uint64_t begin = file_.size() - most;
  const Bytes tail = read_bytes(file_, begin, most);
  uint64_t at = most;
  for (uint64_t from = most >= kEndSize ? most - kEndSize + 1 : 0; from > 0 && at == most; --from) {
    const uint64_t here = from - 1;
    const bool ends = field(tail, here, 4) == kEndSignature && here + kEndSize + field(tail, here + 20, 2) == most;
    if (ends) at = here;
  }
  RUSH_CHECK_IO(at != most, path, ": not an npz file, or truncated: no end of a ZIP archive found");

  Directory directory{field(tail, at + 16, 4), field(tail, at + 12, 4), field(tail, at + 10, 2)};
  uint64_t disk = field(tail, at + 4, 2), end = begin + at;
  if (end >= kLocator64Size) {
    const Bytes locator = read_bytes(file_, end - kLocator64Size, kLocator64Size);
    if (field(locator, 0, 4) == kLocator64Signature) {
      end = field(locator, 8, 8);
      const Bytes record = read_bytes(file_, end, kEnd64Size);
      RUSH_CHECK_IO(field(record, 0, 4) == kEnd64Signature, path, ": corrupt archive: no 64-bit end record");
      directory = {field(record, 48, 8), field(record, 40, 8), field(record, 32, 8)};
      disk = field(record, 16, 4);
    }
  }
  RUSH_CHECK_NOT_IMPLEMENTED(disk == 0, path, ": an archive of several files is not supported");
  RUSH_CHECK_IO(directory.offset <= end && directory.size == end - directory.offset, path,
                ": corrupt archive: its directory of ", directory.size, " bytes at byte ", directory.offset,
                " does not reach its end at byte ", end);
  return directory;
}

void ZipReader::read_directory(const Directory& directory) {
  const std::string& path = file_.path();
  const Bytes bytes = read_bytes(file_, directory.offset, directory.size);
  std::unordered_set<std::string> names;
  for (uint64_t at = 0; at < bytes.size();) {
    RUSH_CHECK_IO(bytes.size() - at >= kCentralSize && field(bytes, at, 4) == kCentralSignature, path,
                  ": corrupt archive: no entry ", entries_.size(), " in its directory");
    const uint64_t flags = field(bytes, at + 8, 2), method = field(bytes, at + 10, 2);
    const uint64_t name_size = field(bytes, at + 28, 2), extra_size = field(bytes, at + 30, 2);
    const uint64_t next = at + kCentralSize + name_size + extra_size + field(bytes, at + 32, 2);
    RUSH_CHECK_IO(next <= bytes.size(), path, ": corrupt archive: entry ", entries_.size(), " exceeds its directory");

    Entry entry;
    const uint8_t* name = bytes.data() + at + kCentralSize;
    entry.name.assign(name, name + name_size);
    RUSH_CHECK_IO(names.insert(entry.name).second, path, ": corrupt archive: two entries are named '", entry.name, "'");
    RUSH_CHECK_NOT_IMPLEMENTED(!(flags & kEncrypted), path, ": entry '", entry.name, "' is encrypted");
    RUSH_CHECK_NOT_IMPLEMENTED(method == kStored || method == kDeflated, path, ": entry '", entry.name,
                               "' is compressed by method ", method, "; supported are 0 (stored) and 8 (deflate)");
    entry.deflated = method == kDeflated;
    entry.crc = static_cast<uint32_t>(field(bytes, at + 16, 4));
    entry.compressed_size = field(bytes, at + 20, 4);
    entry.size = field(bytes, at + 24, 4);
    entry.header = field(bytes, at + 42, 4);
    widen(path, entry, name + name_size, static_cast<size_t>(extra_size));
    entries_.push_back(std::move(entry));
    at = next;
  }
  RUSH_CHECK_IO(entries_.size() == directory.count, path, ": corrupt archive: its directory has ", entries_.size(),
                " entries, it announces ", directory.count);
}

void ZipReader::locate_data(Entry& entry, uint64_t directory_offset) const {
  const auto corrupt = [&](const char* what) {
    RUSH_THROW(IOError, file_.path(), ": corrupt archive: entry '", entry.name, "' ", what);
  };
  if (entry.header > directory_offset || directory_offset - entry.header < kLocalSize) corrupt("lies outside");
  const Bytes local = read_bytes(file_, entry.header, kLocalSize);
  if (field(local, 0, 4) != kLocalSignature) corrupt("is not where the directory says");
  entry.data = entry.header + kLocalSize + field(local, 26, 2) + field(local, 28, 2);
  if (entry.data > directory_offset || entry.compressed_size > directory_offset - entry.data) corrupt("lies outside");
  if (!entry.deflated && entry.size != entry.compressed_size) corrupt("is stored in another size than it has");
  if (entry.deflated && entry.size / kMaxRatio > entry.compressed_size) corrupt("is larger than it can unpack to");
}

void ZipReader::check_overlaps() const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->header < b->header; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Entry& before = *order[i - 1];
    RUSH_CHECK_IO(before.data + before.compressed_size <= order[i]->header, file_.path(),
                  ": corrupt archive: entries '", before.name, "' and '", order[i]->name, "' overlap");
  }
}

std::unique_ptr<ByteSource> ZipReader::open(const Entry& entry) const {
  return std::make_unique<EntrySource>(file_, entry);
}

}  // namespace rush::io
