#include "examples/option_checks.h"

#include <unistd.h>

#include <filesystem>

#include "core/device/device.h"

namespace examples {

void check_device(const std::string& device, bool graph) {
  const rush::Device parsed(device);
  RUSH_CHECK_VALUE(!parsed.is_meta(), "--device: expected cpu or cuda, got '", device, "'");
  RUSH_CHECK_VALUE(!graph || parsed.is_cuda(), "--graph needs --device cuda");
}

void check_json_file(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  RUSH_CHECK_VALUE(folder.empty() || std::filesystem::is_directory(folder), "--json: there is no folder ",
                   folder.string());
}

void check_transformer(const TransformerSize& size, int64_t bytes_per_parameter, const std::string& device) {
  RUSH_CHECK_VALUE(size.n_embd % size.n_head == 0, "--n_embd ", size.n_embd, " is no multiple of --n_head ",
                   size.n_head);
  if (!rush::Device(device).is_cpu()) return;
  const double width = static_cast<double>(size.n_embd);
  const double bytes =
      12 * static_cast<double>(size.n_layer) * width * width * static_cast<double>(bytes_per_parameter);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  RUSH_CHECK_VALUE(bytes <= memory, "--n_layer ", size.n_layer, " of --n_embd ", size.n_embd, " take ",
                   static_cast<int64_t>(bytes / (1 << 30)), " GiB, this machine has ",
                   static_cast<int64_t>(memory / (1 << 30)));
}

}  // namespace examples
