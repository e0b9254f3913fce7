// Lab 2: core/iterator/loop.cpp. Of each output position it is asked which elements of the inputs belong to it; the
// answers are found from the positions alone.
#include <array>
#include <map>
#include <mutex>

#include "core/error/error.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/factories.h"
#include "core/threads/parallel.h"
#include "tests/labs/exercise.h"
#include "tests/labs/positions.h"

namespace rush::labs {
namespace {

// ---- broadcast_shapes ----

struct TwoShapes {
  DimVector a, b;
};
using Shape = std::optional<DimVector>;  // nothing where they do not broadcast

int64_t size_from_end(IntArrayRef sizes, size_t from_end) {
  return from_end <= sizes.size() ? sizes[sizes.size() - from_end] : 1;
}

// The sizes of both, paired from the last dimension on, and what `combine` makes of each pair: -1 where they do not
// fit.
template <class Combine>
Shape combined(const TwoShapes& shapes, const Combine& combine) {
  DimVector shape(std::max(shapes.a.size(), shapes.b.size()), 0);
  for (size_t from_end = 1; from_end <= shape.size(); ++from_end) {
    const int64_t size = combine(size_from_end(shapes.a, from_end), size_from_end(shapes.b, from_end));
    if (size < 0) return std::nullopt;
    shape[shape.size() - from_end] = size;
  }
  return shape;
}

int64_t broadcast_size(int64_t a, int64_t b) { return a == b || b == 1 ? a : a == 1 ? b : -1; }
Shape right_shape(const TwoShapes& shapes) { return combined(shapes, broadcast_size); }

std::string fault_of_shape(const TwoShapes& shapes, const Shape& got) {
  const Shape right = right_shape(shapes);
  if (!right) return got ? str("it gives ", *got, ", and has to throw a ValueError: these do not broadcast") : "";
  if (!got) return str("it throws a ValueError, and has to give ", *right);
  if (got->size() != right->size()) return str("it gives ", *got, ", and has to give ", *right);
  for (size_t d = 0; d < right->size(); ++d) {
    if ((*got)[d] == (*right)[d]) continue;
    return str("first wrong element: size ", d, " is ", (*got)[d], " and has to be ", (*right)[d], "; it gives ", *got);
  }
  return {};
}

DimVector reversed(const DimVector& sizes) {
  DimVector result;
  for (size_t d = sizes.size(); d-- > 0;) result.push_back(sizes[d]);
  return result;
}

Exercise broadcast_exercise() {
  Subject<TwoShapes, Shape> subject;
  subject.function = "rush::broadcast_shapes";
  subject.inputs = {{{2, 3}, {2, 3}}, {{2, 3}, {3}},    {{3}, {2, 3}}, {{3, 1}, {1, 4}}, {{2, 1, 4}, {3, 1}},
                    {{}, {2}},        {{2, 2}, {1, 2}}, {{1}, {0}},    {{2, 3}, {4}},    {{2, 3}, {2}}};
  subject.learners = [](const TwoShapes& shapes) {
    try {
      return Shape(broadcast_shapes(shapes.a, shapes.b, "lab"));
    } catch (const ValueError&) {
      return Shape();
    }
  };
  subject.describe = [](const TwoShapes& shapes) { return str("broadcast_shapes(", shapes.a, ", ", shapes.b, ")"); };
  subject.same = [](const Shape& a, const Shape& b) { return a ? b && *a == *b : !b; };
  subject.fault = fault_of_shape;
  subject.mistakes = {
      {"the shapes are compared from the first dimension on: they are aligned at the last one",
       [](const TwoShapes& shapes) {
         const Shape shape = right_shape({reversed(shapes.a), reversed(shapes.b)});
         return shape ? Shape(reversed(*shape)) : shape;
       }},
      {"sizes that do not fit are not refused",
       [](const TwoShapes& shapes) {
         const bool a_longer = shapes.a.size() >= shapes.b.size();
         return combined(shapes, [&](int64_t a, int64_t b) {
           const int64_t longer = a_longer ? a : b, shorter = a_longer ? b : a;
           return longer == 1 ? shorter : longer;
         });
       }},
      {"the larger size is taken: a size of 1 against one of 0 has to give 0",
       [](const TwoShapes& shapes) {
         return combined(shapes, [](int64_t a, int64_t b) { return broadcast_size(a, b) < 0 ? -1 : std::max(a, b); });
       }},
      {"a size of 1 in the longer shape does not broadcast: either shape may have it",
       [](const TwoShapes& shapes) {
         const bool a_longer = shapes.a.size() >= shapes.b.size();
         return combined(shapes, [&](int64_t a, int64_t b) {
           if (broadcast_size(a, b) < 0) return int64_t{-1};
           return a_longer ? a : b;
         });
       }},
  };
  return exercise(std::move(subject));
}

// ---- what a loop reads ----

constexpr int64_t kBytes = sizeof(double);

struct Operand {
  DimVector sizes, strides;
};
struct LoopCall {
  Operand a, b;
  int dims;  // of the loop, once neighbours are one
};

Tensor tensor_of(const Operand& operand) {
  static double numbers[4096];
  return from_blob(numbers, operand.sizes, operand.strides, TensorOptions(kFloat64));
}

// What a loop reads for one output position, in bytes from the inputs' first elements, and how often it comes there.
struct Reads {
  int64_t a = 0, b = 0, count = 0;
};
// By the number of the output position, row-major; and how many dimensions the loop has.
struct Loop {
  std::vector<Reads> reads;
  int dims = 0;
  int64_t outside = 0;  // writes that are no element of the output
};

// Numbers of the output's positions by their distance in bytes from its first element.
std::map<int64_t, size_t> numbers_of(const Tensor& out) {
  std::map<int64_t, size_t> numbers;
  for_each_position(out.sizes(), [&](IntArrayRef position) {
    int64_t offset = 0;
    for (size_t d = 0; d < position.size(); ++d) offset += position[d] * out.strides()[d] * kBytes;
    numbers.emplace(offset, numbers.size());
  });
  return numbers;
}

// Notes elements of a loop, given by their distances from each operand's first one.
class Notes {
 public:
  explicit Notes(const TensorIterator& it) : numbers_(numbers_of(it.output())) {
    loop_.reads.resize(numbers_.size());
    loop_.dims = it.dim();
  }
  void add(int64_t out, int64_t a, int64_t b) {
    const auto found = numbers_.find(out);
    if (found == numbers_.end()) {
      ++loop_.outside;
      return;
    }
    Reads& reads = loop_.reads[found->second];
    reads = {a, b, reads.count + 1};
  }
  Loop take() { return std::move(loop_); }

