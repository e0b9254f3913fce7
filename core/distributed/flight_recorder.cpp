#include "core/distributed/flight_recorder.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/distributed/process_group.h"
#include "core/str.h"

namespace rush::distributed {

namespace {

std::atomic<bool> debugs = false;

double seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

nlohmann::json as_json(const CollectiveRecord& record) {
  const WorkPtr work = record.work.lock();
  nlohmann::json json = {{"number", record.number},
                         {"group", record.group},
                         {"collective", record.what()},
                         {"begun", seconds(record.begun)},
                         {"state", !work || work->is_completed() ? "completed" : "under way"}};
  if (!record.caller.empty()) json["caller"] = record.caller;
  return json;
}

}  // namespace

std::string CollectiveRecord::what() const {
  std::string text = name;
  if (elements >= 0) text += str(" of ", elements, " elements");
  if (dtype) text += str(" of ", *dtype);
  if (op) text += str(", ", rush::distributed::name(*op));
  if (root >= 0) text += str(", root ", root);
  return text;
}

void FlightRecorder::add(CollectiveRecord record) {
  const std::lock_guard lock(mutex_);
  if (record.number != 0) numbers_[record.group] = record.number;
  if (records_.size() == kMostRecords) records_.pop_front();
  records_.push_back(std::move(record));
}

uint64_t FlightRecorder::next_number(const std::string& group) const {
  const std::lock_guard lock(mutex_);
  const auto last = numbers_.find(group);
  return last == numbers_.end() ? 1 : last->second + 1;
}

std::vector<CollectiveRecord> FlightRecorder::records() const {
  const std::lock_guard lock(mutex_);
  return {records_.begin(), records_.end()};
}

void FlightRecorder::write(const std::string& path) const {
  nlohmann::json list = nlohmann::json::array();
  for (const CollectiveRecord& record : records()) list.push_back(as_json(record));
  std::ofstream file(path);
  file << list.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  RUSH_CHECK_AS(IOError, file.flush(), "cannot write ", path);
}

void FlightRecorder::clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
  numbers_.clear();
}

FlightRecorder& flight_recorder() {
  static auto& recorder = *new FlightRecorder();  // a backend's thread may outlive other objects
  return recorder;
}

std::string dump_flight_recorder() {
  namespace fs = std::filesystem;
  try {
    const char* const given = std::getenv("RUSH_FLIGHT_RECORDER");
    const fs::path folder = given && *given ? fs::path(given) : fs::temp_directory_path() / "rushlight_flight_recorder";
    fs::create_directories(folder);
    const int rank = is_initialized() ? get_rank() : 0;
    const std::string path = folder / str("rank_", rank, ".json");
    flight_recorder().write(path);
    return "its last collectives are in " + path;
  } catch (const std::exception& error) {
    return str("its last collectives could not be written: ", error.what());
  }
}

void detail::set_debug(bool debug) { debugs = debug; }
bool detail::is_debug() { return debugs; }

}  // namespace rush::distributed
