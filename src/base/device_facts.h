#pragma once

#include "base/status.h"
#include <stdbool.h>

MD_C_BEGIN

/* What the driver says of a GPU, asked once, by md_device_open, and kept in the context. Whatever
 * depends on a GPU follows from these numbers, and from none that stands elsewhere. */
typedef struct md_device_facts {
  bool open;                       /* false: no GPU is open, and nothing below is set */
  int number;                      /* among those that this process sees */
  unsigned char uuid[16];          /* tells GPUs of all hosts apart */
  char name[128];                  /* as its driver calls it */
  long long memory_bytes;          /* of the GPU */
  int clock_mhz, memory_clock_mhz; /* the highest ones that it may run at; 0: not told */
  int driver_cuda;                 /* newest CUDA that the driver serves: 13010 for 13.1 */
  bool ecc;                        /* its memory corrects errors */
  int capability;                  /* 90 for compute capability 9.0 */
  int code;                        /* which of the build's code it runs: 80, 90, ... */
  int multiprocessors;
  int block_shared_bytes;    /* most shared memory that a block may ask for */
  int reserved_shared_bytes; /* that every block takes beside what it asks for */
  long long l2_bytes;
  double bandwidth; /* bytes a second of its memory at the highest clock; 0: not told */
} md_device_facts;

/* As that of an H100, beside whose compute it is slower than that of an H200 by a third. */
static inline bool md_memory_is_slow(const md_device_facts *gpu) {
  return gpu->bandwidth > 0.0 && gpu->bandwidth < 4e12;
}

/* What a run pretends of its GPUs, so that what follows from the facts of other GPUs is tested on
 * one. 0: as it is. */
typedef struct md_device_wish {
  int multiprocessors, block_shared_kib, l2_mib, capability;
} md_device_wish;

/* Makes the facts of a GPU those that are wished for, and its name say so. A block gets no more
 * shared memory, and the kernels no newer code, than there is. */
void md_device_pretend(md_device_facts *facts, const md_device_wish *wish);
/* The GPU and the facts that launch shapes follow from, in words; "host" where none is open. */
enum { MD_DEVICE_WORDS_BYTES = 256 };
const char *md_device_words(const md_device_facts *facts, char text[MD_DEVICE_WORDS_BYTES]);

MD_C_END
