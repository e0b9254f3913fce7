// usage: use CLAMP NORM NOTHING COPY INCOMPLETE: loads the first library and uses its operator; the others are refused.
#include <cstring>
#include <fstream>
#include <iterator>

#include "check.h"
#include "core/dispatch/call.h"

using namespace rush;

// A copy of the file whose identity has another version.
std::string of_another_version(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string mine(reinterpret_cast<const char*>(&library::kIdentity), sizeof(library::Identity));
  library::Identity other;
  std::strcpy(other.version, "0.0.9");
  for (size_t at = bytes.find(mine); at != bytes.npos; at = bytes.find(mine, at + 1))
    std::memcpy(bytes.data() + at, &other, sizeof(other));
  std::ofstream("other_version.so", std::ios::binary) << bytes;
  return "other_version.so";
}

Tensor clamped(const Tensor& x, double limit) { return call_operator("outside::clamp_by", {x, limit})[0].as<Tensor>(); }

void use_operator(Device device) {
  const Tensor x = tensor({-3.0f, -0.5f, 0.25f, 2.0f}).to(device).requires_grad_();
  const Tensor y = clamped(x, 1);
  check(equal(y.detach().cpu(), tensor({-1.0f, -0.5f, 0.25f, 1.0f})), "values");
  check(y.grad_fn()->name() == "ClampByBackward", "the node's name");
  y.sum().backward();
  check(equal(x.grad().cpu(), tensor({0.0f, 1.0f, 1.0f, 0.0f})), "gradients");
}

int main(int, char** paths) {
  refuses<ValueError>(of_another_version(paths[1]), "was built against Rushlight 0.0.9, layout ");
  refuses<ValueError>(of_another_version(paths[1]), "this program is linked to Rushlight " RUSH_VERSION);
  refuses<ValueError>(paths[2], "rush_keep_all");
  refuses<ValueError>(paths[3], "has no RUSH_OPERATORS");
  refuses<ValueError>(paths[4], "has a copy of Rushlight inside");
  refuses<ValueError>(paths[5], "needs forgotten(), which neither it nor this program defines");
  refuses<IOError>("no_such_file.so", "no_such_file.so");
  refuses<IOError>("CMakeCache.txt", "is no shared library");

  load_library(paths[1]);
  load_library(paths[1]);
  use_operator(kCPU);
  if (cuda::is_available()) use_operator(kCUDA);
  check(clamped(empty({2, 3}, TensorOptions(kMeta)), 1).sizes() == IntArrayRef{2, 3}, "sizes without data");

  std::ifstream original(paths[1], std::ios::binary);
  std::ofstream("again.so", std::ios::binary) << original.rdbuf();
  refuses<ValueError>("again.so", "there is an operator outside::clamp_by already, registered at ");
  std::puts("ok");
}
