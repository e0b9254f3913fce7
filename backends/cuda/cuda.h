// What a program asks of CUDA: devices, streams, events, memory, graphs, cuFFT's plans. None of it includes a header of
// CUDA's.
#pragma once
#include "backends/cuda/devices.h"
#include "backends/cuda/fft/plan_cache.h"
#include "backends/cuda/memory/memory.h"
#include "backends/cuda/stream/event.h"
#include "backends/cuda/stream/stream.h"
#include "core/graphs/graph.h"
