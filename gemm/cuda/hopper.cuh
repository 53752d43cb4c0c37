#pragma once

/* What the Hopper kernels are made of: the sm_90a instructions, which are clusters, bulk tensor
 * copies (TMA), warpgroup matrix multiply (wgmma), register hand-over; and tensor maps, by which
 * the copy engine is told of a row-major matrix. PTX ISA 8.0, chapters "mbarrier",
 * "cp.async.bulk.tensor" and "wgmma". Addresses are in shared memory, 32 bits. */
#include "base/shared_copy.cuh"
#include "gemm/cuda/launch.cuh"
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace md {

/* Arrives at the same barrier of block `rank` of the cluster. Without a qualifier for the cluster:
 * what is ordered here are reads by the Tensor Cores and writes by the copy engine, and a release
 * at cluster scope would wait for this thread's stores of C at every step. */
__device__ inline void barrier_arrive_at(uint32_t barrier, int rank) {
  asm volatile("{\n"
               ".reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
               "}" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

__device__ inline int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

/* Box at (inner, outer) of the tensor to `to`; its bytes are counted at `barrier`. */
__device__ inline void tensor_copy(uint32_t to, const CUtensorMap *map, int inner, int outer,
                                   uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
               "l"(map), "r"(inner), "r"(outer), "r"(barrier)
               : "memory");
}

/* The same to the same place of every block in `mask`, counted at each one's own barrier. */
__device__ inline void tensor_multicast(uint32_t to, const CUtensorMap *map, int inner, int outer,
                                        uint32_t barrier, uint16_t mask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
               "l"(map), "r"(inner), "r"(outer), "r"(barrier), "h"(mask)
               : "memory");
}

/* Shared memory at `from` to the box at (inner, outer) of the tensor, clipped at its edges. Results
 * are not read again: their lines are to be the first to leave L2. */
__device__ inline void tensor_store(const CUtensorMap *map, int inner, int outer, uint32_t from) {
  constexpr uint64_t EVICT_FIRST = 0x12f0000000000000; /* as createpolicy makes it */
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint"
               " [%0, {%1, %2}], [%3], %4;\n"
               "cp.async.bulk.commit_group;" ::"l"(map),
               "r"(inner), "r"(outer), "r"(from), "l"(EVICT_FIRST)
               : "memory");
}

__device__ inline void shared_store(uint32_t to, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ inline void shared_store(uint32_t to, float2 x) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x.x), "f"(x.y) : "memory");
}
__device__ inline void shared_store(uint32_t to, double2 x) {
  asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x.x), "d"(x.y) : "memory");
}
__device__ inline void shared_load(float &x, uint32_t from) {
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
}
__device__ inline void shared_load(float2 &x, uint32_t from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
}
__device__ inline void shared_load(double2 &x, uint32_t from) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x.x), "=d"(x.y) : "r"(from) : "memory");
}

/* Barrier number `name` (1 .. 15) for the 128 threads of a warpgroup. */
__device__ inline void warpgroup_sync(int name) {
  asm volatile("bar.sync %0, 128;" ::"r"(name) : "memory");
}

template <int registers> __device__ inline void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers> __device__ inline void claim_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int pending> __device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* Matrix descriptor of a tile with the 128-byte swizzle, its rows of 128 bytes packed: groups of
 * eight rows are 1024 bytes apart; `chunk` bytes lie between neighbouring 128-byte columns of a
 * tile that is contiguous along M or N (0 for one that is contiguous along K). */
