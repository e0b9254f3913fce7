// TorchScript: Rushlight has none.
#pragma once
#error "torch/script.h: Rushlight runs no TorchScript; build the module in C++ and read its weights with torch::load"
