// A program that trains without process groups does not load MPI, however the library was built.
#include <cstdio>
#include <fstream>
#include <string>

#include "rushlight.h"

int main() {
  const rush::nn::Linear layer(3, 2);
  layer(rush::ones({4, 3})).sum().backward();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libmpi") == line.npos && line.find("libopen-pal") == line.npos) continue;
    std::printf("a program without process groups has loaded %s\n", line.c_str());
    return 1;
  }
  return 0;
}
