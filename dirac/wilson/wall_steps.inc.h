/* Matrices of the fifth dimension by vectors of all slices, for files that are compiled for each
 * storage type (lattice/fields/stored_lanes.inc.h). */
#include "dirac/wilson/wilson.h"

#include <math.h>

/* What a matrix and a way come to for a chirality. */
typedef struct steps {
  int slices;
  bool down; /* X takes from the next slice: they go from the last one to the first */
  ARITH own, before, across; /* factors of a slice, of the one before it, of that over the walls */
  bool inverse;              /* and of the inverse: of a slice, of the result before it, */
  ARITH unit, ratio, start, wall; /* of the first result, of all others in that */
  const double *dense;            /* in place of all that: m of the matrix, times `factor` */
  ARITH factor;
} steps;

/* m NULL: the unit matrix. lower: of spins 2 and 3. */
static steps steps_of(const md_wall_matrix *m, const md_wall_way *way, int slices, bool lower) {
  const double factor = way->gamma5 && lower ? -way->factor : way->factor;
  steps s = {.slices = slices, .down = lower != way->adjoint, .factor = (ARITH)factor};
  if (!m) {
    s.own = s.factor;
    return s;
  }
  if (m->dense) s.dense = m->m;
  s.inverse = m->over_hop != 0.0 || m->over_unit != 1.0;
  const double ratio = -m->over_hop / m->over_unit;
  s.own = (ARITH)(factor * m->unit);
  s.before = (ARITH)(factor * m->hop);
  s.across = (ARITH)(-factor * m->hop * m->mass);
  s.unit = (ARITH)(1.0 / m->over_unit);
  s.ratio = (ARITH)ratio;
  s.start = (ARITH)(1.0 / (m->over_unit * (1.0 + m->mass * pow(ratio, slices))));
  s.wall = (ARITH)-m->mass;
  return s;
}

static inline void multiply(const steps *s, const VECTOR *x, VECTOR *y) {
  const int n = s->slices;
  for (int i = 0; i < n; i++) {
    y[i] = (VECTOR){0};
    for (int j = 0; j < n; j++)
      y[i] += s->factor * (ARITH)s->dense[s->down ? i * n + j : j * n + i] * x[j];
  }
}

/* y = (unit + hop X) (over_unit + over_hop X)^-1 x: the inverse by its slice next to the wall, and
 * from there slice by slice. y is not x. */
static inline void walk(const steps *s, const VECTOR *x, VECTOR *y) {
  const int n = s->slices, step = s->down ? -1 : 1, first = s->down ? n - 1 : 0;
  VECTOR z = x[first];
  if (s->inverse) {
    VECTOR sum = {0};
    for (int i = 1; i < n; i++) sum = s->ratio * (x[first + i * step] + sum);
    z = s->start * (z + s->wall * sum);
  }
  const VECTOR start = z;
  for (int i = 1; i < n; i++) {
    const int at = first + i * step;
    const VECTOR next = s->inverse ? s->unit * x[at] + s->ratio * z : x[at];
    y[at] = s->own * next + s->before * z;
    z = next;
  }
  y[first] = s->own * start + s->across * z;
}

static inline void apply_steps(const steps *s, const VECTOR *x, VECTOR *y) {
  if (s->dense)
    multiply(s, x, y);
  else
    walk(s, x, y);
}
