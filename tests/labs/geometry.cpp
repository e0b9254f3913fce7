// Lab 1: the functions of core/geometry.h, on tensors of a few elements. What a view has to show is found element by
// element, from the position in the tensor that it is a view of.
#include "core/geometry.h"

#include "tests/labs/exercise.h"
#include "tests/labs/positions.h"

namespace rush::labs {
namespace {

using detail::Geometry;

// ---- positions and elements ----

int64_t element_at(const Geometry& geometry, IntArrayRef position) {
  int64_t element = geometry.offset;
  for (size_t d = 0; d < position.size(); ++d) element += position[d] * geometry.strides[d];
  return element;
}

// The elements of the storage that a geometry shows, in row-major order.
std::vector<int64_t> elements_of(const Geometry& geometry) {
  std::vector<int64_t> elements;
  for_each_position(geometry.sizes, [&](IntArrayRef position) { elements.push_back(element_at(geometry, position)); });
  return elements;
}

std::string show(const Geometry& geometry) {
  return str("sizes ", geometry.sizes, ", strides ", geometry.strides, ", offset ", geometry.offset);
}

// What a view has to show: its sizes, and for each position the position in the tensor that it is a view of.
struct Expected {
  DimVector sizes;
  std::function<DimVector(IntArrayRef)> source;
};

std::string fault_of_view(const Geometry& from, const Geometry& view, const Expected& expected) {
  if (!(view.sizes == expected.sizes)) return str("its sizes are ", view.sizes, " and have to be ", expected.sizes);
  if (view.strides.size() != view.sizes.size()) {
    return str("it has ", view.strides.size(), " strides for ", view.sizes.size(), " dimensions");
  }
  std::string fault;
  for_each_position(view.sizes, [&](IntArrayRef position) {
    const int64_t shown = element_at(view, position), right = element_at(from, expected.source(position));
    if (!fault.empty() || shown == right) return;
    fault = str("first wrong element: ", position, " of the view shows element ", shown,
                " of the storage and has to show ", right, "; the view has ", show(view));
  });
  return fault;
}

// ---- contiguous_strides and is_contiguous ----

// The stride of a dimension is how many elements one step in it passes: all positions of the dimensions behind it.
int64_t elements_behind(IntArrayRef sizes, size_t dim) {
  int64_t count = 1;
  for (size_t d = dim + 1; d < sizes.size(); ++d) count *= sizes[d] == 0 ? 1 : sizes[d];
  return count;
}

std::string fault_of_strides(const DimVector& sizes, const DimVector& strides) {
  if (strides.size() != sizes.size()) return str("it gives ", strides.size(), " strides for ", sizes.size(), " sizes");
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t right = elements_behind(sizes, d);
    if (strides[d] == right) continue;
    return str("first wrong element: strides[", d, "] is ", strides[d], " and has to be ", right, "; it gives ",
               strides);
  }
  return {};
}

Exercise contiguous_strides_exercise() {
  Subject<DimVector, DimVector> subject;
  subject.function = "rush::contiguous_strides";
  subject.inputs = {{2, 3, 4}, {5}, {}, {2, 1, 3}, {4, 2, 0, 3}};
  subject.learners = [](const DimVector& sizes) { return contiguous_strides(sizes); };
  subject.describe = [](const DimVector& sizes) { return str("contiguous_strides(", sizes, ")"); };
  subject.same = [](const DimVector& a, const DimVector& b) { return a == b; };
  subject.fault = fault_of_strides;
  subject.mistakes = {
      {"column-major strides: the first dimension moves fastest, and it has to be the last",
       [](const DimVector& sizes) {
         DimVector strides(sizes.size(), 1);
         for (size_t d = 1; d < sizes.size(); ++d) strides[d] = strides[d - 1] * std::max<int64_t>(sizes[d - 1], 1);
         return strides;
       }},
      {"a stride includes the dimension's own size: it has to be the product of the sizes behind it",
       [](const DimVector& sizes) {
         DimVector strides(sizes.size(), 1);
         for (size_t d = 0; d < sizes.size(); ++d)
           strides[d] = elements_behind(sizes, d) * std::max<int64_t>(sizes[d], 1);
         return strides;
       }},
      {"a stride is the next size alone: it has to be the product of all the sizes behind it",
       [](const DimVector& sizes) {
         DimVector strides(sizes.size(), 1);
         for (size_t d = 0; d + 1 < sizes.size(); ++d) strides[d] = std::max<int64_t>(sizes[d + 1], 1);
         return strides;
       }},
      {"a size of 0 makes strides of 0: it has to count as 1",
       [](const DimVector& sizes) {
         DimVector strides(sizes.size(), 1);
         for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
         return strides;
       }},
  };
  return exercise(std::move(subject));
}

std::string fault_of_contiguous(const Geometry& geometry, const bool& answer) {
  const std::vector<int64_t> elements = elements_of(geometry);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] == static_cast<int64_t>(i)) continue;
    if (!answer) return {};
    return str("first wrong element: number ", i, " in row-major order is element ", elements[i],
               " of the storage, and it says true");
  }
  return answer ? "" : "all elements lie one after another in row-major order, and it says false";
}

