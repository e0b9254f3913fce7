// The small types of c10: numbers, complex numbers, references to arrays, vectors, hashes, owners, and checks.
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/record_function.h>
#include <c10/util/CallOnce.h>
#include <c10/util/ExclusivelyOwned.h>
#include <c10/util/MaybeOwned.h>
#include <c10/util/SmallVector.h>
#include <c10/util/accumulate.h>
#include <c10/util/bit_cast.h>
#include <c10/util/hash.h>
#include <c10/util/ssize.h>
#include <torch/torch.h>

#include <complex>
#include <iostream>
#include <set>
#include <sstream>
#include <unordered_set>

static void scalars() {
  const torch::Scalar whole(300), real(2.5), truth(true), pair(c10::complex<double>(2, -3.5));
  std::ostringstream text;
  text << whole << " " << real << " " << truth << " " << pair;
  std::cout << text.str() << " " << whole << " " << pair << "\n";
  std::cout << whole.isIntegral(false) << truth.isIntegral(false) << truth.isIntegral(true) << real.isFloatingPoint()
            << pair.isComplex() << truth.isBoolean() << " " << real.toFloat() << " " << whole.toInt() << " "
            << whole.toShort() << " " << real.toHalf() << " " << real.toBFloat16() << " "
            << pair.toComplexDouble().imag() << " " << torch::Scalar(uint64_t{1} << 63).toUInt64() << "\n";
  try {
    std::cout << static_cast<int>(whole.toChar()) << "\n";
  } catch (const std::exception&) {
    std::cout << "300 is no int8\n";
  }
  std::cout << truth.equal(true) << real.equal(true) << pair.equal(c10::complex<double>(2, -3.5)) << "\n";
  std::cout << at::scalar_to_tensor(real).dtype() << at::scalar_to_tensor(whole).dtype()
            << at::scalar_to_tensor(truth).dtype() << at::scalar_to_tensor(pair).dtype() << "\n";
  const torch::Tensor numbers = torch::arange(4);
  std::cout << numbers[torch::Scalar(3)].item<int64_t>() << "\n";
  try {
    std::cout << numbers[torch::Scalar(1.5)].item<int64_t>() << "\n";
  } catch (const c10::Error&) {
    std::cout << "1.5 is no index\n";
  }
}

static void complex_numbers() {
  using namespace c10::complex_literals;
  c10::complex<double> z = 3.0 + 4_id;
  const std::complex<double> standard(z);
  z += c10::complex<float>(standard);
  std::cout << z << " " << std::abs(z) << " " << std::norm(z) << " " << std::conj(z) << " " << c10::polar(2.0, 0.0)
            << " " << 0.5_if << "\n";
  z = standard;
  std::cout << std::sqrt(z) << " " << std::pow(z, c10::complex<double>(2, 0)).real() << " " << std::log1p(0 * z)
            << "\n";
  std::istringstream("(1,-2)") >> z;
  std::cout << z << " " << c10::Half(0.5f) << " " << c10::BFloat16(-2.f) << " "
            << torch::ones({}, torch::kHalf).item<c10::Half>() << "\n";
}

static void arrays() {
  const std::vector<int64_t> numbers{2, 3, 4};
  const torch::IntArrayRef sizes(numbers);
  std::cout << sizes.equals({2, 3, 4}) << torch::ones({2, 3}).sizes().equals({3, 2}) << " " << sizes.at(1)
            << *sizes.rbegin() << " " << sizes.slice(1) << c10::makeArrayRef(numbers) << "\n";
  std::cout << c10::multiply_integers(numbers) << c10::sum_integers(numbers.begin() + 1, numbers.end()) << " "
            << c10::numelements_from_dim(1, numbers) << c10::numelements_to_dim(2, numbers) << " "
            << c10::ssize(numbers) << " " << c10::bit_cast<uint32_t>(1.0f) << "\n";
  RECORD_FUNCTION("arrays", std::vector<c10::IValue>());
  std::cout << at::maybe_wrap_dim(-1, 3) << c10::maybe_wrap_dim(0, 0)
            << torch::IntArrayRef(at::infer_size({2, 1}, {3}));
  try {
    std::cout << at::maybe_wrap_dim(3, 3);
  } catch (const c10::IndexError&) {
    std::cout << " no dimension\n";
  }
  c10::SmallVector<int64_t, 2> small(sizes.begin(), sizes.end());
  small.append(2, 7);
  small.insert(small.begin(), small.pop_back_val());
  std::cout << torch::IntArrayRef(small) << torch::zeros(small).dim() << "\n";
  const std::unordered_set<std::pair<int, int>, c10::hash<std::pair<int, int>>> pairs{{1, 2}, {2, 1}, {1, 2}};
  std::cout << pairs.size() << (c10::get_hash(1, 2) == c10::get_hash(1, 2)) << "\n";
}

