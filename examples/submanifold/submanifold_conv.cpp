#include "examples/submanifold/submanifold_conv.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "autograd/derive.h"
#include "rushlight.h"

namespace examples {

using namespace rush;

namespace {

// How errors name the operator.
constexpr const char* kName = "submanifold_conv";

void check_sites(const Tensor& input) {
  RUSH_CHECK_VALUE(input.layout() == kSparse && input.dense_dim() == 1 && input.sparse_dim() >= 2, kName,
                   ": expected a COO tensor (batch, spatial..., channels) of which the channels alone are dense, got "
                   "sizes ",
                   input.sizes(), " in layout ", input.layout());
  RUSH_CHECK_VALUE(input.is_coalesced(), kName, ": the input is not coalesced; call coalesce() first");
}

void check_kernel(const Tensor& input, IntArrayRef kernel_size) {
  const bool all_odd = std::all_of(kernel_size.begin(), kernel_size.end(), [](int64_t k) { return k > 0 && k % 2; });
  RUSH_CHECK_VALUE(static_cast<int64_t>(kernel_size.size()) == input.dim() - 2 && all_odd, kName,
                   ": expected an odd kernel size for each of the ", input.dim() - 2, " spatial dimensions, got ",
                   kernel_size);
}

// ---- the rules ----

// The grid with as much room around it as the kernel reaches, so that no step from a site ends in another row.
struct PaddedGrid {
  DimVector reach, steps;  // of each spatial dimension: half of the kernel, and from one place to the next

  PaddedGrid(IntArrayRef sizes, IntArrayRef kernel_size) {
    int64_t places = 1;
    steps.resize(kernel_size.size());
    for (size_t d = kernel_size.size(); d-- > 0;) {
      reach.insert(reach.begin(), kernel_size[d] / 2);
      steps[d] = places;
      places = times(places, sizes[d + 1] + kernel_size[d] - 1);
    }
    image = places;
    times(image, sizes[0]);
  }

  int64_t image;  // places of one batch

  // The place of each column of `indices` (1 + D, n): (n), ascending where the columns are.
  Tensor places_of(const Tensor& indices) const {
    Tensor places = indices[0] * image;
    for (size_t d = 0; d < steps.size(); ++d) {
      places.add_(indices[static_cast<int64_t>(d) + 1] + reach[d], steps[d]);
    }
    return places;
  }

  // How far each place of the kernel is from its middle: (K), in row-major order.
  Tensor offsets() const {
    Tensor all = zeros(1, kInt64);
    for (size_t d = 0; d < steps.size(); ++d) {
      const Tensor along = arange(-reach[d], reach[d] + 1, kInt64) * steps[d];
      all = (all.unsqueeze(1) + along).view(-1);
    }
    return all;
  }

 private:
  static int64_t times(int64_t a, int64_t b) {
    RUSH_CHECK_VALUE(b == 0 || a <= std::numeric_limits<int64_t>::max() / b, kName, ": the grid has too many places");
    return a * b;
  }
};

std::vector<int64_t> as_list(const Tensor& numbers) {
  const Tensor here = numbers.cpu().contiguous();
  const int64_t* first = here.data_ptr<int64_t>();
  return {first, first + here.numel()};
}

}  // namespace

// Each site looks for its neighbours: the sites are in order, so a neighbour's place is found by bisection.
RuleBook::RuleBook(const Tensor& input, IntArrayRef kernel_size) : sites(0) {
  check_sites(input);
  check_kernel(input, kernel_size);
  sites = input._nnz();
  const PaddedGrid grid(input.sizes(), kernel_size);
  const Tensor places = grid.places_of(input.indices());                          // (n)
  const Tensor wanted = grid.offsets().to(input.device()).unsqueeze(1) + places;  // (K, n)
  if (sites == 0) {
    pairs = empty({2, 0}, places.options());
    counts.assign(static_cast<size_t>(wanted.size(0)), 0);
    return;
  }
  const Tensor nearest = searchsorted(places, wanted).clamp_max(sites - 1);  // (K, n)
  const Tensor found = places.index_select(0, nearest.view(-1)).view_as(nearest).eq(wanted);
  const Tensor at = found.view(-1).nonzero().squeeze(1);  // (pairs)
  pairs = stack({nearest.view(-1).index_select(0, at), at.remainder(sites)});
  counts = as_list(found.sum(1));
}

Tensor at_sites_of(const Tensor& input, const Tensor& values) {
  DimVector sizes(input.sizes());
  sizes.back() = values.size(1);
  return _sparse_coo_tensor_unsafe(input.indices(), values, sizes, {}, /*is_coalesced=*/true);
}

// ---- the kernel: gather, multiply, scatter ----

namespace {

// Calls visit(place of the kernel, sites of the input, sites of the output), the latter without repetition, for every
// place at which any meet.
template <class Visit>
void for_each_place(const Tensor& pairs, IntArrayRef counts, const Visit& visit) {
  int64_t begin = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    const Tensor here = pairs.narrow(1, begin, counts[k]);
    begin += counts[k];
    if (counts[k] > 0) visit(static_cast<int64_t>(k), here[0], here[1]);
  }
}

void check_weight(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  RUSH_CHECK_VALUE(weight.layout() == kStrided && weight.dim() == input.dim(), kName,
                   ": expected a dense weight (out, ", input.sizes().back(), ", kernel...) of ", input.dim(),
                   " dimensions, got ", weight.sizes());
  check_kernel(input, weight.sizes().slice(2));
  RUSH_CHECK_VALUE(weight.size(1) == input.sizes().back(), kName, ": the input has ", input.sizes().back(),
                   " channels, the weight ", weight.sizes(), " is for ", weight.size(1));
  RUSH_CHECK_TYPE(is_floating_point(input.scalar_type()) && weight.scalar_type() == input.scalar_type(), kName,
                  ": expected input and weight of one floating-point dtype, got ", input.scalar_type(), " and ",
                  weight.scalar_type());
  if (bias) {
    RUSH_CHECK_VALUE(bias->layout() == kStrided && bias->sizes() == weight.sizes().slice(0, 1), kName,
                     ": expected a bias of shape (", weight.size(0), "), got ", bias->sizes());
    RUSH_CHECK_TYPE(bias->scalar_type() == weight.scalar_type(), kName, ": the weight is ", weight.scalar_type(),
                    ", the bias ", bias->scalar_type());
  }
  for (const Tensor& other : {weight, bias.value_or(weight)}) {
    RUSH_CHECK_VALUE(other.device() == input.device(), kName, ": the input is on ", input.device(),
                     ", weight or bias on ", other.device());
  }
}

void check_rules(const Tensor& input, const Tensor& weight, const Tensor& pairs, IntArrayRef counts) {
  RUSH_CHECK_VALUE(pairs.layout() == kStrided && pairs.scalar_type() == kInt64 && pairs.dim() == 2 &&
                       pairs.size(0) == 2 && pairs.device() == input.device(),
                   kName, ": expected pairs (2, n) of int64 on ", input.device(), ", got ", pairs.sizes(), " of ",
                   pairs.scalar_type(), " on ", pairs.device());
  const IntArrayRef kernel = weight.sizes().slice(2);
  const int64_t places = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
  RUSH_CHECK_VALUE(static_cast<int64_t>(counts.size()) == places &&
                       std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count >= 0; }) &&
                       std::accumulate(counts.begin(), counts.end(), int64_t{0}) == pairs.size(1),
                   kName, ": the rules have ", pairs.size(1), " pairs at ", counts.size(), " places, the kernel has ",
                   places);
}

