// Bessel functions and the Airy function, by the rational and Chebyshev approximations of S. Moshier's Cephes library
// (https://netlib.org/cephes), which PyTorch takes, too. All compute in double, for float32 as well: x - pi / 4 in
// float32 would lose the phase of a large x.
#pragma once
#include <cmath>
#include <limits>

#include "core/macros.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/special.h"
#include "core/ops/pointwise/unary.h"
#endif

namespace rush::functors {

// The functor of F::of(double).
template <class F>
struct InDouble {
  template <class T>
  RUSH_HD T operator()(T x) const {
    return static_cast<T>(F::of(static_cast<double>(x)));
  }
};

// The coefficient of the highest power first.
template <class T, class... Coefficients>
RUSH_HD T polynomial(T x, Coefficients... c) {
  T sum(0);
  ((sum = sum * x + static_cast<T>(c)), ...);
  return sum;
}
// The sum of c_k T_k(x / 2), in which c_0 counts half; c_0 comes last. Clenshaw's recurrence. Inlined, so that GCC
// vectorises the loops that call it.
template <class... Coefficients>
RUSH_HD RUSH_ALWAYS_INLINE double chebyshev(double x, Coefficients... c) {
  double now = 0, before = 0, last = 0;
  ((last = before, before = now, now = x * before - last + c), ...);
  return (now - last) / 2;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;
constexpr double kSqrtPi = 1.77245385090551602730;
constexpr double kSqrtTwo = 1.41421356237309504880;
constexpr double kTwoOverPi = 0.636619772367581343075535053490057448;

// ---- modified, of the first kind ----
struct I0e {  // exp(-|x|) I_0(x)
  RUSH_HD RUSH_ALWAYS_INLINE static double of(double signed_x) {
    const double x = std::abs(signed_x);
    if (std::isinf(x)) return 0;
    if (x <= 8)
      return chebyshev(x / 2 - 2, -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16,
                       1.715391285555133e-15, -1.1685332877993451e-14, 7.676185498604936e-14, -4.856446783111929e-13,
                       2.95505266312964e-12, -1.726826291441556e-11, 9.675809035373237e-11, -5.189795601635263e-10,
                       2.6598237246823866e-09, -1.300025009986248e-08, 6.046995022541919e-08, -2.670793853940612e-07,
                       1.1173875391201037e-06, -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05,
                       0.00018850288509584165, -0.0005763755745385824, 0.0016394756169413357, -0.004324309995050576,
                       0.010546460394594998, -0.02373741480589947, 0.04930528423967071, -0.09490109704804764,
                       0.17162090152220877, -0.3046826723431984, 0.6767952744094761);
    return chebyshev(32 / x - 2, -7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17,
                     3.461222867697461e-17, -2.8276239805165836e-16, -3.425485619677219e-16, 1.7725601330565263e-15,
                     3.8116806693526224e-15, -9.554846698828307e-15, -4.150569347287222e-14, 1.54008621752141e-14,
                     3.8527783827421426e-13, 7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11,
                     -3.1499165279632416e-11, 1.1889147107846439e-11, 4.94060238822497e-10, 3.3962320257083865e-09,
                     2.266668990498178e-08, 2.0489185894690638e-07, 2.8913705208347567e-06, 6.889758346916825e-05,
                     0.0033691164782556943, 0.8044904110141088) /
           std::sqrt(x);
  }
};
struct I1e {  // exp(-|x|) I_1(x)
  RUSH_HD RUSH_ALWAYS_INLINE static double of(double signed_x) {
    const double x = std::abs(signed_x);
    double y = 0;
    if (x <= 8) {
      y = x * chebyshev(x / 2 - 2, 2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16,
                        -1.1055969477353862e-15, 7.600684294735408e-15, -5.042185504727912e-14, 3.223793365945575e-13,
                        -1.9839743977649436e-12, 1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10,
                        -1.8872497517228294e-09, 9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07,
                        -8.568720264695455e-07, 3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05,
                        -0.00016176081582589674, 0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888,
                        -0.010564084894626197, 0.024726449030626516, -0.05294598120809499, 0.1026436586898471,
                        -0.17641651835783406, 0.25258718644363365);
    } else if (!std::isinf(x)) {
      y = chebyshev(32 / x - 2, 7.517296310842105e-18, 4.414348323071708e-18, -4.6503053684893586e-17,
                    -3.209525921993424e-17, 2.96262899764595e-16, 3.3082023109209285e-16, -1.8803547755107825e-15,
                    -3.8144030724370075e-15, 1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14,
                    -4.0835511110921974e-13, -7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11,
                    3.2526035830154884e-11, -1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09,
                    -2.6314688468895196e-08, -2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371,
                    -0.009761097491361469, 0.7785762350182801) /
          std::sqrt(x);
    }
    return signed_x < 0 ? -y : y;
  }
};
// The scaled function times exp(|x|), which alone would overflow first.
template <class Scaled>
struct Unscaled {
  RUSH_HD static double of(double x) {
    if (std::isinf(x)) return Scaled::of(-1.0) < 0 ? x : kInfinity;  // I_1 is odd
    const double half = std::exp(std::abs(x) / 2);
    return Scaled::of(x) * half * half;
  }
};

// ---- modified, of the second kind ----
// exp(x) K_v(x), the integral of exp(-x (cosh t - 1)) cosh(v t) over t > 0 (DLMF 10.32.9), by the trapezoidal rule. Its
// error is exp(-pi^2 / step), and exp(-2 pi^2 / (x step^2)) where x is large: below 1e-17.
RUSH_HD inline double scaled_k(double v, double x) {
  if (x > 1e8) return std::sqrt(kPi / (2 * x)) * (1 + (4 * v * v - 1) / (8 * x));  // DLMF 10.40.2; steps would vanish
  const double step = x < 4 ? 0.25 : 0.5 / std::sqrt(x);
  const double power_step = std::exp(step / 2), other_step = std::exp(v * step);
  double power = 1, other = 1;  // exp(t / 2) and exp(v t)
  double sum = 0.5, term = 1;
  while (term > 1e-18 * sum) {
    power *= power_step;
    other *= other_step;
    const double sine = (power - 1 / power) / 2;  // cosh t - 1 = 2 sinh^2(t / 2)
    sum += term = std::exp(-2 * x * sine * sine) * (other + 1 / other) / 2;
  }
  return sum * step;
}
// K_n(x) of a small x, by its power series in z = x^2 / 4: the sum of z^k / (k! (k + n)!) times the mean of psi(k + 1)
// and psi(k + n + 1), less log(x / 2). DLMF 10.31.1 and 10.31.2.
template <int n>
RUSH_HD double k_series(double x) {
  constexpr double kEulerGamma = 0.57721566490153286061, kLog2 = 0.69314718055994530942;
  const double z = x * x / 4;
  double factor = n / 2. - kEulerGamma - std::log(x) + kLog2, term = 1, sum = factor;  // x / 2 may be 0
  for (double k = 1; term > 1e-18; k += 1) {
    const double inverse = 1 / (k * (k + n));
    factor += (k + n / 2.) * inverse;
    term *= z * inverse;
    sum += term * factor;
  }
  return n == 0 ? sum : 1 / x - x / 2 * sum;
}
template <int order, bool scaled>
struct BesselK {
  RUSH_HD static double of(double x) {
    if (!(x > 0)) return x == 0 ? kInfinity : kNotANumber;
    if (std::isinf(x)) return 0;
    if (x < 2) return scaled ? k_series<order>(x) * std::exp(x) : k_series<order>(x);
    return scaled ? scaled_k(order, x) : scaled_k(order, x) * std::exp(-x);
  }
};

// ---- of the first and second kind ----
// From 5 on, J_n(x) = sqrt(2 / (pi x)) (p cos t - q sin t) and Y_n(x) = sqrt(2 / (pi x)) (p sin t + q cos t), where
// t = x - (2 n + 1) pi / 4.
struct Phase {
  double p, q, t, scale;
  RUSH_HD double cosine() const { return scale * (p * std::cos(t) - q * std::sin(t)); }
  RUSH_HD double sine() const { return scale * (p * std::sin(t) + q * std::cos(t)); }
};
RUSH_HD inline Phase phase_0(double x) {
  const double z = 25 / (x * x);
  const double p = polynomial(z, 0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687,
                              8.74716500199817, 5.303240382353949, 1.0) /
                   polynomial(z, 0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171,
                              8.761908832370695, 5.306052882353947, 1.0);
  const double q = polynomial(z, -0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683,
                              -177.68116798048806, -147.07750515495118, -51.41053267665993, -6.050143506007285) /
                   polynomial(z, 1, 64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525,
                              5930.727011873169, 2062.0933166032783, 242.0057402402914);
  return {p, 5 / x * q, x - kPi / 4, std::sqrt(kTwoOverPi / x)};
}
RUSH_HD inline Phase phase_1(double x) {
  const double z = 25 / (x * x);
  const double p = polynomial(z, 0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076,
                              8.424045901417724, 5.214515986823615, 1.0) /
                   polynomial(z, 0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015,
                              8.399855543276042, 5.209828486823619, 1.0);
  const double q = polynomial(z, 0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508,
                              710.8563049989261, 597.4896124006136, 211.68875710057213, 25.207020585802372) /
                   polynomial(z, 1, 74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562,
                              7997.041604473507, 2826.1927851763908, 336.0936078106983);
  return {p, 5 / x * q, x - 3 * kPi / 4, std::sqrt(kTwoOverPi / x)};
}
struct BesselJ0 {
  RUSH_HD static double of(double signed_x) {
    const double x = std::abs(signed_x), z = x * x;
    if (x > 5) return std::isinf(x) ? 0 : phase_0(x).cosine();
    if (x < 1e-5) return 1 - z / 4;
    // The factors are the first two zeros' squares.
    return (z - 5.78318596294678452118) * (z - 30.4712623436620863991) *
           polynomial(z, -4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0) /
           polynomial(z, 1, 499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683,
                      2112775201154.892, 310518229857422.56, 3.1812195594320496e+16, 1.7108629408104315e+18);
  }
};
struct BesselJ1 {
  RUSH_HD static double of(double signed_x) {
    const double x = std::abs(signed_x), z = x * x;
    double y = 0;
    if (x <= 5) {
      y = polynomial(z, -899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0) /
          polynomial(z, 1, 620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925,
                     4749141220799.914, 784369607876235.9, 8.952223361846274e+16, 5.322786203326801e+18) *
          x * (z - 14.6819706421238932572) * (z - 49.2184563216946036703);
    } else if (!std::isinf(x)) {
      y = phase_1(x).cosine();
    }
    return signed_x < 0 ? -y : x == x ? y : signed_x;
  }
};
struct BesselY0 {
  RUSH_HD static double of(double x) {
    if (!(x > 0)) return x == 0 ? -kInfinity : kNotANumber;
    if (x > 5) return std::isinf(x) ? 0 : phase_0(x).sine();
    const double z = x * x;
    const double smooth =
        polynomial(z, 15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7,
                   -3466283033847297.0, 4.4273326857256984e+16, -1.8495080043698668e+16) /
        polynomial(z, 1, 1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935, 20297961275010.555,
                   3171577528429750.5, 2.5059625617265306e+17);
    return smooth + kTwoOverPi * std::log(x) * BesselJ0::of(x);
  }
};
struct BesselY1 {
  RUSH_HD static double of(double x) {
    if (!(x > 0)) return x == 0 ? -kInfinity : kNotANumber;
    if (x > 5) return std::isinf(x) ? 0 : phase_1(x).sine();
    const double z = x * x;
    const double smooth =
        polynomial(z, 1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0,
                   2.024394757135949e+17, -7.788771962659501e+17) /
        polynomial(z, 1, 594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617,
                   3882312774962.3857, 620557727146953.8, 6.871410873553005e+16, 3.9727060811656064e+18);
    return x * smooth + kTwoOverPi * (BesselJ1::of(x) * std::log(x) - 1 / x);
  }
};
struct SphericalBesselJ0 {  // sin(x) / x
  RUSH_HD static double of(double x) {
    if (std::isinf(x)) return 0;
    return x == 0 ? 1 : std::sin(x) / x;
  }
};

// ---- Ai ----
struct AiryAi {
  // Ai(x) = c1 f(x) - c2 g(x), with the power series f = 1 + x^3 / (2 3) + ... and g = x + x^4 / (3 4) + ...
  RUSH_HD static double series(double x) {
    const double z = x * x * x;
    double f = 1, g = x, f_term = 1, g_term = x;
    for (double k = 2; std::abs(f_term) > 1e-17 * std::abs(f) || std::abs(g_term) > 1e-17 * std::abs(g); k += 3) {
      f += f_term *= z / (k * (k + 1));
      g += g_term *= z / ((k + 1) * (k + 2));
    }
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g;
  }
  RUSH_HD static double of(double x) {
    if (!std::isfinite(x)) return kNotANumber;
    if (x > 103.892) return 0;
    if (std::abs(x) < 2.09) return series(x);
    const double size = std::abs(x), root = std::sqrt(size), zeta = 2 * size * root / 3, z = 1 / zeta, z2 = z * z;
    const double scale = 1 / (kSqrtPi * std::sqrt(root));
    if (x > 0) return std::sqrt(x / 3) / kPi * scaled_k(1. / 3, zeta) * std::exp(-zeta);
    const double p = 1 + z2 *
                             polynomial(z2, -0.1316963234183318, -0.6264565444319123, -0.6931580360369335,
                                        -0.2797799815451191, -0.04919001326095003, -0.004062659235948854,
                                        -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08) /
                             polynomial(z2, 1, 13.356042070655324, 32.682503279522464, 26.736704094149957,
                                        9.187074029072596, 1.4752914677166642, 0.11568717379518804,
                                        0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07);
    const double q = z *
                     polynomial(z2, 0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502,
                                0.35146565610554764, 0.06338889196289255, 0.005858041130483885, 0.000282851600836737,
                                6.98793669997261e-06, 8.117892395543892e-08, 3.415517847659236e-10) /
                     polynomial(z2, 1, 9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755,
                                0.9542936116189619, 0.08645808263523921, 0.004126565238242226, 0.00010125908511650914,
                                1.1716673321441352e-06, 4.9183457006293e-09);
    const double t = zeta + kPi / 4;
    return scale * (std::sin(t) * p - std::cos(t) * q);
  }
};

#ifndef __CUDACC_RTC__
using BesselTable =
    Table<Row<kernels::i0, InDouble<Unscaled<I0e>>, RealFloatTypes, kSlow>,
          Row<kernels::special_i0e, InDouble<I0e>, RealFloatTypes, kSlow>,
          Row<kernels::special_i1, InDouble<Unscaled<I1e>>, RealFloatTypes, kSlow>,
          Row<kernels::special_i1e, InDouble<I1e>, RealFloatTypes, kSlow>,
          Row<kernels::special_modified_bessel_k0, InDouble<BesselK<0, false>>, RealFloatTypes, kSlow>,
          Row<kernels::special_modified_bessel_k1, InDouble<BesselK<1, false>>, RealFloatTypes, kSlow>,
          Row<kernels::special_scaled_modified_bessel_k0, InDouble<BesselK<0, true>>, RealFloatTypes, kSlow>,
          Row<kernels::special_scaled_modified_bessel_k1, InDouble<BesselK<1, true>>, RealFloatTypes, kSlow>,
          Row<kernels::special_bessel_j0, InDouble<BesselJ0>, RealFloatTypes, kSlow>,
          Row<kernels::special_bessel_j1, InDouble<BesselJ1>, RealFloatTypes, kSlow>,
          Row<kernels::special_bessel_y0, InDouble<BesselY0>, RealFloatTypes, kSlow>,
          Row<kernels::special_bessel_y1, InDouble<BesselY1>, RealFloatTypes, kSlow>,
          Row<kernels::special_spherical_bessel_j0, InDouble<SphericalBesselJ0>, RealFloatTypes, kSlow>,
          Row<kernels::special_airy_ai, InDouble<AiryAi>, RealFloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