Exercise is_contiguous_exercise() {
  Subject<Geometry, bool> subject;
  subject.function = "rush::is_contiguous";
  subject.inputs = {{{2, 3}, {3, 1}},       {{2, 3}, {1, 2}},  {{2, 3}, {4, 1}}, {{2, 3}, {6, 2}},
                    {{2, 1, 3}, {3, 7, 1}}, {{1, 3}, {99, 1}}, {{}, {}},         {{2, 0, 3}, {1, 5, 9}}};
  subject.learners = [](const Geometry& g) { return is_contiguous(g.sizes, g.strides); };
  subject.describe = [](const Geometry& g) { return str("is_contiguous(", g.sizes, ", ", g.strides, ")"); };
  subject.same = std::equal_to<>();
  subject.fault = fault_of_contiguous;
  subject.mistakes = {
      {"the stride of a dimension of size 1 is compared: no step is ever taken in it, so it may be anything",
       [](const Geometry& g) {
         const bool empty = std::find(g.sizes.begin(), g.sizes.end(), 0) != g.sizes.end();
         return empty || g.strides == contiguous_strides(g.sizes);
       }},
      {"a tensor without elements is not contiguous: it has no element in a wrong place",
       [](const Geometry& g) {
         int64_t expected = 1;
         for (size_t d = g.sizes.size(); d-- > 0;) {
           if (g.sizes[d] != 1 && g.strides[d] != expected) return false;
           expected *= g.sizes[d];
         }
         return true;
       }},
      {"only the last stride is looked at",
       [](const Geometry& g) { return g.sizes.empty() || g.sizes.back() == 1 || g.strides.back() == 1; }},
  };
  return exercise(std::move(subject));
}

// ---- views ----

struct ViewCall {
  Geometry from;
  DimVector arguments;
};

using ViewModel = std::function<Geometry(const ViewCall&)>;

Subject<ViewCall, Geometry> view_subject(const char* name, std::vector<ViewCall> inputs,
                                         std::function<void(Geometry&, IntArrayRef)> learners,
                                         std::function<Expected(const ViewCall&)> expected) {
  Subject<ViewCall, Geometry> subject;
  subject.function = str("rush::detail::Geometry::", name);
  subject.inputs = std::move(inputs);
  subject.learners = [learners](const ViewCall& call) {
    Geometry geometry = call.from;
    learners(geometry, call.arguments);
    return geometry;
  };
  subject.describe = [name](const ViewCall& call) { return str(name, call.arguments, " of ", show(call.from)); };
  subject.same = [](const Geometry& a, const Geometry& b) { return show(a) == show(b); };
  subject.fault = [expected](const ViewCall& call, const Geometry& view) {
    return fault_of_view(call.from, view, expected(call));
  };
  return subject;
}

// Contiguous; part of a larger tensor; transposed; with dimensions of size 1 and 0.
const Geometry kRows{{2, 3, 4}, {12, 4, 1}, 0}, kPart{{2, 3}, {8, 2}, 5}, kTurned{{3, 2}, {1, 3}, 0},
    kOnes{{1, 3, 1}, {3, 1, 1}, 2}, kEmpty{{0, 3}, {3, 1}, 0};

