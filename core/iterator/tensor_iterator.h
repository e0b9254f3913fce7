// TensorIterator: prepares element-wise loops over tensors: broadcasts, promotes, allocates the output, coalesces.
#pragma once
#include <array>

#include "core/tensor.h"
#include "core/threads/parallel.h"

namespace rush {

/// How the dtypes of inputs decide what is computed and what comes out.
enum class Promotion {
  None,     // inputs as they are; the output has the first input's dtype
  Common,   // inputs in their common dtype, which is the output's
  Float,    // likewise, but integers and bool become the default floating type
  Compare,  // inputs in their common dtype, the output is bool
};

/// The dtype that a set of tensors promotes to: tensors with dimensions decide first, then 0-dimensional ones, then
/// numbers; a lower rank counts only when its category (bool < integer < float < complex) is higher. torch.result_type.
ScalarType result_type(TensorList tensors);
inline ScalarType result_type(const Tensor& a, const Tensor& b) { return result_type({a, b}); }
ScalarType result_type(const Tensor& tensor, const Scalar& number);

/// The shape that two shapes broadcast to. Throws ValueError naming `op` and both.
DimVector broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op);

// Note [How an element-wise loop is prepared]
// The iterator makes a loop over raw pointers from operands of any shape, dtype and strides. It broadcasts the shapes,
// casts inputs to the dtype of the computation, allocates an output whose dimensions have the order of the inputs'
// strides, sorts the dimensions by stride, and coalesces neighbours that are contiguous with each other. Usually one
// dimension remains: a contiguous loop. Strides are in bytes, dimension 0 is the innermost, operand 0 is the output.
class TensorIterator {
 public:
  static constexpr int kMaxOperands = 5;

  /// The output, or an input.
  struct Operand {
    Tensor tensor;  // what the loop reads or writes
    char* data = nullptr;
    DimVector strides;  // bytes
    ScalarType dtype = kFloat32;
    bool borrowed = false;  // the caller owns `tensor` and keeps it alive

    Operand() = default;
    Operand(Operand&& other) = delete;
    ~Operand() {
      if (borrowed) tensor.unborrow();
    }
    void own(Tensor replacement) {  // in place of the present tensor
      if (borrowed) tensor.unborrow();
      borrowed = false;
      tensor = std::move(replacement);
    }
  };

  /// Input tensors: owned by the iterator, or, given as pointers, borrowed from a caller that outlives it.
  class Inputs {
   public:
    Inputs(const Tensor& one) : owned_(one) {}
    Inputs(TensorList list) : owned_(list) {}
    template <size_t N>
    Inputs(const Tensor (&array)[N]) : owned_(array) {}
    Inputs(std::initializer_list<const Tensor*> pointers) : borrowed_(pointers) {}
    size_t size() const { return owned_.size() + borrowed_.size(); }  // how many there are
    bool are_borrowed() const { return !borrowed_.empty(); }          // whether they were given as pointers
    const Tensor& operator[](size_t i) const { return borrowed_.empty() ? owned_[i] : *borrowed_[i]; }  // not checked

   private:
    TensorList owned_;
    ArrayRef<const Tensor*> borrowed_;
  };

  /// out = f(inputs...). `op` names the operator in errors. An undefined `out` is allocated; a defined one (in place)
  /// must have the broadcast shape and a dtype that the result can be cast to. Throws ValueError and TypeError.
  TensorIterator(const char* op, const Tensor& out, const Inputs& inputs, Promotion promotion,
                 std::optional<ScalarType> output_dtype = std::nullopt);
  ~TensorIterator() {
    for (int i = 0; i < count_; ++i) operands_[static_cast<size_t>(i)].~Operand();
  }
  TensorIterator(const TensorIterator&) = delete;
  TensorIterator& operator=(const TensorIterator&) = delete;
  static TensorIterator pointwise(const char* op, const Tensor& out, const Inputs& inputs, Promotion promotion,
                                  std::optional<ScalarType> output_dtype = std::nullopt) {
    return TensorIterator(op, out, inputs, promotion, output_dtype);
  }
  /// out = f(): fills `out`.
  static TensorIterator nullary(const char* op, const Tensor& out);

