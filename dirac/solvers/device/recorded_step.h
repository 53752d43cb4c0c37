#pragma once

#include "base/device.h"
#include "dirac/operator.h"

/* A step that a solver queues again and again with the same arguments. The first time it is queued
 * kernel by kernel; the second time it is recorded; from then on the recording is replayed, so that
 * the host queues the step by one call and events between streams become edges of a graph. Kernels
 * that count iterations or messages count in device memory. */
typedef struct md_recorded_step {
  int times; /* queued so far, at most 2 */
  md_device_recording *recording;
} md_recorded_step;

/* Queues the step; `queue` queues it kernel by kernel, with two hops of the operator. *replayed,
 * unless NULL, tells whether `queue` was not called, so that the caller counts on by itself what it
 * counts there. Failures of exchanges are deferred. Collective. */
md_status md_recorded_step_queue(md_context *context, md_recorded_step *step, md_dirac *dirac,
                                 md_status (*queue)(md_context *, void *user), void *user,
                                 bool *replayed);
void md_recorded_step_destroy(md_recorded_step *step);
