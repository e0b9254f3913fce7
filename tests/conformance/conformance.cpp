// rush_conformance CASES.jsonl: compares single operators with recorded answers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "rushlight.h"
#include "tests/conformance/run_case.h"

using namespace conformance;
using nlohmann::json;

namespace {

struct Settings {
  std::string cases, devices = "cpu", filter, order = "row_major", json_file;
  int64_t part = 1, parts = 1;
  bool compiled = false, verbose = false;
};

struct Failure {
  std::string id, reason;
};

struct Tally {
  int passed = 0, failed = 0, missing = 0;
  std::vector<Failure> failures;
  std::vector<std::string> missing_overloads;  // each once

  bool whole() const { return failed == 0 && missing == 0; }

  void count(const Case& one, const Verdict& verdict) {
    switch (verdict.outcome) {
      case Outcome::Passed: ++passed; break;
      case Outcome::Failed:
        ++failed;
        failures.push_back({one.id, verdict.reason});
        break;
      case Outcome::Missing:
        ++missing;
        if (std::find(missing_overloads.begin(), missing_overloads.end(), one.overload) == missing_overloads.end()) {
          missing_overloads.push_back(one.overload);
        }
    }
  }

  std::string text() const { return rush::str("passed ", passed, ", failed ", failed, ", missing ", missing); }
};

struct DeviceReport {
  std::string device;
  double seconds = 0;
  Tally total;
  std::map<std::string, Tally> families;
};

// What the list names, between commas.
std::vector<std::string> device_names(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  examples::Options options("rush_conformance", "Compares single operators with recorded answers.");
  options.add_argument("CASES.jsonl", &settings.cases, "the cases; their tensors lie in CASES.safetensors beside it");
  options.add("--device", &settings.devices, "where to run: cpu, cuda, or both as cpu,cuda");
  options.add("--filter", &settings.filter, "only cases whose family, overload or id contains this text");
  options.add("--parts", &settings.parts, "divide those cases into this many parts, and run one", 1, 1 << 20);
  options.add("--part", &settings.part, "which of the parts", 1, 1 << 20);
  options.add("--order", &settings.order, "how arguments lie in memory, unless the case gives their strides",
              {"row_major", "reversed", "spread"});
  options.add("--compiled", &settings.compiled, "call each operator in a function that was compiled");
  options.add("--verbose", &settings.verbose, "show every failure, not the first three of a family");
  options.add("--json", &settings.json_file, "write the results to this file");
  options.parse_or_exit(argc, argv, [&] {
    for (const std::string& device : device_names(settings.devices)) examples::check_device(device);
    examples::check_json_file(settings.json_file);
    RUSH_CHECK_VALUE(settings.part <= settings.parts, "there is no part ", settings.part, " of ", settings.parts);
  });
  return settings;
}

std::vector<rush::Device> find_devices(const std::string& list) {
  std::vector<rush::Device> devices;
  for (const std::string& name : device_names(list)) {
    devices.emplace_back(name);
    rush::zeros({1}, devices.back());  // throws at once where there is no such device
  }
  return devices;
}

bool selected(const Case& one, const std::string& filter) {
  return one.family.find(filter) != std::string::npos || one.overload.find(filter) != std::string::npos ||
         one.id.find(filter) != std::string::npos;
}

ArgumentOrder order_named(const std::string& name) {
  return name == "reversed" ? ArgumentOrder::Reversed
         : name == "spread" ? ArgumentOrder::Spread
                            : ArgumentOrder::RowMajor;
}

// Views that only some strides allow, or whose elements the strides choose.
bool depends_on_strides(const Case& one) {
  constexpr const char* families[] = {"view", "view_as", "view_as_complex", "as_strided", "as_strided_"};
  return std::any_of(std::begin(families), std::end(families), [&](const char* each) { return one.family == each; });
}

DeviceReport run(const CaseFile& file, rush::Device device, const Settings& settings) {
  DeviceReport report{device.str(), 0, {}, {}};
  const auto start = std::chrono::steady_clock::now();
  int64_t count = 0;
  for (const Case& one : file.cases()) {
    if (file.order() != ArgumentOrder::RowMajor && depends_on_strides(one)) continue;
    if (!selected(one, settings.filter) || count++ % settings.parts != settings.part - 1) continue;
    const Verdict verdict = run_case(file, one, device, settings.compiled);
    report.total.count(one, verdict);
    report.families[one.family].count(one, verdict);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void print(const std::string& family, const Tally& tally, bool verbose) {
  constexpr size_t kShown = 3;
  std::string line = rush::str("  ", family, ": ", tally.text());
  for (const std::string& overload : tally.missing_overloads) line += " " + overload;
  std::puts(line.c_str());
  const size_t shown = verbose ? tally.failures.size() : std::min(kShown, tally.failures.size());
  for (size_t i = 0; i < shown; ++i) {
    std::printf("    %s: %s\n", tally.failures[i].id.c_str(), tally.failures[i].reason.c_str());
  }
  if (shown < tally.failures.size()) std::printf("    ... and %zu more\n", tally.failures.size() - shown);
}

// The families that are not whole: those with failures last, where a reader looks first.
void print(const DeviceReport& report, bool verbose) {
  size_t whole = 0;
  for (const auto& [family, tally] : report.families) {
    whole += tally.whole();
    if (tally.failed == 0 && tally.missing > 0) print(family, tally, verbose);
  }
  for (const auto& [family, tally] : report.families) {
    if (tally.failed > 0) print(family, tally, verbose);
  }
  std::printf("%s: %s; %zu of %zu families whole (%.1f s)\n", report.device.c_str(), report.total.text().c_str(), whole,
              report.families.size(), report.seconds);
}

json to_json(const Tally& tally) {
  json out = {{"passed", tally.passed}, {"failed", tally.failed}, {"missing", tally.missing}};
  for (const Failure& failure : tally.failures) out["failures"][failure.id] = failure.reason;
  if (!tally.missing_overloads.empty()) out["missing_overloads"] = tally.missing_overloads;
  return out;
}

json to_json(const std::vector<DeviceReport>& reports, const Tally& all) {
  json out = {{"passed", all.passed}, {"failed", all.failed}, {"missing", all.missing}};
  for (const DeviceReport& report : reports) {
    json& device = out["devices"][report.device];
    device = {{"passed", report.total.passed},
              {"failed", report.total.failed},
              {"missing", report.total.missing},
              {"seconds", report.seconds}};
    for (const auto& [family, tally] : report.families) device["families"][family] = to_json(tally);
  }
  return out;
}

int run_all(const Settings& settings) {
  rush::globalContext().setAllowTF32CuDNN(false);  // the answers are float32's
  const CaseFile file(settings.cases, order_named(settings.order));
  std::vector<DeviceReport> reports;
  Tally all;
  for (const rush::Device device : find_devices(settings.devices)) {
    reports.push_back(run(file, device, settings));
    const Tally& total = reports.back().total;
    all.passed += total.passed, all.failed += total.failed, all.missing += total.missing;
    print(reports.back(), settings.verbose);
  }
  if (!settings.json_file.empty()) {
    // A message may hold anything: what is not UTF-8 in it is replaced.
    rush::io::write_file_atomically(settings.json_file,
                                    to_json(reports, all).dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  }
  std::puts(all.text().c_str());
  return all.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rush_conformance: %s\n", error.what());
    return 2;
  }
}
