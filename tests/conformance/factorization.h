// Factorizations whose answer is unique only up to signs or phases (qr, svd, eigh): they are right when their factors
// have the right form and multiply to the right matrix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/compare.h"

namespace conformance {

/// Whether the operators of this family ("linalg.qr") are judged so.
bool is_factorization(const std::string& family);

/// What is wrong with the factors, in half a line; nothing when they are as good as the expected ones.
std::optional<std::string> factorization_difference(const std::string& family, const std::vector<rush::Tensor>& actual,
                                                    const std::vector<rush::Tensor>& expected, Tolerance tolerance);

/// A loss that depends on the factors' signs has another gradient for other signs. Gives `grad_outputs`, which were fed
/// into the expected factors of float64 or complex128, the signs that they need to ask the same of the actual ones, and
/// those of eigenvalues their order. An undefined one stays so.
std::vector<rush::Tensor> with_signs_of(const std::string& family, const std::vector<rush::Tensor>& actual,
                                        const std::vector<rush::Tensor>& expected,
                                        const std::vector<rush::Tensor>& grad_outputs);

}  // namespace conformance
