// One call on the CPU and on another device, compared.
#pragma once

#include <string>

#include "core/device/device.h"
#include "core/dispatch/op.h"
#include "core/dispatch/value.h"

namespace fuzz {

/// Makes the call on the CPU and on `device`, from equal seeds, and runs the backward pass of the first result that has
/// one. Returns what differs, for people: a value, a shape, an error on one side only. Empty where nothing does, and
/// where results need not agree: the reasons are beside the rules, in the source.
std::string difference(const rush::OpBase& op, const rush::Stack& arguments, rush::Device device);

}  // namespace fuzz