Exercise transpose_exercise() {
  auto subject = view_subject(
      "transpose", {{kRows, {0, 2}}, {kPart, {0, 1}}, {kPart, {1, 1}}, {kTurned, {1, 0}}, {kEmpty, {0, 1}}},
      [](Geometry& g, IntArrayRef dims) { g.transpose(dims[0], dims[1]); },
      [](const ViewCall& call) {
        const auto swapped = [dims = call.arguments](IntArrayRef values) {
          DimVector result(values);
          std::swap(result[dims[0]], result[dims[1]]);
          return result;
        };
        return Expected{swapped(call.from.sizes), swapped};
      });
  subject.mistakes = {
      {"the sizes are swapped and the strides are not: the view shows the elements in their old order",
       [](const ViewCall& call) {
         Geometry g = call.from;
         std::swap(g.sizes[call.arguments[0]], g.sizes[call.arguments[1]]);
         return g;
       }},
      {"the strides are swapped and the sizes are not",
       [](const ViewCall& call) {
         Geometry g = call.from;
         std::swap(g.strides[call.arguments[0]], g.strides[call.arguments[1]]);
         return g;
       }},
  };
  return exercise(std::move(subject));
}

Exercise permute_exercise() {
  auto subject = view_subject(
      "permute", {{kRows, {2, 0, 1}}, {kRows, {0, 2, 1}}, {kPart, {1, 0}}, {kPart, {0, 1}}, {kOnes, {1, 2, 0}}},
      [](Geometry& g, IntArrayRef order) { g.permute(order); },
      [](const ViewCall& call) {
        Expected expected{call.from.sizes, [order = call.arguments](IntArrayRef position) {
                            DimVector source(position);
                            for (size_t d = 0; d < order.size(); ++d) source[order[d]] = position[d];
                            return source;
                          }};
        for (size_t d = 0; d < call.arguments.size(); ++d) expected.sizes[d] = call.from.sizes[call.arguments[d]];
        return expected;
      });
  subject.mistakes = {
      {"the inverse permutation: dimension d of the view has to be dimension order[d] of the tensor, not the other way",
       [](const ViewCall& call) {
         Geometry g = call.from;
         for (size_t d = 0; d < call.arguments.size(); ++d) {
           g.sizes[call.arguments[d]] = call.from.sizes[d];
           g.strides[call.arguments[d]] = call.from.strides[d];
         }
         return g;
       }},
      {"the sizes are permuted and the strides are not",
       [](const ViewCall& call) {
         Geometry g = call.from;
         for (size_t d = 0; d < call.arguments.size(); ++d) g.sizes[d] = call.from.sizes[call.arguments[d]];
         return g;
       }},
      {"values are read that the loop has overwritten: take copies of the old sizes and strides first",
       [](const ViewCall& call) {
         Geometry g = call.from;
         for (size_t d = 0; d < call.arguments.size(); ++d) {
           g.sizes[d] = g.sizes[call.arguments[d]];
           g.strides[d] = g.strides[call.arguments[d]];
         }
         return g;
       }},
  };
  return exercise(std::move(subject));
}

Geometry without(const Geometry& from, int64_t dim) {
  Geometry g = from;
  g.sizes.erase(g.sizes.begin() + dim);
  g.strides.erase(g.strides.begin() + dim);
  return g;
}

Exercise select_exercise() {
  auto subject = view_subject(
      "select", {{kRows, {0, 1}}, {kRows, {1, 2}}, {kRows, {2, 3}}, {kPart, {1, 2}}, {kPart, {0, 0}}, {kOnes, {1, 2}}},
      [](Geometry& g, IntArrayRef arguments) { g.select(arguments[0], arguments[1]); },
      [](const ViewCall& call) {
        const int64_t dim = call.arguments[0], index = call.arguments[1];
        return Expected{without(call.from, dim).sizes, [=](IntArrayRef position) {
                          DimVector source(position);
                          source.insert(source.begin() + dim, index);
                          return source;
                        }};
      });
  subject.mistakes = {
      {"the offset is set and not added to: the tensor may itself begin behind the storage's first element",
       [](const ViewCall& call) {
         Geometry g = without(call.from, call.arguments[0]);
         g.offset = call.arguments[1] * call.from.strides[call.arguments[0]];
         return g;
       }},
      {"the offset moves by the index: it has to move by the index times the stride of the dimension",
       [](const ViewCall& call) {
         Geometry g = without(call.from, call.arguments[0]);
         g.offset += call.arguments[1];
         return g;
       }},
      {"the stride is read after the dimension was dropped: it is then that of the next one",
       [](const ViewCall& call) {
         Geometry g = without(call.from, call.arguments[0]);
         const auto next = static_cast<size_t>(call.arguments[0]) + 1;
         const DimVector& strides = call.from.strides;
         g.offset += call.arguments[1] * strides[next < strides.size() ? next : next - 1];
         return g;
       }},
      {"the offset does not move: every index shows the same elements",
       [](const ViewCall& call) { return without(call.from, call.arguments[0]); }},
      {"the dimension stays, with size 1: select drops it",
       [](const ViewCall& call) {
         Geometry g = call.from;
         g.sizes[call.arguments[0]] = 1;
         g.offset += call.arguments[1] * g.strides[call.arguments[0]];
         return g;
       }},
  };
  return exercise(std::move(subject));
}

