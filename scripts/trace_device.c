/* Records what a GPU does and when, for scripts/plot_timeline.py: kernels and copies with their
 * streams, by CUPTI's activity records. It is loaded by the driver; miniDirac does not know of it.
 *   cc -shared -fPIC -I$CUDA/include scripts/trace_device.c -o trace.so -L$CUDA/lib64 -lcupti
 *   TRACE_OUT=trace CUDA_INJECTION64_PATH=./trace.so mpirun -n 2 minidirac bench solver ...
 * Each rank writes trace.RANK, a line for each piece of work: what (K kernel, M copy, P copy
 * between GPUs), start and duration in microseconds, stream, blocks or bytes, name. */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out; /* the driver's callbacks take no argument of ours */

static void request(uint8_t **buffer, size_t *bytes, size_t *records) {
  *bytes = (size_t)8 << 20;
  *records = 0;
  *buffer = aligned_alloc(8, *bytes);
}

static void line(char what, uint64_t start_ns, uint64_t end_ns, unsigned stream, uint64_t size,
                 const char *name) {
  fprintf(out, "%c %.2f %.2f %u %llu %s\n", what, 1e-3 * (double)start_ns,
          1e-3 * (double)(end_ns - start_ns), stream, (unsigned long long)size, name);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                     size_t valid) {
  CUpti_Activity *record = NULL;
  (void)context, (void)stream, (void)bytes;
  while (out && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const CUpti_ActivityKernel10 *k = (const void *)record;
      line('K', k->start, k->end, k->streamId, (uint64_t)k->gridX, k->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const CUpti_ActivityMemcpy6 *m = (const void *)record;
      line('M', m->start, m->end, m->streamId, m->bytes, "copy");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
      const CUpti_ActivityMemcpyPtoP4 *p = (const void *)record;
      line('P', p->start, p->end, p->streamId, p->bytes, "copy to the other GPU");
    }
  }
  free(buffer);
}

static void finish(void) {
  if (!out) return; /* the driver may ask for the injection twice */
  cuptiActivityFlushAll(1);
  fclose(out);
  out = NULL;
}

/* Called by the driver. */
int InitializeInjection(void);
int InitializeInjection(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *path = getenv("TRACE_OUT");
  char name[4096];
  snprintf(name, sizeof name, "%s.%s", path ? path : "trace", rank ? rank : "0");
  out = fopen(name, "w");
  if (!out) return 0;
  cuptiActivityRegisterCallbacks(request, complete);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
  atexit(finish);
  return 1;
}
