#ifndef MD_BASE_STATUS_H
#define MD_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function of a header that kernels call too. */
#ifdef __CUDACC__
#define MD_HOST_DEVICE static __host__ __device__ inline
#else
#define MD_HOST_DEVICE static inline
#endif

/* Of a type: compilers warn where a result of it is dropped, whatever function returned it. (void)
 * says that it is meant to be. */
#if defined(__clang__)
#define MD_CHECKED __attribute__((warn_unused_result))
#elif __cplusplus >= 201703L || __GNUC__ >= 11
#define MD_CHECKED [[nodiscard]]
#else
#define MD_CHECKED
#endif

/* What a fallible function returns; the values are the exit codes of the program.
 * MD_UNREACHED: it ran, but the asked result was not reached (no convergence, failed validation).
 * MD_INPUT: bad usage or bad input. MD_ENVIRONMENT: device, MPI, memory or disk. */
__extension__ typedef enum MD_CHECKED md_status {
  MD_OK = 0,
  MD_UNREACHED = 1,
  MD_INPUT = 2,
  MD_ENVIRONMENT = 3
} md_status;

/* Hands a failure up to the caller; for local steps only. Before a collective, the ranks must
 * agree first: see md_agree in context.h. */
#define MD_TRY(expression)                                                                         \
  do {                                                                                             \
    const md_status md_try_status = (expression);                                                  \
    if (md_try_status != MD_OK) return md_try_status;                                              \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
