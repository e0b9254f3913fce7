#include "core/profiler/advice.h"

#include <algorithm>
#include <functional>

#include "core/profiler/facts.h"
#include "core/profiler/text_table.h"
#include "core/str.h"

namespace rush::profiler {

namespace {

constexpr double kWorthIt = 0.05;  // of the whole time, below which no rule speaks
constexpr double kIdle = 0.1;
constexpr int64_t kRestart = 15'000;  // nanoseconds from a wait's end to the next kernel's beginning, at the least
constexpr int64_t kFewKernels = 16;   // between two waits

std::string percent(double share) { return str(static_cast<int64_t>(share * 100 + 0.5), " %"); }
std::string milliseconds(int64_t nanoseconds) { return printed("%.1f ms", static_cast<double>(nanoseconds) * 1e-6); }

bool is_product(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name.ends_with("mm") || has("linear") || has("convolution") || has("matmul");
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// ---- why a device is idle

void find_idle_causes(const Facts& facts, std::vector<Advice>& out) {
  const int64_t idle = facts.span - facts.busy;
  const double idle_share = share(idle, facts.span);
  if (facts.kernels == 0 || idle_share < kIdle) return;
  const double loader = std::min(share(facts.loader, facts.span), idle_share);
  if (loader >= kIdle / 2) {
    out.push_back({"loader",
                   str("The program waits ", milliseconds(facts.loader), " (", percent(share(facts.loader, facts.span)),
                       ") for its DataLoader: more workers, or less work for each example."),
                   loader});
  }
  const double left = idle_share - loader;
  // A wait costs what the device lacks until new work comes: the host can no longer run ahead. Where waits are a few
  // kernels apart, it never does, and all that it does between them is idle time.
  const FactsOfWait* worst = nullptr;
  int64_t waits = 0;
  for (const FactsOfWait& each : facts.waits) {
    waits += each.count;
    if (!worst || each.count > worst->count) worst = &each;
  }
  const double by_waits = std::min(left, share(waits * kRestart, facts.span));
  const bool never_ahead = facts.kernels <= kFewKernels * waits;
  if (worst && by_waits >= kWorthIt && (never_ahead || by_waits >= left / 2)) {
    out.push_back({"sync",
                   str(worst->name, " waits for the device, ", worst->count, " times (", milliseconds(worst->time),
                       "); the device is idle for ", percent(left),
                       " of the time. Keep the value on the device, or read it every few steps."),
                   left});
    return;
  }
  if (left < kIdle) return;
  const double mean = static_cast<double>(facts.busy) / static_cast<double>(facts.kernels);
  if (mean < 30'000) {
    out.push_back({"launches",
                   str("The device is idle for ", percent(left), " of the time: its ", facts.kernels, " kernels take ",
                       milliseconds(facts.busy),
                       ", which is faster than they are launched. Capture the step as a graph "
                       "(rush::graphs::GraphedStep), or use a bigger batch."),
                   left});
  }
}

// ---- what a device does without need

void find_layout_copies(const Facts& facts, std::vector<Advice>& out) {
  int64_t time = 0;
  for (const auto& [name, each] : facts.on_device) {
    if (name.find("nchwToNhwc") != name.npos || name.find("nhwcToNchw") != name.npos) time += each.time;
  }
  if (share(time, facts.span) < kWorthIt) return;
  out.push_back({"layout",
                 str("Convolutions copy their tensors between layouts for ", milliseconds(time),
                     ": give the net and its input the memory format rush::MemoryFormat::ChannelsLast."),
                 share(time, facts.span)});
}

void find_pageable_copies(const Facts& facts, std::vector<Advice>& out) {
  if (share(facts.pageable, facts.span) < kWorthIt) return;
  out.push_back({"pageable",
                 str("Copies from and to memory that is not pinned take ", milliseconds(facts.pageable),
                     ": pin it (Tensor::pin_memory, or the loader's pin_memory) and copy with non_blocking."),
                 share(facts.pageable, facts.span)});
}

void find_float32_products(const Facts& facts, std::vector<Advice>& out) {
  int64_t time = 0;
  for (const FactsOfCall& each : facts.calls) {
    if (each.dtype == static_cast<int8_t>(kFloat32) && is_product(each.name)) time += each.device;
  }
  if (share(time, facts.span) < 0.3) return;
  out.push_back({"float32",
                 str("Products and convolutions of 32-bit numbers take ", milliseconds(time), " (",
                     percent(share(time, facts.span)), "): run the forward pass under autocast with bfloat16."),
                 share(time, facts.span) / 2});
}

void find_attention_in_parts(const Facts& facts, std::vector<Advice>& out) {
  int64_t softmax = 0, products = 0;
  for (const FactsOfCall& each : facts.calls) {
    if (each.name.find("oftmax") != each.name.npos) softmax += each.device;
    if (each.name == "aten::bmm" || each.name == "BmmBackward") products += each.device;
  }
  if (share(softmax, facts.span) < kWorthIt || share(products, facts.span) < kWorthIt) return;
  out.push_back({"attention",
                 str("A softmax between products of batches takes ", milliseconds(softmax),
                     ": rush::scaled_dot_product_attention computes the three as one."),
                 share(softmax, facts.span)});
}

void find_small_kernels(const Facts& facts, std::vector<Advice>& out) {
  if (facts.busy == 0 || share(facts.small, facts.busy) < 0.5 || share(facts.busy, facts.span) < 0.5) return;
  out.push_back({"small kernels",
                 str("For ", percent(share(facts.small, facts.busy)),
                     " of its busy time the device runs kernels that leave half of its multiprocessors without work: a "
                     "bigger batch would cost little more."),
                 share(facts.small, facts.span) / 2});
}

}  // namespace

std::vector<Advice> advice_on(const Facts& facts) {
  std::vector<Advice> out;
  find_idle_causes(facts, out);
  find_layout_copies(facts, out);
  find_pageable_copies(facts, out);
  find_float32_products(facts, out);
  find_attention_in_parts(facts, out);
  find_small_kernels(facts, out);
  std::ranges::stable_sort(out, std::greater(), &Advice::gain);
  return out;
}

std::string to_text(const std::vector<Advice>& advice) {
  if (advice.empty()) return "Nothing that is often done wrong on a GPU was seen.\n";
  std::string text;
  for (const Advice& each : advice) text += str("- up to ", percent(each.gain), ": ", each.text, "\n");
  return text;
}

}  // namespace rush::profiler