// A slice whose length and stride are given.
Geometry sliced(const ViewCall& call, int64_t length, int64_t stride) {
  Geometry g = call.from;
  const int64_t dim = call.arguments[0];
  g.offset += call.arguments[1] * g.strides[dim];
  g.sizes[dim] = length;
  g.strides[dim] = stride;
  return g;
}

int64_t reach(const ViewCall& call) { return call.arguments[2] - call.arguments[1]; }
int64_t stride_of(const ViewCall& call) { return call.from.strides[call.arguments[0]]; }
int64_t length_of(const ViewCall& call) {
  int64_t length = 0;
  for (int64_t i = call.arguments[1]; i < call.arguments[2]; i += call.arguments[3]) ++length;
  return length;
}

Exercise slice_exercise() {
  auto subject = view_subject(
      "slice",
      {{kRows, {1, 1, 3, 1}},
       {kRows, {2, 0, 4, 2}},
       {kRows, {2, 1, 4, 2}},
       {kPart, {1, 0, 3, 2}},
       {kPart, {0, 1, 1, 1}},
       {kTurned, {0, 0, 3, 5}}},
      [](Geometry& g, IntArrayRef a) { g.slice(a[0], a[1], a[2], a[3]); },
      [](const ViewCall& call) {
        Expected expected{call.from.sizes, [a = call.arguments](IntArrayRef position) {
                            DimVector source(position);
                            source[a[0]] = a[1] + position[a[0]] * a[3];
                            return source;
                          }};
        expected.sizes[call.arguments[0]] = length_of(call);
        return expected;
      });
  subject.mistakes = {
      {"the stride is not multiplied by the step: the view shows neighbours where it has to pass over elements",
       [](const ViewCall& call) { return sliced(call, length_of(call), stride_of(call)); }},
      {"the length is rounded down: a step that does not divide it leaves one more element at the end",
       [](const ViewCall& call) {
         return sliced(call, reach(call) / call.arguments[3], stride_of(call) * call.arguments[3]);
       }},
      {"the length ignores the step",
       [](const ViewCall& call) { return sliced(call, reach(call), stride_of(call) * call.arguments[3]); }},
      {"the length is one too large: `end` is the first index that does not belong to the slice",
       [](const ViewCall& call) {
         return sliced(call, reach(call) / call.arguments[3] + 1, stride_of(call) * call.arguments[3]);
       }},
      {"the offset does not move to the start",
       [](const ViewCall& call) {
         Geometry g = sliced(call, length_of(call), stride_of(call) * call.arguments[3]);
         g.offset = call.from.offset;
         return g;
       }},
      {"the start is multiplied by the step as well: the offset has to move by start times the old stride",
       [](const ViewCall& call) {
         Geometry g = sliced(call, length_of(call), stride_of(call) * call.arguments[3]);
         g.offset = call.from.offset + call.arguments[1] * g.strides[call.arguments[0]];
         return g;
       }},
  };
  return exercise(std::move(subject));
}

// Expanded with the stride that stride_in(dim) gives for dimension `dim` of the tensor.
template <class StrideIn>
Geometry expanded(const ViewCall& call, const StrideIn& stride_in) {
  Geometry g{call.arguments, DimVector(call.arguments.size(), 0), call.from.offset};
  const size_t lead = call.arguments.size() - call.from.sizes.size();
  for (size_t d = 0; d < call.from.sizes.size(); ++d) g.strides[lead + d] = stride_in(d);
  return g;
}

