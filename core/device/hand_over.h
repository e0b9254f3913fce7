// Tensors that are made on one stream and used on another.
#pragma once
#include "core/device/stream.h"

namespace rush {

class Tensor;

/// Makes `tensor`, made by what `producer` has been given until now, usable by what `consumer` is given from now on:
/// that waits, and the memory is not handed out again before it is done. Nothing where both are the same, or one is no
/// queue.
void hand_over(const Tensor& tensor, const Stream& producer, const Stream& consumer);

}  // namespace rush
