// Pattern: a graph for inputs of any sizes, learned from two traces.
#pragma once
#include <optional>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Graphs for many sizes]
// The sizes of a batch are in many numbers of a graph: in sizes, in arguments of view and expand, in the factor of a
// mean. Nothing notes where each comes from, since a size is a plain int64_t to a program. Two traces tell: what is the
// same in both does not depend on the sizes, and what differs is looked for as c v, c v + d or c / v of a size v in
// which the inputs differed, or of a product of two such. A graph in which all numbers were found can be written down
// for other sizes without a trace. Two points say little of a curve; so the first graph that is written down is
// compared with a trace of the same sizes, and only then are others believed. Sizes that are 1 in a trace broadcast,
// and are left alone.
//
// The sizes of what a convolution with strides makes are none of these. Who only runs the calls of a graph, and asks
// for no sizes of what they make, can leave those unknown.
class Pattern {
 public:
  // A size that differs: what it was in both traces.
  struct Variable {
    int64_t a, b;
  };
  // number = scale * v^power * w^power + offset; w where there is one.
  struct Expression {
    size_t number;  // its place in the order of replace_numbers
    int v, w;       // variables; -1: none. Without v: an unknown size of what a call makes
    int power;      // 1 or -1
    double scale, offset;
  };
  enum class Unknown { Refused, LeftInTensors };

  Pattern(Graph graph, std::vector<Variable> variables, std::vector<Expression> expressions = {})
      : graph_(std::move(graph)), variables_(std::move(variables)), expressions_(std::move(expressions)) {}
  // Nothing when the traces differ in more than numbers, or a number in more than this Note says.
  static std::optional<Pattern> of(const Graph& a, const Graph& b, Unknown unknown = Unknown::Refused);

  // The graph for these inputs; nothing when they do not fit, as where two sizes that were the same differ, one that
  // differs is less than `least`, or an integer would be none. Unless sizes of what calls make may be wrong.
  std::optional<Graph> for_inputs(const std::vector<Tensor>& inputs, int64_t least = 2,
                                  Unknown unknown = Unknown::Refused) const;
  // Compares that with a trace of them. Sizes of what calls make that are others there become unknown; false when
  // anything else differs.
  bool check(const std::vector<Tensor>& inputs, const Graph& traced);
  bool has_unknown() const;
  // The graph with the place of its expression in the place of each number: -1 where the number is always the same.
  Graph places() const;

  const Graph& graph() const { return graph_; }                                // of the first trace
  const std::vector<Variable>& variables() const { return variables_; }        // by their numbers
  const std::vector<Expression>& expressions() const { return expressions_; }  // in the order of what they stand for

 private:
  // The graph with other numbers: what the function says of each as it is now and of the place of its expression, -1
  // where it has none.
  Graph with_numbers(const std::function<double(double now, int expression)>& number_of) const;
  std::optional<Expression> expression(size_t number, double a, double b) const;
  bool find_values(const std::vector<Tensor>& inputs, int64_t least, std::vector<int64_t>& values) const;

  Graph graph_;
  std::vector<Variable> variables_;
  std::vector<Expression> expressions_;
};

// Whether two arguments are the same, tensors apart. False for what cannot be compared.
bool is_same(const Value& a, const Value& b);
// Whether two graphs are the same, numbers and constants included.
bool is_same(const Graph& a, const Graph& b);

}  // namespace rush::compiler