// Serves the key Sparse on all devices: all that it calls does.
Tensor forward(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const Tensor& pairs,
               IntArrayRef counts) {
  check_sites(input);
  check_weight(input, weight, bias);
  check_rules(input, weight, pairs, counts);
  const Tensor features = input.values();                                       // (n, C)
  const Tensor factors = weight.flatten(2).permute({2, 1, 0}).contiguous();     // (O, C, kernel...) -> (K, C, O)
  Tensor sums = zeros({features.size(0), weight.size(0)}, features.options());  // (n, O)
  if (bias) sums.add_(*bias);
  for_each_place(pairs, counts, [&](int64_t place, const Tensor& from, const Tensor& to) {
    sums.index_add_(0, to, features.index_select(0, from).mm(factors[place]));
  });
  return at_sites_of(input, sums);
}

// ---- the derivative ----

// The gradient of a weight of these sizes: at each place of the kernel the inputs that met there, transposed, by the
// gradients of the outputs.
Tensor weight_gradient(const Tensor& features, const Tensor& grad, IntArrayRef sizes, const Tensor& pairs,
                       IntArrayRef counts) {
  const Tensor none = zeros({sizes[1], sizes[0]}, features.options());
  Tensors products(counts.size(), none);  // (C, O) each
  for_each_place(pairs, counts, [&](int64_t place, const Tensor& from, const Tensor& to) {
    products[static_cast<size_t>(place)] = features.index_select(0, from).t().mm(grad.index_select(0, to));
  });
  return stack(products).permute({2, 1, 0}).reshape(sizes);
}

// Where site i counts for site j in the output, the gradient at j counts for that at i: the gradient of the input is
// the same operator with the pairs turned round and the weight's channels exchanged.
struct SubmanifoldConvBackward final : Node {
  Saved input, weight, pairs;
  DimVector counts;
  RUSH_SAVED(input, weight, pairs)
  void save(const Tensor& x, const Tensor& w, const std::optional<Tensor>&, const Tensor& rules, IntArrayRef each) {
    input = x;
    weight = w;
    pairs = rules;
    counts = DimVector(each);
  }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), w = weight.get(), rules = pairs.get();
    // A gradient may come with other entries, or dense.
    const Tensor pattern = at_sites_of(x, zeros({x._nnz(), w.size(0)}, w.options()));
    const Tensor grad = g[0].sparse_mask(pattern);
    return {
        needs(0) ? ops::submanifold_conv(grad, w.transpose(0, 1), std::nullopt, rules.flip(0), counts) : Tensor(),
        needs(1) ? weight_gradient(x.values(), grad.values(), w.sizes(), rules, counts) : Tensor(),
        needs(2) ? grad.values().sum(0) : Tensor(),
        Tensor(),
    };
  }
};

}  // namespace

void register_submanifold_conv(Registry& registry) {
  registry.sparse(ops::submanifold_conv, forward);
  derive<ops::submanifold_conv, SubmanifoldConvBackward>(registry);
}

Tensor submanifold_conv(const Tensor& input, const Tensor& weight, const Tensor& bias, const RuleBook& rules) {
  check_sites(input);
  RUSH_CHECK_VALUE(rules.sites == input._nnz(), kName, ": the rules are for ", rules.sites, " sites, the input has ",
                   input._nnz());
  return ops::submanifold_conv(input, weight, bias.defined() ? std::optional(bias) : std::nullopt, rules.pairs,
                               rules.counts);
}

Tensor submanifold_conv(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_sites(input);
  check_weight(input, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  return submanifold_conv(input, weight, bias, RuleBook(input, weight.sizes().slice(2)));
}

}  // namespace examples
