// Statistics, integrals and differences that operators make.
#pragma once
#include "ATen/operators/view_copies.h"

namespace rush {
inline namespace aten {

/// The mean of what is not NaN.
Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
               std::optional<ScalarType> dtype = std::nullopt);

/// The covariances of the variables in self's rows, whose observations are its columns: (n, m) -> (n, n), and of one
/// variable (m) -> (). Each observation counts `fweights` times, an integer, and has the weight `aweights`.
Tensor cov(const Tensor& self, int64_t correction = 1, const std::optional<Tensor>& fweights = {},
           const std::optional<Tensor>& aweights = {});
/// The correlation coefficients of the same: covariances over the product of both standard deviations.
Tensor corrcoef(const Tensor& self);

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
inline Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1) { return trapezoid(y, x, dim); }
inline Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1) { return trapezoid(y, dx, dim); }
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);

/// The derivative of samples along each of `dim`, by default all dimensions. `spacing` is the distance between points,
/// one or one for each dimension, or tensors of the points' coordinates.
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, std::optional<int64_t> dim = std::nullopt,
                             int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing = std::nullopt,
                             std::optional<int64_t> dim = std::nullopt, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, std::optional<int64_t> dim = std::nullopt,
                             int64_t edge_order = 1);

// ---- histograms: (counts or densities, the bins' edges). The last bin includes its upper edge. ----
std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight = {},
                                     bool density = false);
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins = 100,
                                     std::optional<ArrayRef<double>> range = std::nullopt,
                                     const std::optional<Tensor>& weight = {}, bool density = false);

// In several dimensions: self (..., D) holds points; the result has the shape of D numbers of bins.
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins,
                                                    std::optional<ArrayRef<double>> /*range*/ = std::nullopt,
                                                    const std::optional<Tensor>& weight = {}, bool density = false);
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    std::optional<ArrayRef<double>> range = std::nullopt,
                                                    const std::optional<Tensor>& weight = {}, bool density = false);
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, int64_t bins,
                                                    std::optional<ArrayRef<double>> range = std::nullopt,
                                                    const std::optional<Tensor>& weight = {}, bool density = false);

/// For every slice along `dim` what index_copy's meets there, reduced: "prod", "mean", "amax" or "amin".
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self = true);
/// "sum", "mean", "max", "min" or "prod" of each segment along `axis`: (..., N, ...) -> (..., S, ...). The segments
/// have the `lengths` (..., S), or lie between neighbours of `offsets` (..., S + 1), as integers. Each starts from
/// `initial`; without it the mean of an empty one is NaN, and other results are what changes no number.
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const std::optional<Tensor>& lengths = {},
                      const std::optional<Tensor>& /*indices*/ = {}, const std::optional<Tensor>& offsets = {},
                      int64_t axis = 0, bool unsafe = false, const std::optional<Scalar>& initial = std::nullopt);

}  // namespace aten
}  // namespace rush