Exercise expand_exercise() {
  auto subject = view_subject(
      "expand",
      {{kOnes, {4, 3, 2}},
       {{{3}, {2}, 1}, {2, 3}},
       {{{2, 1}, {1, 1}, 0}, {2, 3}},
       {kRows, {2, 3, 4}},
       {{{1}, {1}, 3}, {2, 2}},
       {{{}, {}, 6}, {3}}},
      [](Geometry& g, IntArrayRef target) { g.expand(target); },
      [](const ViewCall& call) {
        return Expected{call.arguments, [sizes = call.from.sizes](IntArrayRef position) {
                          const size_t lead = position.size() - sizes.size();
                          DimVector source(sizes.size(), 0);
                          for (size_t d = 0; d < sizes.size(); ++d) source[d] = sizes[d] == 1 ? 0 : position[lead + d];
                          return source;
                        }};
      });
  subject.mistakes = {
      {"a dimension of size 1 keeps its stride: it needs stride 0, so that every step shows the same element",
       [](const ViewCall& call) { return expanded(call, [&](size_t d) { return call.from.strides[d]; }); }},
      {"new dimensions come last: they have to come first, and the sizes are compared from the last dimension on",
       [](const ViewCall& call) {
         Geometry g{call.arguments, DimVector(call.arguments.size(), 0), call.from.offset};
         for (size_t d = 0; d < call.from.sizes.size(); ++d) {
           g.strides[d] = call.from.sizes[d] == 1 && g.sizes[d] != 1 ? 0 : call.from.strides[d];
         }
         return g;
       }},
      {"all strides are 0: only dimensions of size 1 repeat their element",
       [](const ViewCall& call) { return expanded(call, [](size_t) { return int64_t{0}; }); }},
      {"the strides are those of new memory: a view makes none",
       [](const ViewCall& call) {
         return Geometry{call.arguments, contiguous_strides(call.arguments), call.from.offset};
       }},
  };
  return exercise(std::move(subject));
}

// ---- view_strides ----

struct ShapeCall {
  DimVector sizes, strides, shape;
};
using Strides = std::optional<DimVector>;

// By trying: the strides that the shape's unit steps have, if they lead to the right element from every position.
Strides tried_strides(const ShapeCall& call) {
  const std::vector<int64_t> elements = elements_of({call.sizes, call.strides, 0});
  if (elements.empty()) return contiguous_strides(call.shape);
  Geometry view{call.shape, DimVector(call.shape.size(), 0), 0};
  for (size_t d = 0; d < call.shape.size(); ++d) {
    const auto behind = static_cast<size_t>(elements_behind(call.shape, d));
    if (call.shape[d] > 1) view.strides[d] = elements[behind];
  }
  if (elements_of(view) != elements) return std::nullopt;
  return view.strides;
}

// Where no element is, or one without dimensions, every stride shows it; which ones come is promised.
std::string fault_of_few(const ShapeCall& call, const DimVector& strides) {
  const bool empty = elements_of({call.sizes, call.strides, 0}).empty();
  if (!empty && !call.sizes.empty()) return {};
  for (size_t d = 0; d < strides.size(); ++d) {
    const int64_t right = empty ? elements_behind(call.shape, d) : 1;
    if (strides[d] == right) continue;
    return str(
        "stride ", d, " is ", strides[d], " and has to be ", right, ": ",
        empty ? "those of a tensor without elements are row-major" : "those of a tensor without dimensions are 1",
        "; it gives strides ", strides);
  }
  return {};
}

// No step is taken in a dimension of size 1, but its stride is promised: it goes on from the dimension behind it.
std::string fault_of_ones(const ShapeCall& call, const DimVector& strides) {
  for (size_t d = strides.size(); d-- > 0 && !call.sizes.empty();) {
    const bool last = d + 1 == strides.size();
    const int64_t right = last ? call.strides.back() : strides[d + 1] * call.shape[d + 1];
    if (call.shape[d] != 1 || strides[d] == right) continue;
    return str("dimension ", d, ", of size 1, has stride ", strides[d], " and has to have ", right, ": ",
               last ? "the tensor's last stride" : "stride times size of the dimension behind it",
               "; it gives strides ", strides);
  }
  return {};
}

