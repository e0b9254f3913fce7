#include "examples/mnist/digit_sections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/error/error.h"
#include "core/io/png.h"
#include "examples/mnist/synthetic_digits.h"

namespace examples {
namespace {

constexpr size_t kGridDigits = 120;
constexpr size_t kWorstMistakes = 24;

void check(const ReadDigits& digits) {
  const size_t count = digits.labels.size();
  RUSH_CHECK_VALUE(count > 0, "digit_sections: the test set is empty");
  RUSH_CHECK_VALUE(digits.predicted.size() == count && digits.confidence.size() == count &&
                       digits.pixels.size() == count * kDigitPixels,
                   "digit_sections: ", count, " labels, but ", digits.predicted.size(), " predictions, ",
                   digits.confidence.size(), " confidences and ", digits.pixels.size(), " pixels");
  for (const std::vector<int64_t>* list : {&digits.labels, &digits.predicted}) {
    for (int64_t digit : *list) RUSH_CHECK_VALUE(0 <= digit && digit <= 9, "digit_sections: ", digit, " is no digit");
  }
}

std::string image(const ReadDigits& digits, size_t i) {
  const std::span pixels = std::span(digits.pixels).subspan(i * kDigitPixels, kDigitPixels);
  return "<img alt=\"" + std::to_string(digits.labels[i]) + "\" width=\"28\" height=\"28\" src=\"" +
         data_uri("image/png", rush::io::encode_png(kDigitSize, kDigitSize, 1, pixels)) + "\">";
}

bool correct(const ReadDigits& digits, size_t i) { return digits.labels[i] == digits.predicted[i]; }

// "7", or for a mistake "~9~ 7": the answer struck out, then the right digit.
std::string answer(const ReadDigits& digits, size_t i) {
  const std::string label = "<b>" + std::to_string(digits.labels[i]) + "</b>";
  return correct(digits, i) ? label : "<s>" + std::to_string(digits.predicted[i]) + "</s> " + label;
}

std::string digit_grid(const ReadDigits& digits, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += correct(digits, i) ? "<figure>" : "<figure class=\"wrong\">";
    out += image(digits, i) + "<figcaption>" + answer(digits, i) + "</figcaption></figure>\n";
  }
  return out;
}

// NaN, of a net that diverged, counts as no confidence: comparisons with it would not be an order.
float confidence(const ReadDigits& digits, size_t i) {
  return std::isnan(digits.confidence[i]) ? 0.f : digits.confidence[i];
}

std::vector<size_t> mistakes_by_confidence(const ReadDigits& digits) {
  std::vector<size_t> wrong;
  for (size_t i = 0; i < digits.labels.size(); ++i) {
    if (!correct(digits, i)) wrong.push_back(i);
  }
  std::stable_sort(wrong.begin(), wrong.end(),
                   [&](size_t a, size_t b) { return confidence(digits, a) > confidence(digits, b); });
  return wrong;
}

std::string mistake_cards(const ReadDigits& digits, std::span<const size_t> mistakes) {
  std::string out;
  for (size_t i : mistakes) {
    const std::string sure = percent(confidence(digits, i), 1);
    out += "<figure class=\"card\">" + image(digits, i) + "<figcaption>" + answer(digits, i) + " &nbsp;" + sure +
           "<div class=\"bar\"><i style=\"width:" + sure + "\"></i></div>no. " + std::to_string(i) +
           "</figcaption></figure>\n";
  }
  return out;
}

// Shares of each row; the diagonal in one colour, mistakes in another and stronger, or nobody would see them.
std::string confusion_table(const ReadDigits& digits) {
  std::array<std::array<int64_t, 10>, 10> counts{};
  for (size_t i = 0; i < digits.labels.size(); ++i) {
    ++counts[static_cast<size_t>(digits.labels[i])][static_cast<size_t>(digits.predicted[i])];
  }
  std::string out = "<tr><th></th>";
  for (int digit = 0; digit < 10; ++digit) out += "<th scope=\"col\">" + std::to_string(digit) + "</th>";
  out += "<th scope=\"col\">right</th></tr>\n";
  for (size_t row = 0; row < 10; ++row) {
    const double total = static_cast<double>(std::accumulate(counts[row].begin(), counts[row].end(), int64_t{0}));
    out += "<tr><th scope=\"row\">" + std::to_string(row) + "</th>";
    for (size_t column = 0; column < 10; ++column) {
      const int64_t count = counts[row][column];
      const double share = total > 0 ? static_cast<double>(count) / total : 0;
      const double tone = row == column ? .55 * share : std::min(.75, 4 * std::sqrt(share));
      out += "<td style=\"--tone:var(" + std::string(row == column ? "--second" : "--wrong") +
             ");--share:" + percent(tone, 0) + "\">" + (count > 0 ? std::to_string(count) : "") + "</td>";
    }
    out += "<th>" + (total > 0 ? percent(static_cast<double>(counts[row][row]) / total, 1) : "") + "</th></tr>\n";
  }
  return out;
}

std::string mistakes_text(size_t shown, size_t all) {
  if (all == 0) return "There are none.";
  return rush::str(
      shown == all ? "All " : "The first ", shown, " of ", all,
      ", most confident first: the answer, struck out; the right digit; how sure the net was of its answer.");
}

}  // namespace

std::vector<Report::Section> digit_sections(const ReadDigits& digits) {
  check(digits);
  const size_t grid_count = std::min(digits.labels.size(), kGridDigits);
  const std::vector<size_t> mistakes = mistakes_by_confidence(digits);
  const std::span worst = std::span(mistakes).first(std::min(mistakes.size(), kWorstMistakes));
  return {{"Test digits",
           rush::str("The first ", grid_count,
                     " images, each with the net's answer. A frame marks a mistake: the answer "
                     "is struck out, the right digit stands beside it."),
           "<div class=\"digits\">\n" + digit_grid(digits, grid_count) + "</div>\n"},
          {"The worst mistakes", mistakes_text(worst.size(), mistakes.size()),
           "<div class=\"mistakes\">\n" + mistake_cards(digits, worst) + "</div>\n"},
          {"What is taken for what", "Rows: the digit that was written. Columns: the digit that was read.",
           "<div class=\"card scroll\">\n<table>\n" + confusion_table(digits) + "</table>\n</div>\n"}};
}

}  // namespace examples
