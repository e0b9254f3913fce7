// Writing of ZIP archives.
#include <zlib.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/crc32.h"
#include "core/io/little_endian.h"
#include "core/io/zip.h"

namespace rush::io {
namespace {

constexpr uint64_t kVersion = 45;           // of the format: the first that has 64-bit sizes
constexpr uint64_t kUtf8Name = 0x800;       // a flag
constexpr uint64_t kDosEpoch = 0x21 << 16;  // 1980-01-01 00:00: equal contents make equal files, as NumPy has it
constexpr uint64_t kIn64 = 0xffffffff;      // a 32-bit field that says: see the 64-bit one
constexpr size_t kMaxName = 0xffff;

// Appends fields of a record, each a value and its size in bytes.
struct Field {
  uint64_t value;
  size_t size;
};
void put(std::string& out, std::initializer_list<Field> fields) {
  for (const Field& field : fields) put_little_endian(out, field.value, field.size);
}

// Compresses pieces of one stream.
class Deflater {
 public:
  Deflater() {
    RUSH_CHECK_IO(
        deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, /*memLevel=*/8, Z_DEFAULT_STRATEGY) == Z_OK,
        "deflate: cannot start zlib");
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&z_); }

  void add(const void* bytes, size_t size) {
    const Bytef* next = static_cast<const Bytef*>(bytes);
    while (size > 0) {
      const auto part = static_cast<uInt>(std::min(size, size_t{1} << 30));  // zlib counts in 32 bits
      z_.next_in = const_cast<Bytef*>(next);                                 // zlib only reads here
      z_.avail_in = part;
      run(Z_NO_FLUSH);
      next += part;
      size -= part;
    }
  }
  std::string finish() {
    run(Z_FINISH);
    return std::move(out_);
  }

 private:
  void run(int flush) {
    char buffer[1 << 16];
    do {
      z_.next_out = reinterpret_cast<Bytef*>(buffer);
      z_.avail_out = sizeof(buffer);
      const int status = deflate(&z_, flush);
      RUSH_INTERNAL_ASSERT(status != Z_STREAM_ERROR, "deflate: ", zError(status));
      out_.append(buffer, sizeof(buffer) - z_.avail_out);
    } while (z_.avail_out == 0);
  }

  z_stream z_{};
  std::string out_;
};

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::string_view header, const void* data, size_t size, bool deflated) {
  RUSH_CHECK_VALUE(name.size() <= kMaxName, "zip: a name of ", name.size(), " bytes is too long");
  Crc32 sum;
  sum.update(header.data(), header.size());
  sum.update(data, size);
  const uint64_t whole = header.size() + size;
  std::string packed;
  if (deflated) {
    Deflater deflater;
    deflater.add(header.data(), header.size());
    deflater.add(data, size);
    packed = deflater.finish();
  }
  const uint64_t stored = deflated ? packed.size() : whole, begin = position_;
  const uint64_t method = deflated ? 8 : 0;

  std::string local;
  put(local, {{0x04034b50, 4}, {kVersion, 2}, {kUtf8Name, 2}, {method, 2}, {kDosEpoch, 4}, {sum.value(), 4}});
  put(local, {{kIn64, 4}, {kIn64, 4}, {name.size(), 2}, {20, 2}});
  local += name;
  put(local, {{1, 2}, {16, 2}, {whole, 8}, {stored, 8}});
  write(local);
  if (deflated) {
    write(packed);
  } else {
    write(header);
    write({static_cast<const char*>(data), size});
  }

  put(directory_, {{0x02014b50, 4}, {kVersion, 2}, {kVersion, 2}, {kUtf8Name, 2}, {method, 2}, {kDosEpoch, 4}});
  put(directory_, {{sum.value(), 4}, {kIn64, 4}, {kIn64, 4}, {name.size(), 2}, {28, 2}, {0, 2}, {0, 2}, {0, 2}});
  put(directory_, {{0, 4}, {kIn64, 4}});
  directory_ += name;
  put(directory_, {{1, 2}, {24, 2}, {whole, 8}, {stored, 8}, {begin, 8}});
  ++count_;
}

void ZipWriter::commit() {
  const uint64_t begin = position_, size = directory_.size();
  write(directory_);
  const uint64_t end = position_;
  std::string tail;
  put(tail, {{0x06064b50, 4}, {44, 8}, {kVersion, 2}, {kVersion, 2}, {0, 4}, {0, 4}, {count_, 8}, {count_, 8}});
  put(tail, {{size, 8}, {begin, 8}});
  put(tail, {{0x07064b50, 4}, {0, 4}, {end, 8}, {1, 4}});
  put(tail, {{0x06054b50, 4}, {0, 2}, {0, 2}, {0xffff, 2}, {0xffff, 2}, {kIn64, 4}, {kIn64, 4}, {0, 2}});
  write(tail);
  file_.commit();
}

}  // namespace rush::io