__device__ inline uint64_t swizzled(uint32_t address, uint32_t chunk) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(chunk >> 4) << 16 |
         (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* clang-format off */
#define MD_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                 "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define MD_D32(i) MD_D8(i), MD_D8(i + 8), MD_D8(i + 16), MD_D8(i + 24)
/* d (64 x 256, 128 registers a thread) += or = A (64 deep in 32 bytes) times B (x 256). `a` stands
 * for the operand A, %129 .. of the asm, `b` and `add` for the numbers of B's descriptor and of the
 * flag that says +=. */
#define MD_WGMMA(shape_and_types, a, b, add)                                                       \
  "{\n"                                                                                            \
  ".reg .pred add;\n"                                                                              \
  "setp.ne.b32 add, " add ", 0;\n"                                                                 \
  "wgmma.mma_async.sync.aligned.m64n256" shape_and_types " "                                       \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                        \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "               \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "               \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "   \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "     \
  "%127}, " a ", " b ", add, 1, 1"
/* clang-format on */

/* 16-bit inputs, 16 deep: A contiguous along K, B along N, both in shared memory. */
template <class T> __device__ inline void wgmma(float (&d)[128], uint64_t a, uint64_t b, int add) {
  if constexpr (std::is_same<T, __half>::value)
    asm volatile(MD_WGMMA("k16.f32.f16.f16", "%128", "%129", "%130") ", 0, 1;\n}"
                 : MD_D32(0), MD_D32(32), MD_D32(64), MD_D32(96)
                 : "l"(a), "l"(b), "r"(add));
  else
    asm volatile(MD_WGMMA("k16.f32.bf16.bf16", "%128", "%129", "%130") ", 0, 1;\n}"
                 : MD_D32(0), MD_D32(32), MD_D32(64), MD_D32(96)
                 : "l"(a), "l"(b), "r"(add));
}

/* TF32, 8 deep: A in registers (lane l of warp w: row 16 w + l / 4 at depths l % 4 (a[0]) and
 * l % 4 + 4 (a[2]), 8 rows further down a[1] and a[3]), B in shared memory, contiguous along K, for
 * this type knows no other. */
__device__ inline void wgmma_tf32(float (&d)[128], const float *a, uint64_t b, int add) {
  asm volatile(MD_WGMMA("k8.f32.tf32.tf32", "{%128, %129, %130, %131}", "%132", "%133") ";\n}"
               : MD_D32(0), MD_D32(32), MD_D32(64), MD_D32(96)
               : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                 "r"(__float_as_uint(a[3])), "l"(b), "r"(add));
}

#undef MD_WGMMA
#undef MD_D32
#undef MD_D8

/* A ring of stages in shared memory, behind whose barriers that say full stand those that say
 * empty; addresses in shared memory. */
template <int STAGES> struct Stages {
  uint32_t data, full;
  int stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
  __device__ uint32_t full_now() const { return full + stage * 8; }
  __device__ uint32_t empty_now() const { return full + (STAGES + stage) * 8; }
};

/* The driver's encoder, found at run time: the program needs no libcuda to start. */
using MapEncoder = decltype(&cuTensorMapEncodeTiled);
inline MapEncoder encoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return (MapEncoder)function;
}

/* What the copy engine makes of the elements: TO_TF32 rounds floats on their way to shared memory.
 */
enum class MapType { STORED, TO_TF32 };

template <class T> constexpr CUtensorMapDataType map_type(MapType type) {
  return type == MapType::TO_TF32         ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
         : std::is_same<T, double>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64
         : std::is_same<T, float>::value  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
         : std::is_same<T, __half>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/* What a plan of the Hopper kernels keeps from run to run: padded copies of operands, and tensor
 * maps while the operands stay where they are (encoding takes the host microseconds, in which the
 * device would wait). */
struct TensorPlan {
  Workspace workspace;
  MapEncoder encode = nullptr;
  int processors = 0;
  CUtensorMap map[3] = {}; /* of A, B, C */
  const void *mapped[3] = {};
};

/* For md_gemm_kernel's open; the kernel will ask for that many bytes of shared memory. */
template <class Kernel>
md_status open_tensor_plan(md_context *context, Kernel kernel, int shared_bytes, void **state) {
  TensorPlan *plan = new (std::nothrow) TensorPlan;
  *state = plan;
  if (!plan) return md_fail_memory(context, sizeof *plan, "a GEMM plan");
  plan->encode = encoder();
  if (!plan->encode)
    return md_fail(context, MD_ENVIRONMENT,
                   "tensor copies need a driver with cuTensorMapEncodeTiled (CUDA 12), found none");
  plan->processors = context->gpu.multiprocessors;
  return md_cuda_allow_shared(context, kernel, shared_bytes, "shared memory for a GEMM kernel");
}

inline void close_tensor_plan(void *state) {
  if (state) md_device_free(((TensorPlan *)state)->workspace.data);
  delete (TensorPlan *)state;
}

/* Map 0, 1 or 2 of the plan, for boxes of box_rows rows of 128 bytes, swizzled. All but x is the
 * same in every run of a plan. */
template <class T>
md_status map_operand(md_context *context, TensorPlan *plan, int operand, const T *x, int rows,
                      int columns, int64_t ld, int box_rows, MapType type = MapType::STORED) {
  if (plan->mapped[operand] == x) return MD_OK;
  const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, pitch[1] = {ld * sizeof(T)};
  const cuuint32_t box[2] = {128 / sizeof(T), (cuuint32_t)box_rows}, step[2] = {1, 1};
  const CUresult result =
      plan->encode(&plan->map[operand], map_type<T>(type), 2, (void *)x, size, pitch, box, step,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  plan->mapped[operand] = result == CUDA_SUCCESS ? x : nullptr;
  if (result == CUDA_SUCCESS) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT, "cuTensorMapEncodeTiled refused a %d x %d matrix: %d",
                 rows, columns, (int)result);
}

/* These kernels are built for sm_90a, whose code runs on compute capability 9.0 alone. */
inline md_status needs_hopper(md_context *context, const char *kernel) {
  MD_TRY(md_device_open(context));
  if (context->gpu.capability == 90) return MD_OK;
  return md_fail(context, MD_ENVIRONMENT,
                 "GEMM kernel %s needs compute capability 9.0a, this GPU has %d.%d; other kernels "
                 "of its precisions run here, see bench gemm --kernels all",
                 kernel, context->gpu.capability / 10, context->gpu.capability % 10);
}

} // namespace md
