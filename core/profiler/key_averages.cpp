#include <algorithm>
#include <functional>

#include "core/profiler/profiler.h"
#include "core/profiler/text_table.h"

namespace rush::profiler {

namespace {

double key_of(const Average& average, std::string_view name) {
  if (name == "self_cpu_time_total") return average.self_cpu_time_total;
  if (name == "cpu_time_total") return average.cpu_time_total;
  if (name == "cpu_time_avg") return average.cpu_time_avg();
  if (name == "self_device_time_total") return average.self_device_time_total;
  if (name == "device_time_total") return average.device_time_total;
  if (name == "count") return static_cast<double>(average.count);
  if (name == "flops") return average.flops;
  RUSH_THROW(ValueError, "table: there is no column '", name, "' to sort by");
}

}  // namespace

const Average* KeyAverages::find(std::string_view name) const {
  const auto found = std::find_if(begin(), end(), [&](const Average& average) { return average.name == name; });
  return found == end() ? nullptr : &*found;
}

std::string KeyAverages::table(std::string_view sort_by, size_t row_limit, size_t max_name_width) const {
  std::vector<const Average*> sorted;
  double all = 0, all_on_device = 0;
  bool has_shapes = false, has_stacks = false, has_flops = false;
  for (const Average& average : *this) {
    sorted.push_back(&average);
    if (average.kind != EventKind::Step) all += average.self_cpu_time_total;
    if (average.kind == EventKind::Device) all_on_device += average.self_device_time_total;
    has_shapes = has_shapes || !average.shapes.empty();
    has_stacks = has_stacks || !average.stack.empty();
    has_flops = has_flops || average.flops > 0;
  }
  const bool has_devices = all_on_device > 0;
  if (sort_by.empty()) sort_by = has_devices ? "self_device_time_total" : "self_cpu_time_total";
  if (sort_by != "none") {
    std::ranges::stable_sort(sorted, std::greater(), [&](const Average* each) { return key_of(*each, sort_by); });
  }
  if (sorted.size() > row_limit) sorted.resize(row_limit);

  std::vector<Row> rows = {{"Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"}};
  if (has_devices) {
    for (const std::string& name :
         {"Self " + device, "Self " + device + " %", device + " total", device + " time avg"}) {
      rows[0].push_back(name);
    }
  }
  rows[0].push_back("# of Calls");
  if (has_shapes) rows[0].push_back("Input Shapes");
  if (has_flops) rows[0].push_back("GFLOP/s");
  if (has_stacks) rows[0].push_back("Called by");
  const auto part = [&](double time, double whole) { return printed("%.2f%%", whole > 0 ? 100 * time / whole : 0); };
  for (const Average* each : sorted) {
    Row row = {shortened(each->name, max_name_width), part(each->self_cpu_time_total, all),
               as_time(each->self_cpu_time_total),    part(each->cpu_time_total, all),
               as_time(each->cpu_time_total),         as_time(each->cpu_time_avg())};
    if (has_devices) {
      row.push_back(as_time(each->self_device_time_total));
      row.push_back(part(each->self_device_time_total, all_on_device));
      row.push_back(as_time(each->device_time_total));
      row.push_back(as_time(each->device_time_total / static_cast<double>(each->count)));
    }
    row.push_back(str(each->count));
    if (has_shapes) row.push_back(shortened(each->shapes, 80));
    if (has_flops) row.push_back(each->flops > 0 ? printed("%.3f", each->flops / each->cpu_time_total * 1e-3) : "--");
    if (has_stacks) row.push_back(shortened(each->stack, 100));
    rows.push_back(std::move(row));
  }
  return set_in_columns(rows) + "Self CPU time total: " + as_time(all) + "\n" +
         (has_devices ? "Self " + device + " time total: " + as_time(all_on_device) + "\n" : "");
}

}  // namespace rush::profiler
