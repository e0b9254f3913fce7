#include "backends/cpu/linalg/decompositions.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct SvdLoop {
  template <class T>
  static void run(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1), m = a.size(2), k = std::min(n, m);
    if (!u.defined()) return values<T>(s, a, info);
    const unsigned left = u.size(2) == k ? Eigen::ComputeThinU : Eigen::ComputeFullU;
    const unsigned right = vh.size(1) == k ? Eigen::ComputeThinV : Eigen::ComputeFullV;
    for_each_matrix(a.size(0), n * m * k, [&](int64_t i) {
      if (k == 0) {
        info.data_ptr<int32_t>()[i] = 0;
        eigen_matrix<T>(u, i).setIdentity();
        eigen_matrix<T>(vh, i).setIdentity();
        return;
      }
      const auto svd = DecompositionsOf<T>::svd(wide_matrix<T>(a, i), left | right);
      info.data_ptr<int32_t>()[i] = svd.info;
      if (svd.info != 0) return;
      eigen_matrix<T>(u, i) = svd.u.template cast<eigen_t<T>>();
      eigen_vector<real_t<T>>(s, i) = svd.s.template cast<eigen_t<real_t<T>>>();
      eigen_matrix<T>(vh, i) = svd.v.adjoint().template cast<eigen_t<T>>();
    });
  }

 private:
  template <class T>
  static void values(const Tensor& s, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1), m = a.size(2), k = std::min(n, m);
    for_each_matrix(a.size(0), n * m * k, [&](int64_t i) {
      info.data_ptr<int32_t>()[i] = 0;
      if (k == 0) return;
      const auto svd = DecompositionsOf<T>::singular_values(wide_matrix<T>(a, i));
      info.data_ptr<int32_t>()[i] = svd.info;
      if (svd.info == 0) eigen_vector<real_t<T>>(s, i) = svd.s.template cast<eigen_t<real_t<T>>>();
    });
  }
};

}  // namespace

void register_linalg_svd() { set_by_dtype<kernels::linalg_svd, SvdLoop, LinalgTypes, 3>(kCPU); }

}  // namespace rush::cpu
