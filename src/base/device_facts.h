#pragma once

#include "base/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a report says of the GPU of this rank. */
typedef struct md_device_facts {
  bool open;                       /* false: no GPU is open, and nothing below is set */
  unsigned char uuid[16];          /* tells GPUs of all hosts apart */
  char name[128];                  /* as its driver calls it */
  long long memory_bytes;          /* of the GPU */
  int clock_mhz, memory_clock_mhz; /* the highest ones that it may run at; 0: not told */
  int driver_cuda;                 /* newest CUDA that the driver serves: 13010 for 13.1 */
  bool ecc;                        /* its memory corrects errors */
} md_device_facts;

/* Asks the GPU that md_device_open took, and opens none. Local. */
void md_device_ask(const md_context *context, md_device_facts *facts);

#ifdef __cplusplus
}
#endif