 private:
  std::map<int64_t, size_t> numbers_;
  Loop loop_;
};

// By the iterator's shape and strides alone.
Loop loop_by_strides(const LoopCall& call) {
  const Tensor a = tensor_of(call.a), b = tensor_of(call.b);
  const auto it = TensorIterator::pointwise("lab", Tensor(), {&a, &b}, Promotion::Common);
  Notes notes(it);
  for_each_position(it.shape(), [&](IntArrayRef position) {
    int64_t at[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {
      for (size_t d = 0; d < position.size(); ++d) at[i] += position[d] * it.operand(i).strides[d];
    }
    notes.add(at[0], at[1], at[2]);
  });
  return notes.take();
}

// By running it, on `threads` threads that take a few elements at a time.
Loop loop_by_running(const LoopCall& call, int threads) {
  const Tensor a = tensor_of(call.a), b = tensor_of(call.b);
  const auto it = TensorIterator::pointwise("lab", Tensor(), {&a, &b}, Promotion::Common);
  Notes notes(it);
  std::mutex mutex;
  const int before = get_num_threads();
  set_num_threads(threads);
  it.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        const std::lock_guard lock(mutex);
        for (int64_t k = 0; k < std::min(n, it.numel() + 1); ++k) {
          const auto at = [&](int i) { return data[i] + k * strides[i] - it.operand(i).data; };
          notes.add(at(0), at(1), at(2));
        }
      },
      threads == 1 ? it.numel() : 2);
  set_num_threads(before);
  return notes.take();
}

// The strides of an operand in the broadcast shape, in bytes.
DimVector right_strides(const Operand& operand, IntArrayRef shape) {
  DimVector strides(shape.size(), 0);
  const size_t lead = shape.size() - operand.sizes.size();
  for (size_t d = 0; d < operand.sizes.size(); ++d) {
    if (operand.sizes[d] != 1) strides[lead + d] = operand.strides[d] * kBytes;
  }
  return strides;
}

// The loop over a broadcast shape in which each operand has the strides that strides_of(operand, shape) gives.
template <class StridesOf>
Loop loop_with(const LoopCall& call, const StridesOf& strides_of) {
  const DimVector shape = *right_shape({call.a.sizes, call.b.sizes});
  const DimVector a = strides_of(call.a, shape), b = strides_of(call.b, shape);
  Loop loop;
  loop.dims = call.dims;
  for_each_position(shape, [&](IntArrayRef position) {
    Reads reads{0, 0, 1};
    for (size_t d = 0; d < position.size(); ++d) {
      reads.a += position[d] * a[d];
      reads.b += position[d] * b[d];
    }
    loop.reads.push_back(reads);
  });
  return loop;
}

std::string element(int64_t bytes) {
  return bytes % kBytes == 0 ? str("element ", bytes / kBytes) : str("byte ", bytes);
}

std::string fault_of_reads(const LoopCall& call, const Loop& loop) {
  const Loop right = loop_with(call, right_strides);
  const DimVector shape = *right_shape({call.a.sizes, call.b.sizes});
  std::string fault;
  size_t number = 0;
  for_each_position(shape, [&](IntArrayRef position) {
    const Reads &got = loop.reads[number], &expected = right.reads[number];
    ++number;
    if (!fault.empty()) return;
    const std::string at = str("first wrong element: ", position, " of the output ");
    if (got.count != 1) fault = str(at, "is computed ", got.count, " times, and has to be once");
    if (got.count == 1 && got.a != expected.a) {
      fault = str(at, "reads ", element(got.a), " of a and has to read ", element(expected.a));
    } else if (got.count == 1 && got.b != expected.b) {
      fault = str(at, "reads ", element(got.b), " of b and has to read ", element(expected.b));
    }
  });
  if (fault.empty() && loop.outside > 0) return str("it writes ", loop.outside, " elements outside of the output");
  return fault;
}

std::string describe(const LoopCall& call) {
  return str("a of sizes ", call.a.sizes, " and strides ", call.a.strides, " with b of sizes ", call.b.sizes,
             " and strides ", call.b.strides);
}

std::string show_reads(const Loop& loop) {
  std::string text;
  for (const Reads& reads : loop.reads) text += str(reads.a, " ", reads.b, " ", reads.count, "; ");
  return text;
}

Subject<LoopCall, Loop> loop_subject(const char* function, std::vector<LoopCall> inputs,
                                     std::function<Loop(const LoopCall&)> learners) {
  Subject<LoopCall, Loop> subject;
  subject.function = str("rush::TensorIterator::", function);
  subject.inputs = std::move(inputs);
  subject.learners = std::move(learners);
  subject.describe = describe;
  subject.same = [](const Loop& a, const Loop& b) { return show_reads(a) == show_reads(b); };
  subject.fault = fault_of_reads;
  return subject;
}

// ---- set_strides ----

const LoopCall kRowAndNumber{{{3}, {1}}, {{}, {}}, 1}, kColumnAndRow{{{3, 1}, {1, 1}}, {{1, 4}, {4, 1}}, 2},
    kBias{{{2, 3}, {3, 1}}, {{3}, {1}}, 2}, kTransposed{{{2, 3}, {1, 2}}, {{2, 3}, {3, 1}}, 2},
    kPart{{{2, 3}, {10, 2}}, {{2, 3}, {3, 1}}, 2}, kThree{{{2, 3, 4}, {24, 8, 1}}, {{3, 1}, {1, 1}}, 3};

// What coalesce may do wrong shows wherever a loop has several dimensions.
const char* const kOneOperandAsked =
    "only one operand is asked: dimensions may be merged only where they are contiguous in all operands";

bool one_operand_asked(const LoopCall& call, const Loop& loop) {
  return loop.dims == 1 && (call.dims == 1 || !fault_of_reads(call, loop).empty());
}

Exercise set_strides_exercise() {
  auto subject =
      loop_subject("set_strides", {kRowAndNumber, kColumnAndRow, kBias, kTransposed, kPart, kThree}, loop_by_strides);
  subject.mistakes = {
      {kOneOperandAsked, nullptr, one_operand_asked, "rush::TensorIterator::coalesce"},
      {"a dimension that is broadcast keeps its stride: it needs stride 0, so that the same element is read again",
       [](const LoopCall& call) {
         return loop_with(call, [](const Operand& operand, IntArrayRef shape) {
           DimVector strides(shape.size(), 0);
           const size_t lead = shape.size() - operand.sizes.size();
           for (size_t d = 0; d < operand.sizes.size(); ++d) strides[lead + d] = operand.strides[d] * kBytes;
           return strides;
         });
       }},
      {"the strides count elements: the loop adds them to pointers to bytes",
       [](const LoopCall& call) {
         return loop_with(call, [](const Operand& operand, IntArrayRef shape) {
           DimVector strides = right_strides(operand, shape);
           for (int64_t& stride : strides) stride /= kBytes;
           return strides;
         });
       }},
      {"an operand with fewer dimensions is aligned at the first one: it has to be aligned at the last",
       [](const LoopCall& call) {
         return loop_with(call, [](const Operand& operand, IntArrayRef shape) {
           DimVector strides(shape.size(), 0);
           for (size_t d = 0; d < operand.sizes.size(); ++d) {
             if (operand.sizes[d] != 1 || shape[d] == 1) strides[d] = operand.strides[d] * kBytes;
           }
           return strides;
         });
       }},
  };
  return exercise(std::move(subject));
}

// ---- coalesce ----

Exercise coalesce_exercise() {
  auto subject = loop_subject("coalesce",
                              {{{{2, 3}, {1, 2}}, {{2, 3}, {1, 2}}, 1},
                               {{{2, 3, 4}, {12, 4, 1}}, {{4}, {1}}, 2},
                               {{{2, 3, 4}, {12, 4, 1}}, {{}, {}}, 1},
                               {{{2, 3, 4}, {24, 8, 2}}, {{2, 3, 4}, {12, 4, 1}}, 1},
                               {{{4, 1}, {2, 1}}, {{4, 1}, {3, 1}}, 1},
                               kPart,
                               kTransposed,
                               kThree},
                              loop_by_strides);
  subject.fault = [](const LoopCall& call, const Loop& loop) {
    const std::string fault = fault_of_reads(call, loop);
    if (!fault.empty() || loop.dims == call.dims) return fault;
    return str("the loop has ", loop.dims, " dimensions, and has to have ", call.dims);
  };
  subject.mistakes = {
      {"nothing is merged: dimensions that are contiguous with each other in every operand are one loop", nullptr,
       [](const LoopCall& call, const Loop& loop) {
         return loop.dims == static_cast<int>(right_shape({call.a.sizes, call.b.sizes})->size()) &&
                fault_of_reads(call, loop).empty();
       }},
      {kOneOperandAsked, nullptr, one_operand_asked},
      {"a dimension of size 1 keeps its stride: merged with the next one, it has to take that one's", nullptr,
       [](const LoopCall& call, const Loop& loop) {
         const bool has_one = call.a.sizes.size() == 2 && call.a.sizes.back() == 1 && call.b.sizes.back() == 1;
         return loop.dims == call.dims && fault_of_reads(call, loop).empty() != has_one;
       }},
  };
  return exercise(std::move(subject));
}

// ---- run_range ----

int64_t visited(const Loop& loop) {
  return std::count_if(loop.reads.begin(), loop.reads.end(), [](const Reads& reads) { return reads.count > 0; });
}

Exercise walk_exercise() {
  auto subject = loop_subject("run_range",
                              {kRowAndNumber,
                               kColumnAndRow,
                               kBias,
                               kTransposed,
                               kPart,
                               kThree,
                               {{{3, 2, 2, 2}, {40, 16, 6, 1}}, {{2, 1, 2}, {3, 3, 1}}, 4}},
                              [](const LoopCall& call) { return loop_by_running(call, 1); });
  subject.mistakes = {
      {"only the first line is walked: the walk has to go on in the outer dimensions until `end`", nullptr,
       [](const LoopCall& call, const Loop& loop) {
         const bool all = visited(loop) == static_cast<int64_t>(loop.reads.size());
         return loop.outside == 0 && all == (call.dims == 1);
       }},
      {"an outer dimension that has come to its end is not taken back to its beginning before the next one steps on",
       nullptr, [](const LoopCall& call, const Loop& loop) { return (loop.outside > 0) == (call.dims > 2); }},
  };
  return exercise(std::move(subject));
}

Exercise parts_exercise() {
  auto subject = loop_subject(
      "run_range", {{{{7, 5}, {12, 2}}, {{7, 5}, {5, 1}}, 2}, {{{4, 3, 5}, {60, 16, 2}}, {{3, 1}, {1, 1}}, 3}},
      [](const LoopCall& call) { return loop_by_running(call, 3); });
  subject.describe = [](const LoopCall& call) { return str(describe(call), ", in parts on three threads"); };
  subject.mistakes = {
      {"every part begins at the first element: it has to begin at `begin`, which may lie in the middle of a line",
       nullptr, [](const LoopCall&, const Loop& loop) { return loop.reads[0].count > 1; }},
  };
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> loop_exercises() {
  return {broadcast_exercise(), set_strides_exercise(), coalesce_exercise(), walk_exercise(), parts_exercise()};
}

}  // namespace rush::labs
