#include "torch/serialize.h"

#include <sstream>

namespace rush {

std::vector<char> pickle_save(const c10::IValue& value) {
  serialize::OutputArchive archive;
  archive.write("", value);
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = std::move(stream).str();
  return {bytes.begin(), bytes.end()};
}
c10::IValue pickle_load(const std::vector<char>& data) {
  serialize::InputArchive archive;
  archive.load_from(data.data(), data.size());
  Value value;
  RUSH_CHECK_TYPE(archive.try_read("", value), "pickle_load: the data holds a dict or a list; use InputArchive");
  return value;
}

}  // namespace rush
