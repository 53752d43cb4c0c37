/* The library beside ours, with the same types: fp64; fp32 without TF32; TF32; fp16 or bf16 inputs
 * with fp32 sums, scalars and C. cuBLAS is column-major: it is given C^T <- B^T A^T.
 * It is loaded by who opens it, since loading it takes longer than the rest of a start. */
#include "base/shared_library.h"
#include "gemm/cuda/launch.cuh"
#include "gemm/small.h"
#include <cublas_v2.h>
#include <new>

using namespace md;

/* The functions of the library that are called here, and its handle. */
struct Library {
  cublasHandle_t handle;
  decltype(&cublasCreate) create;
  decltype(&cublasDestroy) destroy;
  decltype(&cublasSetStream) set_stream;
  decltype(&cublasGetStatusString) status_string;
  decltype(&cublasGemmEx_64) gemm;
  decltype(&cublasSgemv_64) gemv;
};

/* cublas_v2.h gives several functions other names by macros: TEXT takes the name that results. */
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

static md_status load(md_context *context, Library *library) {
  const md_library_function functions[] = {
      {TEXT(cublasCreate), (void **)&library->create},
      {TEXT(cublasDestroy), (void **)&library->destroy},
      {TEXT(cublasSetStream), (void **)&library->set_stream},
      {TEXT(cublasGetStatusString), (void **)&library->status_string},
      {TEXT(cublasGemmEx_64), (void **)&library->gemm},
      {TEXT(cublasSgemv_64), (void **)&library->gemv},
  };
  return md_shared_library_load(context, "libcublas.so." TEXT(CUBLAS_VER_MAJOR), MD_CUBLAS_FOLDER,
                                sizeof functions / sizeof *functions, functions);
}

/* `what`: what the library was asked to do. */
static md_status status_of(md_context *context, const Library *library, cublasStatus_t status,
                           const char *what) {
  if (status == CUBLAS_STATUS_SUCCESS) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "cuBLAS failed to %s: %s", what,
                 library->status_string(status));
}

static void close(void *state) {
  Library *library = (Library *)state;
  if (library && library->handle) library->destroy(library->handle);
  delete library;
}

static md_status start(md_context *context, void *stream, Library *library) {
  MD_TRY(load(context, library));
  const cublasStatus_t status = library->create(&library->handle);
  if (status != CUBLAS_STATUS_SUCCESS) library->handle = nullptr;
  MD_TRY(status_of(context, library, status, "start"));
  return status_of(context, library, library->set_stream(library->handle, (cudaStream_t)stream),
                   "take a stream");
}

template <class PROBLEM>
static md_status open_handle(md_context *context, const PROBLEM *, void *stream, void **state) {
  *state = nullptr;
  Library *library = new (std::nothrow) Library();
  if (!library) return md_fail_memory(context, sizeof *library, "cuBLAS");
  const md_status status = start(context, stream, library);
  if (status == MD_OK)
    *state = library;
  else
    close(library);
  return status;
}

struct Types {
  cudaDataType_t input, output;
  cublasComputeType_t compute;
};

static Types types_of(md_gemm_precision precision) {
  switch (precision) {
  case MD_GEMM_DOUBLE:
    return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  case MD_GEMM_TF32:
    return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
  case MD_GEMM_HALF:
    return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  case MD_GEMM_BF16:
    return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  default:
    return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
  }
}

static md_status multiply_cublas(md_context *context, const md_gemm_call *call) {
  const Library *library = (const Library *)call->state;
  const md_gemm_problem *p = call->problem;
  const Types t = types_of(p->precision);
  const float alpha = (float)p->alpha, beta = (float)p->beta;
  const bool wide = p->precision == MD_GEMM_DOUBLE;
  const cublasStatus_t status =
      library->gemm(library->handle, CUBLAS_OP_N, CUBLAS_OP_N, p->n, p->m, p->k,
                    wide ? (const void *)&p->alpha : &alpha, call->b, t.input, p->ldb, call->a,
                    t.input, p->lda, wide ? (const void *)&p->beta : &beta, call->c, t.output,
                    p->ldc, t.compute, CUBLAS_GEMM_DEFAULT);
  return status_of(context, library, status, "multiply");
}

const md_gemm_kernel md_gemm_cublas = entry(
    "cublas", (1u << MD_GEMM_PRECISIONS) - 1, multiply_cublas, nullptr,
    [](md_context *context, const md_gemm_problem *p, const md_gemm_launch *launch, void **state) {
      return open_handle(context, p, launch->stream, state);
    },
    close);

static md_status run_gemv(md_context *context, const md_small_call *call) {
  const Library *library = (const Library *)call->state;
  const md_small_problem *p = call->problem;
  const float alpha = 1.0f, beta = 0.0f;
  const cublasStatus_t status = library->gemv(
      library->handle, CUBLAS_OP_T, p->columns, p->rows, &alpha, (const float *)call->in,
      p->columns, (const float *)call->x, 1, &beta, (float *)call->out, 1);
  return status_of(context, library, status, "multiply");
}

const md_small_kernel md_gemv_cublas = {"cublas", MD_GEMM_DEVICE, 1u << MD_SMALL_SINGLE,
                                        nullptr,  run_gemv,       open_handle<md_small_problem>,
                                        close};