  const Tensor& output() const { return operands_[0].tensor; }  // what the loop writes
  /// The same, given away: the iterator is not used again.
  Tensor take_output() { return std::move(operands_[0].tensor); }
  /// The caller's output, after casting back what was computed in another dtype. Call it when the kernel is done.
  Tensor& finish();

  const char* op() const { return op_; }                                             // the operator's name
  DeviceType device_type() const { return device_type_; }                            // that the loop runs on
  int ntensors() const { return count_; }                                            // the output and the inputs
  const Operand& operand(int i) const { return operands_[static_cast<size_t>(i)]; }  // not checked; 0 is the output
  ScalarType dtype(int i = 0) const { return operand(i).dtype; }                     // as the loop sees it
  /// The dtype of the inputs; of the output when there are none.
  ScalarType common_dtype() const { return operand(count_ > 1 ? 1 : 0).dtype; }
  int64_t numel() const { return numel_; }                     // of the broadcast shape
  int dim() const { return static_cast<int>(shape_.size()); }  // of the coalesced shape
  IntArrayRef shape() const { return shape_; }                 // coalesced, dimension 0 innermost
  /// Whether a single loop covers all, each operand at its element's stride or 0.
  bool is_flat() const { return shape_.size() <= 1; }

  /// Puts a tensor of the same strides, somewhere else, in an operand's place. See Note [Falling back to the CPU].
  void move_operand(int i, Tensor tensor, char* data) {
    Operand& operand = operands_[static_cast<size_t>(i)];
    operand.own(std::move(tensor));
    operand.data = data;
  }
  void set_device_type(DeviceType type) { device_type_ = type; }  // that the loop runs on
  /// Makes it a loop over rows of n elements: where each operand's first lies, and its strides in bytes from element to
  /// element and from row to row.
  void set_rows(char* const* data, const int64_t (*strides)[2], int64_t n, int64_t rows) {
    shape_.resize(rows == 1 ? 1 : 2);
    shape_.back() = rows;
    shape_[0] = n;
    numel_ = n * rows;
    for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
      operands_[i].data = data[i];
      operands_[i].strides.resize(shape_.size());
      for (size_t d = 0; d < shape_.size(); ++d) operands_[i].strides[d] = strides[i][d];
    }
  }

  /// Calls loop(char** data, const int64_t* strides, int64_t n) for every run of the innermost dimension, split over
  /// threads when there is much to do. `data` and `strides` have an entry for each operand.
  template <class Loop>
  void for_each(const Loop& loop, int64_t grain = kGrain) const {
    for_each_run([](const void* context, char** data, const int64_t* strides,
                    int64_t n) { (*static_cast<const Loop*>(context))(data, strides, n); },
                 &loop, grain);
  }

 private:
  // Delegated to, so that the destructor runs when preparing the operands throws.
  explicit TensorIterator(const char* op) : op_(op) {}
  void find_device();
  bool set_dtypes(Promotion promotion, std::optional<ScalarType> output_dtype);  // whether it cast an operand
  void broadcast_shape();
  bool set_up_flat(Promotion promotion, std::optional<ScalarType> output_dtype);
  void set_strides();
  void sort_dimensions();
  void allocate_output();
  void coalesce();
  void resolve_overlap();

  // A loop without its type, so that the walk over the runs is compiled once. It leaves `data` as it is.
  using LoopFn = void (*)(const void* context, char** data, const int64_t* strides, int64_t n);
  void for_each_run(LoopFn loop, const void* context, int64_t grain) const;
  // The part [begin, end) of the elements, in the iterator's order, on this thread.
  void run_range(LoopFn loop, const void* context, int64_t begin, int64_t end) const;

  const char* op_ = "";
  DeviceType device_type_ = DeviceType::CPU;
  int count_ = 0;
  int64_t numel_ = 0;
  ScalarType output_dtype_ = kFloat32;
  Tensor original_;  // the caller's output, when the loop writes a temporary of another dtype
  DimVector shape_;  // the loop's, innermost first once sorted
  DimVector order_;  // loop dimension i is the tensors' dimension order_[i]
  // Only the first count_ are ever constructed.
  union {
    std::array<Operand, kMaxOperands> operands_;
  };
};

}  // namespace rush