struct Counted : c10::intrusive_ptr_target {
  explicit Counted(int value) : value(value) {}
  int value;
};

static void owners() {
  auto first = c10::make_intrusive<Counted>(5);
  const auto second = first;
  std::cout << first.defined() << first.unique() << first.use_count() << std::unordered_set{first, second}.size()
            << std::set{first, second, c10::make_intrusive<Counted>(7)}.size();
  Counted* released = first.release();
  std::cout << first.defined() << c10::intrusive_ptr<Counted>::reclaim(released)->value << second.use_count()
            << c10::intrusive_ptr<Counted>::make(6)->value << "\n";

  torch::Tensor x = torch::ones({2});
  c10::ExclusivelyOwned<torch::Tensor> owned(std::move(x));
  std::cout << x.defined() << owned->dim() << std::move(owned).take().numel() << "\n";
  auto made = c10::MaybeOwned<torch::Tensor>::owned(std::in_place, torch::zeros({3}));
  std::cout << made->numel() << (*std::move(made)).dim() << "\n";
}

static void checks() {
  for (const int number : {1, 2}) {
    try {
      TORCH_CHECK_EQ(number, 1) << "more";
      TORCH_CHECK_ARG(number > 1, 1, "is ", number);
    } catch (const c10::Error& error) {
      const std::string& message = error.msg();
      std::cout << (message.find("Check failed: number == 1 (2 vs. 1). more") != std::string::npos)
                << (message == "invalid argument 1: is 1") << "\n";
    }
  }
  try {
    try {
      C10_THROW_ERROR(ValueError, "no");
    } catch (c10::Error& error) {
      TORCH_RETHROW(error, "while asked");
    }
  } catch (const c10::ValueError& error) {
    std::cout << error.msg() << " " << error.context().size() << "\n";
  }
  if (C10_LIKELY(true)) TORCH_INTERNAL_ASSERT_DEBUG_ONLY(true);
}

static void threads() {
  static c10::once_flag once;
  for (int i = 0; i < 2; ++i) c10::call_once(once, [] { std::cout << "once\n"; });
  const int64_t sum = at::parallel_reduce(
      0, 1000, 10, int64_t{0},
      [](int64_t begin, int64_t end, int64_t part) {
        for (; begin < end; ++begin) part += begin;
        return part;
      },
      [](int64_t a, int64_t b) { return a + b; });
  std::vector<int64_t> parts(static_cast<size_t>(at::get_num_threads()), 0);
  at::parallel_for(0, 1000, 1, [&](int64_t begin, int64_t end) {
    parts.at(static_cast<size_t>(at::get_thread_num())) += end - begin;
  });
  std::cout << sum << " " << c10::sum_integers(parts) << " " << at::get_thread_num() << "\n";
}

static void switches() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  std::cout << context.deterministicAlgorithms() << context.deterministicAlgorithmsWarnOnly();
  torch::globalContext().setDeterministicAlgorithms(false, false);
  std::cout << context.deterministicAlgorithms() << context.deterministicAlgorithmsWarnOnly()
            << (context.defaultGenerator(at::kCPU) == at::detail::getDefaultCPUGenerator()) << "\n";
}

// Memory that nothing has written holds the same values each time where the algorithms have to be deterministic.
static void unwritten_memory() {
  at::Context& context = at::globalContext();
  std::cout << context.deterministicFillUninitializedMemory();
  context.setDeterministicAlgorithms(true, false);
  std::cout << torch::empty({2}).isnan().all().item<bool>() << torch::empty({2}, torch::kInt).max().item<int>()
            << torch::empty({1}, torch::kBool).item<bool>() << "\n";
  const torch::Tensor bytes = torch::zeros({2, 2}, torch::kByte);
  std::cout << torch::empty_like(bytes).min().item<int>() << " " << bytes.new_empty({1}).item<int>() << " "
            << torch::empty_strided({2}, {2}, torch::kShort).min().item<int>() << " "
            << torch::empty({1}, torch::kLong).item<int64_t>() << " " << bytes.sum().item<int>() << " "
            << bytes.resize_({2, 3}).sum().item<int>() << "\n";
  context.setDeterministicFillUninitializedMemory(false);
  std::cout << context.deterministicFillUninitializedMemory() << "\n";
  context.setDeterministicFillUninitializedMemory(true);
  context.setDeterministicAlgorithms(false, false);
}

int main() {
  switches();
  unwritten_memory();
  scalars();
  complex_numbers();
  arrays();
  owners();
  checks();
  threads();
  return 0;
}
