// Datasets, transforms, samplers and the loader.
#pragma once
#include "nn/data/data_loader.h"
#include "nn/data/datasets/base.h"
#include "nn/data/datasets/chunk.h"
#include "nn/data/datasets/mnist.h"
#include "nn/data/datasets/shared.h"
#include "nn/data/datasets/stateful.h"
#include "nn/data/datasets/tensor.h"
#include "nn/data/device_prefetcher.h"
#include "nn/data/distributed_samplers.h"
#include "nn/data/transforms/collate.h"
#include "nn/data/transforms/lambda.h"
#include "nn/data/transforms/pin_memory.h"
#include "nn/data/transforms/stack.h"
#include "nn/data/transforms/tensor.h"

namespace rush::data {
using datasets::BatchDataset;
using datasets::Dataset;
}  // namespace rush::data
