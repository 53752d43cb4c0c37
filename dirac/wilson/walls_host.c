/* Matrices of the fifth dimension on fields of the host, compiled for each storage type (SUFFIX;
 * STORED; ARITH, double or float; SCALED where sites carry a scale) and each instruction set. A
 * chunk of sites, or one site with many right-hand sides, goes through all slices at once. */
#include "dirac/wilson/walls_host.h"
#include "lattice/fields/stored_lanes.inc.h"

#include "dirac/wilson/wall_steps.inc.h"

/* Sites of a chunk: those of a vector where all their reals wait for a scale; else enough to read
 * some lines of each plane. */
enum { CHUNK = SCALED ? LANES : 8 * LANES, PLANES = 12 /* of a chirality */ };

/* Where the reals of a chunk lie in a field: lines that go alike, of sites of a plane or of all of
 * a chirality and slice at one site. */
typedef struct places {
  int64_t start, line, half, slice;
} places;

static places places_of(const md_field *f, int64_t site) {
  const int64_t apart = md_field_planar(f) ? f->stride : f->n_rhs;
  return (places){md_field_planar(f) ? site : site * f->components * f->n_rhs, f->stride,
                  PLANES * apart, 2 * PLANES * apart};
}

#if SCALED
/* Scales of the sites of a chunk; the one of a site with many right-hand sides for all lanes. */
static VECTOR scales_at(const md_field *f, int64_t site, int count) {
  VECTOR scale = {0};
  for (int l = 0; l < LANES; l++)
    if (!md_field_planar(f) || l < count) scale[l] = f->scale[md_field_planar(f) ? site + l : site];
  return scale;
}

/* Sets the scales of the sites; returns what their reals are multiplied by. */
static VECTOR rescale(md_field *f, int64_t site, int count, md_lanes_int32 largest) {
  for (int l = 1; l < LANES && !md_field_planar(f); l++)
    if (largest[l] > largest[0]) largest[0] = largest[l];
  if (!md_field_planar(f)) largest = (md_lanes_int32){0} + largest[0];
  const VECTOR chosen = SCALE_OF(largest);
  for (int l = 0; l < (md_field_planar(f) ? count : 1); l++) f->scale[site + l] = chosen[l];
  return 1.0f / chosen;
}
#endif

/* Of sites with scales twice: for the largest real, then for good. */
static void apply_chunk(const steps of[2], bool add, const md_field *in, md_field *out,
                        int64_t site) {
  const places from = places_of(in, site), at = places_of(out, site);
  const bool one = md_field_planar(in);
  const int left = in->sites - site < CHUNK ? (int)(in->sites - site) : CHUNK;
  const int length = one ? left : PLANES * in->n_rhs, lines = one ? PLANES : 1;
  const int slices = of->slices;
#if SCALED
  const VECTOR scale = scales_at(in, site, left), old_scale = scales_at(out, site, left);
  md_lanes_int32 largest = {0};
#endif
  VECTOR units = {0};
  for (int pass = SCALED; pass >= 0; pass--) {
    for (int line = 0; line < 2 * lines; line++)
      for (int l = 0; l < length; l += LANES) {
        const int count = length - l < LANES ? length - l : LANES, half = line / lines;
        const STORED *x_at = (const STORED *)in->data + from.start + l;
        STORED *y_at = (STORED *)out->data + at.start + l;
        VECTOR x[MD_MOST_SLICES], y[MD_MOST_SLICES];
        x_at += half * from.half + line % lines * from.line;
        y_at += half * at.half + line % lines * at.line;
        for (int k = 0; k < slices; k++) x[k] = load_part(x_at + k * from.slice, count);
        apply_steps(&of[half], x, y);
        for (int k = 0; k < slices; k++) {
#if SCALED
          y[k] *= scale;
          if (add) y[k] += old_scale * load_part(y_at + k * at.slice, count);
          largest = md_lanes_larger((md_lanes_int32)y[k] & INT32_MAX, largest);
          if (pass == 0) store_part(y_at + k * at.slice, units * y[k], count, false);
#else
          if (add) y[k] += load_part(y_at + k * at.slice, count);
          store_part(y_at + k * at.slice, y[k], count, false);
#endif
        }
      }
#if SCALED
    if (pass == 1) units = rescale(out, site, left, largest);
#endif
  }
  (void)units;
}

static void apply(const md_wall_matrix *m, const md_wall_way *way, const md_field *in,
                  md_field *out) {
  const int slices = in->components / (2 * PLANES);
  const steps of[2] = {steps_of(m, way, slices, false), steps_of(m, way, slices, true)};
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < in->sites; site += md_field_planar(in) ? CHUNK : 1)
    apply_chunk(of, way->add, in, out, site);
}

const md_wall_kernels MD_JOIN(md_wall_host_, MD_JOIN(SUFFIX, MD_JOIN(_, MD_ISA))) = {apply};
