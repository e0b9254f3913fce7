// The settings by which an expert trades the last bits of float32 for speed: set_fastest of peers/torch_modes.py.
#pragma once

#include "core/device/context.h"

namespace rush {

class FastestSettings {
 public:
  FastestSettings() { set(true); }
  ~FastestSettings() { set(false); }
  FastestSettings(const FastestSettings&) = delete;
  FastestSettings& operator=(const FastestSettings&) = delete;

 private:
  static void set(bool fastest) {
    globalContext().setAllowTF32CuBLAS(fastest);
    globalContext().setBenchmarkCuDNN(fastest);
  }
};

}  // namespace rush
