#include "lattice/fields/block_rows.h"
#include "lattice/fields/rows_lanes.h"

#include <math.h>
#include <string.h>

enum { VECTORS = 4, CHUNK = VECTORS * LANES, MOST_REALS = 128 };
enum { TILE_ROWS = 4, TILE_VECTORS = 2, TILE_REALS = TILE_VECTORS * LANES };

/* sum += the chunk of (rows times matrix) that starts at real `first`. */
static inline void multiply(int n, int width, const double *rows, const md_block_matrix *m,
                            int first, lanes sum[MD_BLOCK_ROWS][VECTORS]) {
  const double *plain = m->plain + first, *turned = m->turned + first;
  lanes now[MD_BLOCK_ROWS][VECTORS]; /* in registers */
  memcpy(now, sum, sizeof now);
  for (int k = 0; k < n; k++, plain += width, turned += width)
    for (int v = 0; v < VECTORS; v++) {
      const lanes p = load(plain + v * LANES), t = load(turned + v * LANES);
      for (int r = 0; r < MD_BLOCK_ROWS; r++)
        now[r][v] = now[r][v] + rows[2 * (r * n + k)] * p + rows[2 * (r * n + k) + 1] * t;
    }
  memcpy(sum, now, sizeof now);
}

static void store(int n, int first, lanes sum[MD_BLOCK_ROWS][VECTORS], double *rows) {
  const int left = 2 * n - first, reals = left < CHUNK ? left : CHUNK;
  for (int r = 0; r < MD_BLOCK_ROWS; r++)
    memcpy(rows + 2 * r * n + first, sum[r], (size_t)reals * sizeof(double));
}

static void update(int n, int width, const md_block_matrix *b, const double *x,
                   const md_block_matrix *a, double *y, double *z, const md_block_matrix *c) {
  double fresh[MD_BLOCK_ROWS * MOST_REALS];
  for (int first = 0; first < 2 * n; first += CHUNK) {
    lanes sum[MD_BLOCK_ROWS][VECTORS] = {0};
    if (z) {
      const int left = 2 * n - first, reals = left < CHUNK ? left : CHUNK;
      for (int r = 0; r < MD_BLOCK_ROWS; r++)
        memcpy(sum[r], z + 2 * r * n + first, (size_t)reals * sizeof(double));
      multiply(n, width, y, c, first, sum);
      store(n, first, sum, z);
      memset(sum, 0, sizeof sum);
    }
    multiply(n, width, y, b, first, sum);
    if (x) multiply(n, width, x, a, first, sum);
    store(n, first, sum, fresh);
  }
  memcpy(y, fresh, MD_BLOCK_ROWS * 2 * (size_t)n * sizeof *y);
}

static void gram(int n, int width, const double *x, const double *plain, const double *turned,
                 bool whole, double *cell) {
  for (int first = 0; first < 2 * n; first += TILE_REALS)
    for (int i = 0; i < n && (whole || 2 * i < first + TILE_REALS); i += TILE_ROWS) {
      lanes sum[TILE_ROWS][TILE_VECTORS] = {0};
      for (int row = 0; row < MD_BLOCK_CELL_ROWS; row++) {
        const double *from = x + row * width + 2 * i;
        for (int v = 0; v < TILE_VECTORS; v++) {
          const lanes p = load(plain + row * width + first + v * LANES);
          const lanes t = load(turned + row * width + first + v * LANES);
          for (int k = 0; k < TILE_ROWS; k++)
            sum[k][v] = sum[k][v] + from[2 * k] * p + from[2 * k + 1] * t;
        }
      }
      for (int k = 0; k < TILE_ROWS; k++)
        memcpy(cell + (i + k) * width + first, sum[k], sizeof sum[k]);
    }
}

static bool add(int count, double limit, const double *numbers, double *high, double *low) {
  /* Adding and taking away 3 * 2^51 units leaves a multiple of the unit. */
  const double to_high = 3.0 * 0x1p51 * 0x1p-32 * limit, to_low = 3.0 * 0x1p51 * 0x1p-64 * limit;
  double size[LANES] = {0.0}, all = 0.0;
  for (int e = 0; e < count; e += LANES)
    for (int l = 0; l < LANES; l++) size[l] += fabs(numbers[e + l]);
  for (int l = 0; l < LANES; l++) all += size[l];
  if (!(all < limit)) return false;
  for (int e = 0; e < count; e++) {
    const double h = (numbers[e] + to_high) - to_high, rest = numbers[e] - h;
    high[e] += h;
    low[e] += (rest + to_low) - to_low;
  }
  return true;
}

/* `reals` numbers of one storage type. */
#define DEFINE_ROWS(NAME, STORED, LOAD, STORE)                                                     \
  static void load_##NAME(int reals, const void *data, double unit, double *rows) {                \
    const STORED *from = data;                                                                     \
    for (int e = 0; e < reals; e++) rows[e] = unit * (double)LOAD(from[e]);                        \
  }                                                                                                \
  static void store_##NAME(int reals, const double *rows, float inverse, void *data) {             \
    STORED *to = data;                                                                             \
    for (int e = 0; e < reals; e++) to[e] = STORE((float)rows[e] * inverse);                       \
  }
DEFINE_ROWS(single, float, , )
DEFINE_ROWS(half, uint16_t, md_float_of_half, md_half_of_float)
DEFINE_ROWS(bf16, uint16_t, md_float_of_bf16, md_bf16_of_float)
DEFINE_ROWS(fixed, int16_t, md_float_of_fixed, md_fixed_of_float)

static const struct {
  void (*load)(int reals, const void *data, double unit, double *rows);
  void (*store)(int reals, const double *rows, float inverse, void *data);
} storage[MD_PRECISIONS] = {[MD_SINGLE] = {load_single, store_single},
                            [MD_HALF] = {load_half, store_half},
                            [MD_BF16] = {load_bf16, store_bf16},
                            [MD_FIXED] = {load_fixed, store_fixed}};

static void *site_of(const md_field *f, int64_t site, int reals) {
  return (char *)f->data + (size_t)site * (size_t)reals * md_precision_bytes(f->precision);
}

static void load_site(const md_field *f, int64_t site, double *rows) {
  const int reals = MD_BLOCK_ROWS * 2 * f->n_rhs;
  storage[f->precision].load(reals, site_of(f, site, reals), f->scale ? f->scale[site] : 1.0, rows);
}

static void store_site(double *rows, md_field *f, int64_t site) {
  const int reals = MD_BLOCK_ROWS * 2 * f->n_rhs;
  float inverse = 1.0f;
  if (f->scale) {
    int32_t largest = 0; /* bits, ordered as the magnitudes are, NaN above all */
    for (int e = 0; e < reals; e++) {
      const union {
        float value;
        int32_t bits;
      } word = {(float)rows[e]};
      largest = (word.bits & INT32_MAX) > largest ? word.bits & INT32_MAX : largest;
    }
    const union {
      int32_t bits;
      float value;
    } scale = {md_field_scale_bits(f->precision, largest)};
    f->scale[site] = scale.value;
    inverse = 1.0f / scale.value;
  }
  storage[f->precision].store(reals, rows, inverse, site_of(f, site, reals));
  load_site(f, site, rows);
}

const md_block_rows NAME(md_block_rows_, MD_ISA) = {CHUNK, update,    gram,
                                                    add,   load_site, store_site};
