// Lab 13: attention by tiles on the emulated grid. Right answers come from whole rows of scores in extended precision;
// a mistake is a loop over tiles that makes it.
#include "tests/labs/kernels/attention.h"

#include <cmath>
#include <numeric>

#include "tests/labs/kernels/attention_cases.h"
#include "tests/labs/kernels/kernel_exercise.h"

namespace rush::labs {
namespace {

// ---- numbers ----

// By long double, whose exponents are large enough for these numbers.
std::vector<double> logsumexp_of(const RowsCase& c, const std::vector<float>& in) {
  std::vector<double> out;
  for (int64_t row = 0; row < c.rows; ++row) {
    long double total = 0;
    for (int64_t i = 0; i < c.columns; ++i) {
      total += std::exp(static_cast<long double>(in[static_cast<size_t>(row * c.columns + i)]));
    }
    out.push_back(static_cast<double>(std::log(total)));
  }
  return out;
}

// log(sum(exp)) in float32, without the maximum.
std::vector<double> overflowing_logsumexp_of(const RowsCase& c, const std::vector<float>& in) {
  std::vector<double> out;
  for (int64_t row = 0; row < c.rows; ++row) {
    float total = 0;
    for (int64_t i = 0; i < c.columns; ++i) total += std::exp(in[static_cast<size_t>(row * c.columns + i)]);
    out.push_back(std::log(total));
  }
  return out;
}

// A call of attention: its sizes, q k^T and v.
struct Problem {
  AttentionSizes sizes;
  std::vector<double> products;  // (heads, queries, keys)
  std::vector<float> v;

  Problem(const KernelCall& call, const AttentionSizes& s) : sizes(s), v(call.inputs[2].values) {
    const std::vector<float>&q = call.inputs[0].values, &k = call.inputs[1].values;
    for (int64_t row = 0; row < s.heads * s.queries; ++row) {
      for (int64_t key = row / s.queries * s.keys; key < (row / s.queries + 1) * s.keys; ++key) {
        products.push_back(std::inner_product(&q[at(row)], &q[at(row)] + s.width, &k[at(key)], 0.0));
      }
    }
  }
  double product(int64_t head, int64_t query, int64_t key) const {
    return products[static_cast<size_t>((head * sizes.queries + query) * sizes.keys + key)];
  }
  const float* value(int64_t head, int64_t key) const { return &v[at(head * sizes.keys + key)]; }
  bool attends(int64_t query, int64_t key) const { return !sizes.causal || key <= query; }

 private:
  size_t at(int64_t row) const { return static_cast<size_t>(row * sizes.width); }
};

// row_of(head, query) of all rows of out.
template <class RowOf>
std::vector<double> all_rows(const Problem& p, const RowOf& row_of) {
  std::vector<double> out;
  for (int64_t head = 0; head < p.sizes.heads; ++head) {
    for (int64_t query = 0; query < p.sizes.queries; ++query) {
      const std::vector<double> row = row_of(head, query);
      out.insert(out.end(), row.begin(), row.end());
    }
  }
  return out;
}

std::vector<double> attention_of(const Problem& p) {
  return all_rows(p, [&](int64_t head, int64_t query) {
    const double scale = 1 / std::sqrt(static_cast<double>(p.sizes.width));
    long double total = 0;
    std::vector<long double> sums(static_cast<size_t>(p.sizes.width));
    for (int64_t key = 0; key < p.sizes.keys; ++key) {
      if (!p.attends(query, key)) continue;
      const long double weight = std::exp(static_cast<long double>(p.product(head, query, key) * scale));
      total += weight;
      for (size_t d = 0; d < sums.size(); ++d) sums[d] += weight * static_cast<long double>(p.value(head, key)[d]);
    }
    std::vector<double> row;
    for (long double sum : sums) row.push_back(static_cast<double>(sum / total));
    return row;
  });
}

// ---- mistakes ----

// A kernel by tiles of keys, for a tile of queries, with one thing wrong.
struct Mistaken {
  bool scales = true, masks = true, masks_tail = true, masks_before_softmax = true, sees_itself = true;
  bool subtracts_largest = true, keeps_largest = true, rescales_sum = true, rescales_out = true;
  int64_t keys = 32, queries = 64;  // of a tile

