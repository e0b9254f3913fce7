#include "ATen/core/Formatting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <vector>

#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush::detail {

namespace {

// A tensor without dimensions: the fewest digits that read back as the same double, however the stream is set.
std::string shortest_text(double number) {
  const double magnitude = std::abs(number);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char text[32];  // up to 17 digits, the sign, the point, and "0.000" or an exponent
  const auto end =
      std::to_chars(text, std::end(text), number, plain ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(text, end.ptr);
}

// Sets how `out` writes the numbers of a tensor of float64: the factor that is printed once, and the width of a column.
struct LibtorchFormat {
  double scale = 1;
  int64_t width = 0;

  LibtorchFormat(std::ostream& out, const Tensor& values) {
    const double* first = values.data_ptr<double>();
    std::vector<double> finite;
    std::copy_if(first, first + values.numel(), std::back_inserter(finite), [](double x) { return std::isfinite(x); });
    const bool whole = std::all_of(finite.begin(), finite.end(), [](double x) { return x == std::ceil(x); });
    double least = 1, most = 1;
    if (!finite.empty()) {
      const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
      least = digits(*std::min_element(finite.begin(), finite.end(), smaller));
      most = digits(*std::max_element(finite.begin(), finite.end(), smaller));
    }
    out << std::setprecision(4);
    if (whole && most <= 9) {
      width = static_cast<int64_t>(most) + 1;
      out << std::defaultfloat << std::setprecision(6);
    } else if (whole || most - least > 4) {
      width = !whole && (std::abs(most) > 99 || std::abs(least) > 99) ? 12 : 11;
      out << std::scientific;
    } else {
      if (most > 5 || most < 0) scale = std::pow(10, most - 1);
      width = scale != 1 || most == 0 ? 7 : static_cast<int64_t>(most) + 6;
      out << std::fixed;
    }
  }

 private:
  // Before the decimal point.
  static double digits(double x) { return x == 0 ? 1 : std::floor(std::log10(std::abs(x))) + 1; }
};

void print_libtorch_scale(std::ostream& out, double scale) {
  std::ostringstream text;  // with the stream's usual settings
  text << scale << " *\n";
  out << text.str();
}

// Of a matrix, in so many columns a line as fit. The first row is not indented.
void print_libtorch_matrix(std::ostream& out, const Tensor& matrix, int64_t indent, int64_t line) {
  const LibtorchFormat format(out, matrix);
  const std::string margin(static_cast<size_t>(indent), ' ');
  const int64_t rows = matrix.size(0), columns = matrix.size(1),
                fitting = std::max<int64_t>(1, (line - indent) / (format.width + 1));
  for (int64_t first = 0; first < columns; first += fitting) {
    const int64_t last = std::min(first + fitting, columns) - 1;
    if (fitting < columns) {
      if (first != 0) out << '\n';
      out << "Columns " << first + 1 << " to " << last + 1 << margin;
    }
    if (format.scale != 1) {
      print_libtorch_scale(out, format.scale);
      out << margin;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const double* values = matrix.data_ptr<double>() + row * columns;
      for (int64_t column = first; column <= last; ++column) {
        out << std::setw(static_cast<int>(format.width)) << values[column] / format.scale
            << (column == last ? '\n' : ' ');
      }
      if (row + 1 < rows) out << margin << (format.scale != 1 ? " " : "");
    }
  }
}

}  // namespace

static std::string libtorch_text(const Tensor& tensor, int64_t line) {
  if (!tensor.defined()) return "[ Tensor (undefined) ]";
  if (tensor.is_complex() || tensor.layout() != kStrided || tensor.is_meta()) return python_text(tensor);
  std::ostringstream out;
  const Tensor values = tensor.detach().cpu().to(kFloat64).contiguous();
  if (values.dim() == 0) {
    out << shortest_text(*values.data_ptr<double>()) << '\n';
  } else if (values.dim() == 1 && values.numel() > 0) {
    const LibtorchFormat format(out, values);
    if (format.scale != 1) print_libtorch_scale(out, format.scale);
    for (int64_t i = 0; i < values.numel(); ++i) {
      out << std::setw(static_cast<int>(format.width)) << values.data_ptr<double>()[i] / format.scale << '\n';
    }
  } else if (values.numel() > 0) {
    // The matrices of the last two dimensions, the first of the others counting fastest.
    const int64_t outer = values.dim() - 2;
    std::vector<int64_t> index(static_cast<size_t>(outer), 0);
    const int64_t matrices = values.numel() / (values.size(-1) * values.size(-2));
    for (int64_t m = 0; m < matrices; ++m) {
      Tensor matrix = values;
      if (outer > 0) {
        out << (m == 0 ? "(" : "\n(");
        for (const int64_t i : index) {
          matrix = matrix.select(0, i);
          out << i + 1 << ',';
        }
        out << ".,.) = \n";
      }
      print_libtorch_matrix(out, matrix, outer > 0 ? 1 : 0, line);
      for (size_t d = 0; d < index.size() && ++index[d] == values.size(static_cast<int64_t>(d)); ++d) index[d] = 0;
    }
  }
  out << "[ " << tensor.toString() << '{';
  for (int64_t d = 0; d < tensor.dim(); ++d) out << (d > 0 ? "," : "") << tensor.size(d);
  out << "} ]";
  return out.str();
}

std::string libtorch_text(const Tensor& tensor) { return libtorch_text(tensor, 80); }

}  // namespace rush::detail

namespace rush {

std::ostream& print(std::ostream& stream, const Tensor& tensor, int64_t linesize) {
  return stream << detail::libtorch_text(tensor, linesize);
}

void print(const Tensor& tensor, int64_t linesize) { print(std::cout, tensor, linesize); }

}  // namespace rush
