#include "core/print/stream_output.h"

#include <doctest/doctest.h>

#include <sstream>

#include "rushlight.h"

using namespace rush;

template <class T>
static std::string printed(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

// A logger, which takes any value by a template, as those of many programs do.
struct Line {
  std::ostringstream stream;
  template <class T>
  Line& operator<<(const T& value) {
    stream << value;
    return *this;
  }
};

TEST_CASE("a class that takes any value by its own operator<< takes a tensor and what describes it") {
  Line line;
  line << zeros({2}) << ' ' << zeros({2, 3}).sizes() << kFloat << zeros({1}).dtype() << Device(kCPU) << Scalar(2)
       << Half(0.5f) << nn::Conv2dOptions(2, 3, 4).kernel_size() << nn::Linear(2, 3);
  CHECK(line.stream.str() == to_string(zeros({2})) + " [2, 3]Floatfloatcpu20.5[4, 4]" + printed(nn::Linear(2, 3)));
}

TEST_CASE("what describes a tensor prints as in libtorch") {
  const Tensor x = zeros({2, 3}, kDouble);
  CHECK(printed(x.sizes()) == "[2, 3]");
  CHECK(printed(IntArrayRef()) == "[]");
  CHECK(printed(x.scalar_type()) == "Double");
  CHECK(printed(x.dtype()) == "double");
  CHECK(printed(zeros({1}, kInt64).dtype()) == "long int");
  CHECK(printed(zeros({1}, kUInt64).dtype()) == "long unsigned int");
  CHECK(printed(TypeMeta::Make<BFloat16>()) == "c10::BFloat16");
  CHECK(printed(kBFloat16) == "BFloat16");
  CHECK(printed(x.device()) == "cpu");
  CHECK(printed(Device(kCUDA, 1)) == "cuda:1");
  CHECK(printed(kMeta) == "meta");
  CHECK(printed(Scalar(2.5)) == "2.5");
  CHECK(printed(x.layout()) == "Strided");
  CHECK(printed(MemoryFormat::ChannelsLast) == "ChannelsLast");
  CHECK(printed(x.options().requires_grad(true)) ==
        "TensorOptions(dtype=double, device=cpu, layout=Strided, requires_grad=true, pinned_memory=false (default), "
        "memory_format=(nullopt))");
  CHECK(x.toString() == "CPUDoubleType");
  CHECK(Tensor().toString() == "UndefinedType");
}