std::string fault_of_view_strides(const ShapeCall& call, const Strides& answer) {
  if (!tried_strides(call)) {
    return answer ? str("it gives strides ", *answer, ", and no strides show these elements in this shape") : "";
  }
  if (!answer) return str("it gives nothing, and there are such strides");
  const std::vector<int64_t> elements = elements_of({call.sizes, call.strides, 0});
  if (answer->size() != call.shape.size()) return str("it gives ", answer->size(), " strides");
  const std::string fault = fault_of_few(call, *answer);
  if (!fault.empty()) return fault;
  const std::vector<int64_t> shown = elements_of({call.shape, *answer, 0});
  const auto wrong = std::mismatch(elements.begin(), elements.end(), shown.begin());
  if (wrong.first == elements.end()) return fault_of_ones(call, *answer);
  return str("first wrong element: number ", wrong.first - elements.begin(), " in row-major order is element ",
             *wrong.second, " of the storage and has to be ", *wrong.first, "; it gives strides ", *answer);
}

Exercise view_strides_exercise() {
  Subject<ShapeCall, Strides> subject;
  subject.function = "rush::view_strides";
  subject.inputs = {{{2, 6}, {6, 1}, {4, 3}},         {{2, 3, 4}, {12, 4, 1}, {6, 4}},
                    {{2, 6}, {1, 2}, {12}},           {{3, 4}, {8, 2}, {12}},
                    {{3, 4}, {8, 1}, {3, 2, 2}},      {{2, 3, 4}, {24, 8, 2}, {24}},
                    {{2, 3, 4}, {24, 4, 1}, {2, 12}}, {{2, 3, 4}, {24, 4, 1}, {6, 4}},
                    {{1, 4}, {77, 1}, {2, 2}},        {{2, 1, 3}, {3, 50, 1}, {6}},
                    {{2, 6}, {6, 1}, {1, 2, 1, 6}},   {{2}, {6}, {2, 1}},
                    {{3, 4}, {8, 1}, {3, 1, 4}},      {{}, {}, {1, 1}},
                    {{0, 5}, {5, 1}, {3, 0}},         {{4, 0}, {9, 2}, {2, 0, 3}}};
  subject.learners = [](const ShapeCall& call) { return view_strides(call.sizes, call.strides, call.shape); };
  subject.describe = [](const ShapeCall& call) {
    return str("view_strides(", call.sizes, ", ", call.strides, ", ", call.shape, ")");
  };
  subject.same = [](const Strides& a, const Strides& b) { return a ? b && *a == *b : !b; };
  subject.fault = fault_of_view_strides;
  // Whether it refuses a call whose sizes have `size`, and is right in all others.
  const auto refuses = [](int64_t size) {
    return [size](const ShapeCall& call, const Strides& answer) {
      const bool concerned = std::find(call.sizes.begin(), call.sizes.end(), size) != call.sizes.end();
      return (concerned && !answer) || fault_of_view_strides(call, answer).empty();
    };
  };
  subject.mistakes = {
      {"the strides are those of new memory, whatever the tensor's own are: a view of a transposed tensor then shows "
       "the "
       "elements in the order of the storage",
       [](const ShapeCall& call) { return Strides(contiguous_strides(call.shape)); }},
      {"everything that is not contiguous is refused: groups of dimensions that are contiguous with each other are "
       "enough",
       [](const ShapeCall& call) {
         return is_contiguous(call.sizes, call.strides) ? Strides(contiguous_strides(call.shape)) : std::nullopt;
       }},
      {"groups are never joined: neighbours that are contiguous with each other can become one dimension",
       [](const ShapeCall& call) {
         if (call.sizes == call.shape) return Strides(call.strides);
         return Strides();
       }},
      {"a dimension of size 1 parts its neighbours by its stride: no step is ever taken in it, so it may be anything",
       nullptr, refuses(1)},
      {"a tensor without elements is refused: it can be seen in every shape without elements", nullptr, refuses(0)},
  };
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> geometry_exercises() {
  return {contiguous_strides_exercise(),
          is_contiguous_exercise(),
          transpose_exercise(),
          permute_exercise(),
          select_exercise(),
          slice_exercise(),
          expand_exercise(),
          view_strides_exercise()};
}

}  // namespace rush::labs
