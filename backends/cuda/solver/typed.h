// cuSOLVER's and cuBLAS's functions that have a name for every type, as overloads.
#pragma once
#include <cublas_v2.h>
#include <cusolverDn.h>

namespace rush::cuda {

#define RUSH_FORALL_SOLVER_TYPES(X) \
  X(S, Sorgqr, float, float)        \
  X(D, Dorgqr, double, double)      \
  X(C, Cungqr, cuComplex, float)    \
  X(Z, Zungqr, cuDoubleComplex, double)

#define RUSH_SOLVER_OVERLOADS(letter, qr, T, Real)                                                                     \
  inline cusolverStatus_t potrf_batched(cusolverDnHandle_t h, cublasFillMode_t fill, int n, T** a, int lda, int* info, \
                                        int count) {                                                                   \
    return cusolverDn##letter##potrfBatched(h, fill, n, a, lda, info, count);                                          \
  }                                                                                                                    \
  inline cusolverStatus_t orgqr_size(cusolverDnHandle_t h, int m, int n, int k, const T* a, int lda, const T* tau,     \
                                     int* size) {                                                                      \
    return cusolverDn##qr##_bufferSize(h, m, n, k, a, lda, tau, size);                                                 \
  }                                                                                                                    \
  inline cusolverStatus_t orgqr(cusolverDnHandle_t h, int m, int n, int k, T* a, int lda, const T* tau, T* work,       \
                                int size, int* info) {                                                                 \
    return cusolverDn##qr(h, m, n, k, a, lda, tau, work, size, info);                                                  \
  }                                                                                                                    \
  inline cusolverStatus_t gesvdj_size(cusolverDnHandle_t h, int econ, int m, int n, const T* a, int lda,               \
                                      const Real* s, const T* u, int ldu, const T* v, int ldv, int* size,              \
                                      gesvdjInfo_t settings) {                                                         \
    return cusolverDn##letter##gesvdj_bufferSize(h, CUSOLVER_EIG_MODE_VECTOR, econ, m, n, a, lda, s, u, ldu, v, ldv,   \
                                                 size, settings);                                                      \
  }                                                                                                                    \
  inline cusolverStatus_t gesvdj(cusolverDnHandle_t h, int econ, int m, int n, T* a, int lda, Real* s, T* u, int ldu,  \
                                 T* v, int ldv, T* work, int size, int* info, gesvdjInfo_t settings) {                 \
    return cusolverDn##letter##gesvdj(h, CUSOLVER_EIG_MODE_VECTOR, econ, m, n, a, lda, s, u, ldu, v, ldv, work, size,  \
                                      info, settings);                                                                 \
  }                                                                                                                    \
  inline cublasStatus_t trsm(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diag,     \
                             int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) {                       \
    return cublas##letter##trsm(h, CUBLAS_SIDE_LEFT, fill, op, diag, m, n, alpha, a, lda, b, ldb);                     \
  }                                                                                                                    \
  inline cublasStatus_t trsm_batched(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op,                    \
                                     cublasDiagType_t diag, int m, int n, const T* alpha, T** a, int lda, T** b,       \
                                     int ldb, int count) {                                                             \
    return cublas##letter##trsmBatched(h, CUBLAS_SIDE_LEFT, fill, op, diag, m, n, alpha, a, lda, b, ldb, count);       \
  }                                                                                                                    \
  inline cublasStatus_t getrf_batched(cublasHandle_t h, int n, T** a, int lda, int* pivots, int* info, int count) {    \
    return cublas##letter##getrfBatched(h, n, a, lda, pivots, info, count);                                            \
  }                                                                                                                    \
  inline cublasStatus_t getrs_batched(cublasHandle_t h, int n, int m, T** lu, int ldl, const int* pivots, T** b,       \
                                      int ldb, int* info, int count) {                                                 \
    return cublas##letter##getrsBatched(h, CUBLAS_OP_N, n, m, lu, ldl, pivots, b, ldb, info, count);                   \
  }                                                                                                                    \
  inline cublasStatus_t geqrf_batched(cublasHandle_t h, int m, int n, T** a, int lda, T** tau, int* info, int count) { \
    return cublas##letter##geqrfBatched(h, m, n, a, lda, tau, info, count);                                            \
  }                                                                                                                    \
  inline cusolverStatus_t gesvdj_batched_size(cusolverDnHandle_t h, int m, int n, const T* a, const Real* s,           \
                                              const T* u, const T* v, int* size, gesvdjInfo_t settings, int count) {   \
    return cusolverDn##letter##gesvdjBatched_bufferSize(h, CUSOLVER_EIG_MODE_VECTOR, m, n, a, m, s, u, m, v, n, size,  \
                                                        settings, count);                                              \
  }                                                                                                                    \
  inline cusolverStatus_t gesvdj_batched(cusolverDnHandle_t h, int m, int n, T* a, Real* s, T* u, T* v, T* work,       \
                                         int size, int* info, gesvdjInfo_t settings, int count) {                      \
    return cusolverDn##letter##gesvdjBatched(h, CUSOLVER_EIG_MODE_VECTOR, m, n, a, m, s, u, m, v, n, work, size, info, \
                                             settings, count);                                                         \
  }
RUSH_FORALL_SOLVER_TYPES(RUSH_SOLVER_OVERLOADS)
#undef RUSH_SOLVER_OVERLOADS
#undef RUSH_FORALL_SOLVER_TYPES

}  // namespace rush::cuda