  bool hides(const Problem& p, int64_t query, int64_t key) const {
    if (key >= p.sizes.keys) return masks_tail;
    return masks && p.sizes.causal && (sees_itself ? key > query : key >= query);
  }
  // -infinity is what is hidden before softmax. A key beyond the end is a row of zeros.
  float score(const Problem& p, int64_t head, int64_t query, int64_t key) const {
    const bool exists = key < p.sizes.keys;
    if (hides(p, query, key) && (masks_before_softmax || !exists)) return -INFINITY;
    const double product = exists ? p.product(head, query, key) : 0;
    return static_cast<float>(scales ? product / std::sqrt(static_cast<double>(p.sizes.width)) : product);
  }
  std::vector<double> row(const Problem& p, int64_t head, int64_t query) const {
    const int64_t seen = p.sizes.causal ? std::min(p.sizes.keys, (query / queries + 1) * queries) : p.sizes.keys;
    float largest = -INFINITY;
    double total = 0;
    std::vector<double> sums(static_cast<size_t>(p.sizes.width));
    for (int64_t first = 0; first < seen; first += keys) {
      std::vector<float> scores;
      for (int64_t key = first; key < first + keys; ++key) scores.push_back(score(p, head, query, key));
      float next = *std::max_element(scores.begin(), scores.end());
      if (keeps_largest) next = std::max(next, largest);
      if (!subtracts_largest) next = 0;
      const float factor = subtracts_largest ? std::exp(largest - next) : 1;
      largest = next;
      if (rescales_sum) total *= factor;
      for (double& sum : sums) sum *= rescales_out ? factor : 1;
      for (int64_t key = first; key < first + keys; ++key) {
        const float weight = std::exp(scores[static_cast<size_t>(key - first)] - largest);
        total += weight;
        if (key >= p.sizes.keys || (!masks_before_softmax && hides(p, query, key))) continue;
        for (size_t d = 0; d < sums.size(); ++d) sums[d] += weight * static_cast<double>(p.value(head, key)[d]);
      }
    }
    for (double& sum : sums) sum /= total;
    return sums;
  }
};

struct NamedMistake {
  const char* name;
  bool Mistaken::*missing;
};
constexpr NamedMistake kMistakes[] = {
    {"scores are not divided by the square root of the width: 1 / sqrt(width) belongs to q k^T", &Mistaken::scales},
    {"the accumulator is not rescaled: when the largest score grows, what was summed before takes the factor exp(old - "
     "new), "
     "as the sum of exp does",
     &Mistaken::rescales_out},
    {"the sum of exp is not rescaled: when the largest score grows, what was summed before takes the factor exp(old - "
     "new), "
     "as the accumulator does",
     &Mistaken::rescales_sum},
    {"the largest score of a tile takes the place of the running one: it has to be the larger of both, or exp(old - "
     "new) "
     "overflows",
     &Mistaken::keeps_largest},
    {"the largest score is not subtracted: exp of a large number is infinite", &Mistaken::subtracts_largest},
    {"the tail of keys is not masked: a key beyond the end has a score of 0, which counts in the sum, unless it is "
     "made "
     "-infinity",
     &Mistaken::masks_tail},
    {"the mask comes after the softmax: hidden keys count in the sum, unless their scores are -infinity before",
     &Mistaken::masks_before_softmax},
    {"the causal mask is missing: query i attends to keys 0 to i", &Mistaken::masks},
    {"the causal mask hides the query's own key: query i attends to keys 0 to i", &Mistaken::sees_itself},
};

std::vector<ModelOfMistake> mistakes_of(const Problem& p) {
  std::vector<ModelOfMistake> models;
  for (const NamedMistake& mistake : kMistakes) {
    for (int64_t keys : {16, 32, 64, 128}) {
      for (int64_t queries : {16, 32, 64, 128, 1 << 20}) {  // the last one reads all keys under a causal mask, too
        Mistaken mistaken;
        mistaken.*mistake.missing = false;
        const bool hides_all = mistaken.masks && mistaken.masks_before_softmax;  // that queries of the tile do not see
        if ((!p.sizes.causal || hides_all) && queries > 16) continue;
        mistaken.keys = keys;
        mistaken.queries = queries;
        models.push_back(
            {mistake.name,
             [=] { return all_rows(p, [&](int64_t head, int64_t query) { return mistaken.row(p, head, query); }); }});
      }
    }
  }
  return models;
}

// ---- traffic ----

int64_t bytes_read() {
  int64_t sectors = 0;
  for (const grid::Traffic& traffic : grid::traffic()) {
    if (!traffic.shared && traffic.use == grid::Use::Load) sectors += traffic.sectors;
  }
  return 32 * sectors;
}

std::optional<Finding> read_too_often(int64_t few, const char* mistake) {
  const int64_t bytes = bytes_read();
  if (10 * bytes <= 11 * few) return std::nullopt;
  return Finding{
      str("the numbers are right; but the warps read ", bytes, " bytes of global memory, where ", few, " are enough"),
      mistake};
}

std::optional<Finding> slow_access(const RowsCase& c, const grid::Traffic& traffic) {
  if (!c.whole) return std::nullopt;
  const auto finding = uncoalesced(traffic);
  if (finding) return finding;
  return read_too_often(4 * c.rows * c.columns,
                        "the row is read more than once: a running maximum and a sum relative to it need one pass");
}

std::optional<Finding> slow_access(const AttentionCase& c, const grid::Traffic& traffic) {
  constexpr int64_t kQueries = 16;  // of a tile, at least
  if (!c.whole) return std::nullopt;
  auto finding = uncoalesced(traffic);
  if (!finding) finding = conflicting(traffic);
  if (finding) return finding;
  const AttentionSizes& s = c.sizes;
  const int64_t tiles = (s.queries + kQueries - 1) / kQueries;
  return read_too_often(
      4 * s.heads * s.width * (s.queries + 2 * s.keys * tiles),
      "keys and values are read for each query: a block reads a tile of them once, into shared memory, "
      "for all of its queries");
}

// ---- calls ----

CheckedCall checked(const RowsCase& c) {
  const KernelCall call = call_of(c);
  const std::vector<float> in = call.inputs[0].values;
  CheckedCall result{call,
                     "out",
                     [=] { return logsumexp_of(c, in); },
                     {},
                     [c](const grid::Traffic& traffic) { return slow_access(c, traffic); }};
  const auto all = [c](double value) { return std::vector<double>(static_cast<size_t>(c.rows), value); };
  if (c.largest > 88) {
    result.mistakes = {{"the row's maximum is not subtracted: exp of a large number is infinite",
                        [=] { return overflowing_logsumexp_of(c, in); }}};
  } else if (c.shift < -88) {
    result.mistakes = {{kMaximumFromZero, [=] { return all(-INFINITY); }}};
  } else if (c.columns < 32) {
    result.mistakes = {{"-infinity minus -infinity is NaN: lanes that have no numbers meet each other, too",
                        [=] { return all(NAN); }}};
  }
  return result;
}

CheckedCall checked(const AttentionCase& c) {
  const KernelCall call = call_of(c);
  const Problem p(call, c.sizes);
  return {call, "out", [=] { return attention_of(p); }, mistakes_of(p),
          [c](const grid::Traffic& traffic) { return slow_access(c, traffic); }};
}

Finding check_huge_rows() {
  constexpr int64_t kRows = 5'000'000, kColumns = 1000, kAll = kRows * kColumns;
  const grid::Buffer<float> in("in", kAll), out("out", kRows);
  in[kAll - 2] = 2;
  in[kAll - 1] = 3;
  return check_huge(HugeCall{[&] { logsumexp(in.data(), out.data(), kRows, kColumns); },
                             out,
                             {kRows - 1},
                             {std::log(std::exp(2.0) + std::exp(3.0) + kColumns - 2)}});
}

// All scores are 0, so that out is the mean of v: of the last head's only the last key has numbers.
Finding check_huge_attention() {
  const AttentionSizes s = {65535, 1100, 40, 64, false};
  const grid::Buffer<float> q("q", s.heads * s.queries * s.width), out("out", s.heads * s.queries * s.width);
  const grid::Buffer<float> k("k", s.heads * s.keys * s.width), v("v", s.heads * s.keys * s.width);
  v[s.heads * s.keys * s.width - 2] = 80;
  v[s.heads * s.keys * s.width - 1] = 40;
  const int64_t count = s.heads * s.queries * s.width;
  return check_huge(
      HugeCall{[&] { attention(q.data(), k.data(), v.data(), out.data(), s); }, out, {count - 2, count - 1}, {2, 1}});
}

template <class Case, size_t n>
Exercise exercise_of(const char* function, const Case (&cases)[n], Finding (*huge)()) {
  std::vector<NamedCheck> checks;
  for (const Case& c : cases) checks.push_back({call_of(c).text(), [c] { return check_call(checked(c)); }});
  checks.push_back({str(function, " of more than 2^32 elements, the last block of it"), huge});
  return kernel_exercise(function, checks);
}

}  // namespace

std::vector<Exercise> attention_exercises() {
  return {exercise_of("logsumexp", kRowsCases, check_huge_rows),
          exercise_of("attention", kAttentionCases, check_huge_attention)};
}

}  // namespace rush::labs
