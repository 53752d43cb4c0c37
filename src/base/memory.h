#pragma once

#include "base/context.h"

enum { MD_ALIGNMENT = 64 }; /* bytes: a cache line, an AVX-512 register */

/* 64-byte aligned host memory; large amounts are compared with what there is. It is not touched
 * (OpenMP first touch is the caller's). *memory is NULL on failure, for zero bytes and in a dry
 * run, which counts them (base/memory_need.h); released with free(). `what` names it in the
 * message. Local. */
md_status md_allocate(md_context *context, size_t bytes, const char *what, void **memory);
/* Gives what was freed back to the system where malloc keeps it (glibc, arrays below 32 MiB), so
 * that a step with much memory of its own does not add to the peak of the next one. Local. */
void md_memory_release(void);
/* to = from by all threads of the context; the two do not overlap. Local. */
void md_copy_parallel(const md_context *context, void *to, const void *from, size_t bytes);
/* The same of `count` rows of `bytes` that begin to_pitch and from_pitch bytes apart. Local. */
void md_copy_rows_parallel(const md_context *context, void *to, size_t to_pitch, const void *from,
                           size_t from_pitch, size_t bytes, size_t count);
