#include "backends/cuda/dnn/rnn.h"

#include <cudnn.h>

#include "backends/cuda/dnn/handle.h"
#include "backends/cuda/dnn/tensor_descriptor.h"
#include "backends/cuda/memory/mark_written.h"
#include "core/device/context.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

template <class D, auto create, auto destroy>
class Descriptor {
 public:
  Descriptor() { RUSH_CUDA_CHECK(create(&descriptor_)); }
  ~Descriptor() { destroy(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  operator D() const { return descriptor_; }

 private:
  D descriptor_ = nullptr;
};
using RnnDescriptor = Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using SequenceDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using PlainDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

int as_int(int64_t n) {
  RUSH_CHECK_VALUE(n <= 0x7fffffff, "cudnn_rnn: a size of ", n, " is too large for cuDNN");
  return static_cast<int>(n);
}

cudnnMathType_t math_type(ScalarType dtype) {
  if (dtype == kFloat16 || dtype == kBFloat16) return CUDNN_TENSOR_OP_MATH;
  return dtype == kFloat32 && !globalContext().allowTF32CuDNN() ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

// Whether cuDNN may take its algorithm for few units, which keeps the weights in registers and takes all steps in one
// launch, where the standard one launches several kernels a step. Its tanh is off by some 1e-6, less than TF32 is: it
// is not for those who want the precision of float32 (though PyTorch takes it for them, too).
bool may_round(ScalarType dtype) {
  return dtype == kFloat16 || (dtype == kFloat32 && globalContext().allowTF32CuDNN());
}

// The descriptors that all calls on one problem share.
class RnnCall {
 public:
  // `rounds`: whether the algorithm for few units may be taken.
  RnnCall(const RecurrentLayers& layers, const RecurrentInput& input, bool rounds)
      : layers_(layers), dtype_(input.data.scalar_type()), device_(input.data.device()), batch_(input.batch()) {
    for_few_units_ = rounds && suits_few_units(!input.batch_sizes.empty()) &&
                     describe_layers(CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H) == CUDNN_STATUS_SUCCESS;
    if (!for_few_units_) RUSH_CUDA_CHECK(describe_layers(CUDNN_RNN_ALGO_STANDARD));
    describe_sequences(input);
  }

  size_t weight_bytes() const {
    size_t bytes = 0;
    RUSH_CUDA_CHECK(cudnnGetRNNWeightSpaceSize(dnn_.handle(), rnn_, &bytes));
    return bytes;
  }

  struct TemporaryBytes {
    size_t workspace = 0, reserve = 0;
  };
  TemporaryBytes temporary_bytes(cudnnForwardMode_t mode) const {
    TemporaryBytes bytes;
    RUSH_CUDA_CHECK(cudnnGetRNNTempSpaceSizes(dnn_.handle(), rnn_, mode, x_, &bytes.workspace, &bytes.reserve));
    if (for_few_units_) ++bytes.reserve;  // cuDNN's sizes are even: this tells the backward pass who wrote it
    return bytes;
  }

  // cuDNN keeps all weights in one buffer: the views of it that stand for them, in their order.
  std::vector<Tensor> views_of(const Tensor& buffer, TensorList weights) const {
    std::vector<Tensor> views;
    const int64_t gates = layers_.gates();
    for (int64_t cell = 0; cell < layers_.layers * layers_.directions(); ++cell) {
      // The matrices of all gates of a kind are contiguous, and so are their biases: the first one's address serves
      // all.
      const Address by_input = address_of(buffer, cell, 0), by_hidden = address_of(buffer, cell, gates);
      views.push_back(view_at(buffer, by_input.matrix, weights[views.size()]));
      views.push_back(view_at(buffer, by_hidden.matrix, weights[views.size()]));
      if (layers_.biases) {
        views.push_back(view_at(buffer, by_input.bias, weights[views.size()]));
        views.push_back(view_at(buffer, by_hidden.bias, weights[views.size()]));
      }
      if (layers_.projection > 0) {
        views.push_back(view_at(buffer, address_of(buffer, cell, 8).matrix, weights[views.size()]));
      }
    }
    return views;
  }

  Tensor zeros(IntArrayRef sizes) const { return detail::empty_contiguous(sizes, dtype_, device_).zero_(); }
  Tensor weight_buffer() const {
    return zeros(static_cast<int64_t>(weight_bytes()) / static_cast<int64_t>(element_size(dtype_)));
  }
  TensorDescriptor state(int64_t size) const {
    const int cells = as_int(layers_.layers * layers_.directions()), n = as_int(batch_), s = as_int(size);
    return {dnn_type(dtype_), {cells, n, s}, {n * s, s, 1}};
  }
  TensorDescriptor h() const { return state(layers_.output_size()); }
  TensorDescriptor c() const { return state(layers_.hidden_size); }

  cudnnHandle_t handle() const { return dnn_.handle(); }
  cudnnRNNDescriptor_t rnn() const { return rnn_; }
  cudnnRNNDataDescriptor_t x() const { return x_; }
  cudnnRNNDataDescriptor_t y() const { return y_; }

 private:
  struct Address {
    const void *matrix, *bias;
  };

  // PyTorch's limits. cuDNN itself refuses some problems within them, such as layers without biases.
  bool suits_few_units(bool packed) const {
    const int64_t most_units = layers_.gates() > 1 ? 128 : 256;
    return !packed && layers_.projection == 0 && layers_.hidden_size <= most_units;
  }

  cudnnStatus_t describe_layers(cudnnRNNAlgo_t algorithm) {
    RUSH_CUDA_CHECK(cudnnSetDropoutDescriptor(dropout_, dnn_.handle(), 0, nullptr, 0, 0));
    const cudnnDataType_t type = dnn_type(dtype_);
    const bool in_float = dtype_ == kFloat32 && algorithm != CUDNN_RNN_ALGO_STANDARD;
    return cudnnSetRNNDescriptor_v8(rnn_, algorithm, static_cast<cudnnRNNMode_t>(layers_.mode),
                                    layers_.biases ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                                    layers_.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                                    CUDNN_LINEAR_INPUT, type, dtype_ == kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                                    in_float ? CUDNN_FMA_MATH : math_type(dtype_), as_int(layers_.input_size),
                                    as_int(layers_.hidden_size), as_int(layers_.output_size()), as_int(layers_.layers),
                                    dropout_, CUDNN_RNN_PADDED_IO_DISABLED);
  }

  void describe_sequences(const RecurrentInput& input) {
    const IntArrayRef sizes = input.batch_sizes;
    const bool packed = !sizes.empty();
    const int64_t steps = packed ? static_cast<int64_t>(sizes.size()) : input.data.sizes()[0];
    // The length of sequence n is the number of steps whose batch is larger than n.
    std::vector<int> lengths(static_cast<size_t>(batch_), packed ? 0 : as_int(steps));
    for (const int64_t running : sizes) {
      for (int64_t n = 0; n < running; ++n) ++lengths[static_cast<size_t>(n)];
    }
    const auto layout = packed ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
    double padding = 0;  // of any dtype: all bits are zero
    const auto describe = [&](cudnnRNNDataDescriptor_t descriptor, int64_t width) {
      RUSH_CUDA_CHECK(cudnnSetRNNDataDescriptor(descriptor, dnn_type(dtype_), layout, as_int(steps), as_int(batch_),
                                                as_int(width), lengths.data(), &padding));
    };
    describe(x_, layers_.input_size);
    describe(y_, layers_.directions() * layers_.output_size());
  }

  Address address_of(const Tensor& buffer, int64_t cell, int64_t linear) const {
    const PlainDescriptor matrix, bias;
    void *matrix_at = nullptr, *bias_at = nullptr;
    RUSH_CUDA_CHECK(cudnnGetRNNWeightParams(dnn_.handle(), rnn_, as_int(cell), static_cast<size_t>(buffer.nbytes()),
                                            start_of(buffer), as_int(linear), matrix, &matrix_at, bias, &bias_at));
    return {matrix_at, bias_at};
  }

  // An address that cuDNN counts from: in an estimate of memory there is none.
  static void* start_of(const Tensor& buffer) {
    constexpr uintptr_t kAnywhere = 1 << 20;
    return buffer.device().is_meta() ? reinterpret_cast<void*>(kAnywhere) : buffer.data_ptr();
  }

  static Tensor view_at(const Tensor& buffer, const void* address, const Tensor& weight) {
    const int64_t bytes = static_cast<const char*>(address) - static_cast<const char*>(start_of(buffer));
    return detail::make_view(buffer, weight.sizes(), contiguous_strides(weight.sizes()),
                             bytes / static_cast<int64_t>(buffer.element_size()));
  }

  const RecurrentLayers& layers_;
  ScalarType dtype_;
  Device device_;
  int64_t batch_;
  bool for_few_units_ = false;
  Dnn dnn_;
  DropoutDescriptor dropout_;
  RnnDescriptor rnn_;
  SequenceDescriptor x_, y_;
};

void* data_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

Tensor row_major(const Tensor& t) { return t.defined() ? native::contiguous(t) : t; }

RecurrentInput row_major(const RecurrentInput& input) {
  return {row_major(input.data), input.batch_sizes, row_major(input.h), row_major(input.c)};
}

Tensor bytes_on(Device device, size_t n) { return detail::empty_contiguous(static_cast<int64_t>(n), kUInt8, device); }

}  // namespace

void dnn_is_acceptable(bool& acceptable, ScalarType dtype) {
  acceptable = dnn_enabled_for(dtype) && dtype != kBFloat16;
}

void dnn_rnn(RecurrentOutput& out, const RecurrentLayers& layers, const RecurrentInput& given, TensorList weights,
             bool train) {
  bool acceptable = false;
  dnn_is_acceptable(acceptable, given.data.scalar_type());
  RUSH_CHECK_NOT_IMPLEMENTED(acceptable, "_cudnn_rnn: cuDNN is switched off, or does not compute with ",
                             given.data.scalar_type());
  const RecurrentInput in = row_major(given);
  const RnnCall call(layers, in, may_round(in.data.scalar_type()));
  out.weights = call.weight_buffer();
  std::vector<Tensor> views = call.views_of(out.weights, weights);
  for (size_t i = 0; i < views.size(); ++i) native::copy_(views[i], weights[i], false);

  const cudnnForwardMode_t mode = train ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  const auto [workspace_bytes, reserve_bytes] = call.temporary_bytes(mode);
  const Tensor workspace = bytes_on(in.data.device(), workspace_bytes);
  mark_written(workspace);
  if (train) out.reserve = bytes_on(in.data.device(), reserve_bytes);
  if (in.data.device().is_meta()) return;
  RUSH_CUDA_CHECK(cudnnRNNForward(call.handle(), call.rnn(), mode, nullptr, call.x(), in.data.data_ptr(), call.y(),
                                  out.data.data_ptr(), call.h(), in.h.data_ptr(), out.h.data_ptr(), call.c(),
                                  data_or_null(in.c), data_or_null(out.c), call.weight_bytes(), out.weights.data_ptr(),
                                  workspace_bytes, workspace.data_ptr(), reserve_bytes, data_or_null(out.reserve)));
  for (const Tensor& each : {out.data, out.h, out.c, out.reserve}) mark_written(each);
}

void dnn_rnn_backward(RecurrentGradients& grads, const RecurrentLayers& layers, const RecurrentInput& given,
                      TensorList weights, const RecurrentOutput& output, const RecurrentOutput& grad,
                      bool weights_too) {
  const RecurrentInput in = row_major(given);
  const RnnCall call(layers, in, output.reserve.nbytes() % 2 == 1);
  const size_t weight_bytes = call.weight_bytes();
  const auto [workspace_bytes, reserve_bytes] = call.temporary_bytes(CUDNN_FWD_MODE_TRAINING);
  RUSH_CHECK_VALUE(static_cast<size_t>(output.weights.nbytes()) >= weight_bytes &&
                       static_cast<size_t>(output.reserve.nbytes()) == reserve_bytes,
                   "_cudnn_rnn_backward: weight_buf and reserve are not those of this problem's forward pass: ",
                   output.weights.nbytes(), " and ", output.reserve.nbytes(), " bytes, expected ", weight_bytes,
                   " and ", reserve_bytes);
  const Tensor workspace = bytes_on(in.data.device(), workspace_bytes);
  mark_written(workspace);
  // cuDNN writes to it, but the graph may need it again.
  const Tensor reserve = native::clone_contiguous(output.reserve), weight_buf = row_major(output.weights);
  const Tensor y = row_major(output.data), dhy = row_major(grad.h), dcy = row_major(grad.c);
  const Tensor dy = grad.data.defined() ? row_major(grad.data) : call.zeros(y.sizes());
  const bool runs = !in.data.device().is_meta();
  if (runs) {
    RUSH_CUDA_CHECK(cudnnRNNBackwardData_v8(
        call.handle(), call.rnn(), nullptr, call.y(), y.data_ptr(), dy.data_ptr(), call.x(), grads.data.data_ptr(),
        call.h(), in.h.data_ptr(), data_or_null(dhy), grads.h.data_ptr(), call.c(), data_or_null(in.c),
        data_or_null(dcy), data_or_null(grads.c), weight_bytes, weight_buf.data_ptr(), workspace_bytes,
        workspace.data_ptr(), reserve_bytes, reserve.data_ptr()));
  }
  for (const Tensor& each : {grads.data, grads.h, grads.c}) mark_written(each);
  if (!weights_too) return;
  const Tensor weight_grads = call.weight_buffer();
  if (runs) {
    RUSH_CUDA_CHECK(cudnnRNNBackwardWeights_v8(call.handle(), call.rnn(), CUDNN_WGRAD_MODE_ADD, nullptr, call.x(),
                                               in.data.data_ptr(), call.h(), in.h.data_ptr(), call.y(), y.data_ptr(),
                                               weight_bytes, weight_grads.data_ptr(), workspace_bytes,
                                               workspace.data_ptr(), reserve_bytes, reserve.data_ptr()));
  }
  mark_written(weight_grads);
  grads.weights = call.views_of(weight_grads, weights);
}

}  // namespace rush::cuda
