// TemporaryFile: a file that exists for as long as an object; readers and writers of files serve streams by it.
#pragma once
#include <iosfwd>
#include <string>

namespace rush::serialize {

class TemporaryFile {
 public:
  /// An empty file in the system's folder of temporary files. Throws IOError.
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }  // where the file is
  /// All its bytes. Throws IOError when the stream does not take them.
  void copy_to(std::ostream& stream) const;
  /// The rest of the stream. Throws IOError when that cannot be read or written.
  void copy_from(std::istream& stream) const;

 private:
  std::string path_;
};

}  // namespace rush::serialize
