/* The shares of the blocks of a march. */
#include "dirac/march_share.h"

#include <math.h>

/* By what blocks out of step are slower, as measured on an H200: 1.1 to 1.2. */
#define OUT_OF_STEP 1.15

/* Slices' time of the slowest helper when owners take `own` slices. */
static double helpers_time(const md_march_share *s, int own, double start) {
  const int helpers = s->blocks - s->owners, left = (s->length - own) * s->owners;
  if (left == 0) return 0.0;
  if (helpers == 0) return INFINITY;
  const double share = ceil((double)left / helpers);
  return share + start * (1.0 + ceil(share / (s->length - own)));
}

md_march_share md_march_share_out(int columns, int slices, int blocks, double start) {
  md_march_share s = {.blocks = blocks, .full = columns / blocks, .slices = slices};
  const int rest = columns % blocks;
  int pieces = rest > 0 ? blocks / rest : 1;
  while (slices % pieces) pieces--;
  s.owners = rest * pieces;
  s.length = s.own = slices / pieces;
  double best = s.length + start;
  for (int own = s.length - 1; own > 0; own--) {
    const double others = helpers_time(&s, own, start), time = fmax(own + start, others);
    if (time < best) best = time, s.own = own;
  }
  s.left = (s.length - s.own) * s.owners;
  s.by_pieces = md_divisor_of(pieces);
  s.by_left = md_divisor_of(s.left > 0 ? s.length - s.own : 1);
  s.by_helpers = md_divisor_of(s.owners < blocks ? blocks - s.owners : 1);
  return s;
}

int md_march_even_blocks(int columns, int slices, int blocks) {
  const int rest = columns % blocks;
  double best = columns / blocks * slices + OUT_OF_STEP * rest * slices / blocks;
  int even = blocks;
  for (int n = blocks - 1; n > blocks / 2; n--)
    if (columns % n == 0 && (double)columns / n * slices < best)
      best = (double)columns / n * slices, even = n;
  return even;
}

int md_march_band(const int tiles[3], int y, int z, int blocks) {
  int best = 1;
  double best_surface = 1e9;
  for (int band = 1; band <= tiles[1]; band++) {
    if (tiles[1] % band) continue;
    double layers = (double)blocks / (tiles[0] * band);
    if (layers < 1.0) layers = 1.0;
    double surface = band == tiles[1] ? 0.0 : 2.0 / (band * y);
    if (layers < tiles[2]) surface += 2.0 / (layers * z);
    if (surface < best_surface) best = band, best_surface = surface;
  }
  return best;
}
