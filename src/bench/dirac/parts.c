#include "bench/dirac/parts.h"
#include "base/device.h"
#include "base/timer.h"
#include "bench/bandwidth/bandwidth.h"
#include "dirac/backend.h"
#include "lattice/halo/halo.h"

#include <stdio.h>

enum { AT_ONCE = 20, SAMPLES = 3 };
#define WINDOW_S 0.01 /* of one sample */

typedef struct part {
  md_dirac *dirac;
  md_field *fields;
  md_range range; /* MD_RANGE_ALL: the exchange */
  md_device_recording *recording;
} part;

static md_status queue_part(md_context *context, void *user) {
  part *p = user;
  md_dirac *d = p->dirac;
  for (int k = 0; k < AT_ONCE; k++) {
    if (p->range == MD_RANGE_ALL) {
      MD_TRY(md_halo_begin(d->halo, &p->fields[MD_ODD]));
      MD_TRY(md_halo_end(d->halo, &p->fields[MD_ODD]));
    } else {
      MD_TRY(d->backend->hop(context, d->state, &p->fields[MD_EVEN], &p->fields[MD_ODD], p->range,
                             NULL));
    }
  }
  return MD_OK;
}

static md_status replay(md_context *context, void *user) {
  return md_device_replay(context, ((part *)user)->recording);
}

static md_status time_part(md_context *context, part *p, md_part_time *time) {
  const md_space space = p->dirac->backend->space;
  md_status status = MD_OK;
  double samples[SAMPLES] = {0};
  int passes = 1;
  if (space == MD_DEVICE && md_halo_queued(p->dirac->halo))
    status = md_agree(context, md_device_record(context, queue_part, p, &p->recording));
  md_status (*const once)(md_context *, void *) = p->recording ? replay : queue_part;
  if (status == MD_OK) status = md_passes_for(context, space, once, p, WINDOW_S, 100, &passes);
  for (int k = 0; k < SAMPLES && status == MD_OK; k++)
    status = md_time_work(context, space, once, p, passes, &samples[k]);
  if (status == MD_OK) time->median_s = md_median(samples, SAMPLES) / AT_ONCE; /* sorts them */
  time->min_s = samples[0] / AT_ONCE;
  time->max_s = samples[SAMPLES - 1] / AT_ONCE;
  md_device_recording_destroy(p->recording);
  return status;
}

md_status md_hop_parts_time(md_context *context, md_dirac *dirac, md_field fields[MD_PARITIES],
                            md_hop_parts *parts) {
  const struct {
    md_range range;
    md_part_time *time;
  } all[] = {{MD_RANGE_ALL, &parts->exchange},
             {MD_RANGE_INTERIOR, &parts->interior},
             {MD_RANGE_BOUNDARY, &parts->boundary}};
  *parts = (md_hop_parts){0};
  if (dirac->geometry->halo_sites == 0) return MD_OK;
  for (int k = 0; k < 3; k++) {
    part p = {dirac, fields, all[k].range, NULL};
    MD_TRY(time_part(context, &p, all[k].time));
  }
  return MD_OK;
}

void md_hop_parts_report(const md_dirac *dirac, const md_hop_parts *parts, cJSON *row) {
  const md_part_time *e = &parts->exchange, *i = &parts->interior, *b = &parts->boundary;
  if (dirac->geometry->halo_sites == 0) return;
  md_report_add(row,
                "exchange_seconds=%g exchange_seconds_min=%g exchange_seconds_max=%g "
                "interior_seconds=%g interior_seconds_min=%g interior_seconds_max=%g "
                "boundary_seconds=%g boundary_seconds_min=%g boundary_seconds_max=%g halo_bytes=%g",
                e->median_s, e->min_s, e->max_s, i->median_s, i->min_s, i->max_s, b->median_s,
                b->min_s, b->max_s, (double)md_halo_bytes(dirac->halo));
}
