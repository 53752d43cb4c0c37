/* The index maps of packing.h as JSON, for scripts/plot_packings.py: tiles of
 * [item, row, column, part, sign], row by row. */
#include "dirac/tensor/packing.h"

#include <stdio.h>

static const char *separator = "";

static void print_entry(md_tile_entry e, bool last) {
  printf("[%d,%d,%d,%d,%d]%s", e.item, e.row, e.column, e.part, e.sign, last ? "" : ",");
}

static void open_tile(const char *name, int rows, int columns) {
  printf("%s\n{\"name\":\"%s\",\"rows\":%d,\"columns\":%d,\"entries\":[", separator, name, rows,
         columns);
  separator = ",";
}

static void print_tiles(md_packing packing, const char *name) {
  char title[64];
  for (int kind = 0; kind < 3; kind++) {
    snprintf(title, sizeof title, "%s-%c", name, "abc"[kind]);
    open_tile(title, MD_TILE, MD_TILE);
    for (int at = 0; at < MD_TILE * MD_TILE; at++) {
      const int i = at / MD_TILE, j = at % MD_TILE;
      const md_tile_entry e = kind == 0   ? md_tile_a(packing, 0, i, j)
                              : kind == 1 ? md_tile_b(packing, 0, i, j)
                                          : md_tile_c(packing, 0, i, j);
      print_entry(e, at == MD_TILE * MD_TILE - 1);
    }
    printf("]}");
  }
}

static void print_stacked(md_precision precision, const char *name) {
  open_tile(name, MD_STACKED_K, MD_STACKED_COLUMNS);
  for (int k = 0; k < MD_STACKED_K; k++)
    for (int column = 0; column < MD_STACKED_COLUMNS; column++)
      print_entry(md_stacked_b(precision, k, column),
                  k == MD_STACKED_K - 1 && column == MD_STACKED_COLUMNS - 1);
  printf("]}");
}

/* Of quarks with four spins: rows g and g+8 of A for both accumulators, [direction, spin, the spin
 * that is added, part, its sign]. */
static void print_spins(const char *name) {
  open_tile(name, 4, MD_STACKED_K);
  for (int at = 0; at < 4 * MD_STACKED_K; at++) {
    const int row = at / MD_STACKED_K % 2 * MD_SPIN_TILE;
    const int spin = md_spin_place_of(MD_SPIN_TILE, at / MD_STACKED_K / 2, row).spin;
    const md_stacked_k k = md_stacked_row(MD_HALF, at % MD_STACKED_K);
    const md_spin_partner p = md_spin_partner_of(k.direction, spin);
    const bool minus = k.part ? p.turn >= 2 : p.turn == 1 || p.turn == 2;
    const md_tile_entry e = {k.direction, spin, p.spin, k.part, minus ? -1 : 1};
    print_entry(e, at == 4 * MD_STACKED_K - 1);
  }
  printf("]}");
}

int main(void) {
  printf("[");
  print_tiles(MD_PACKING_SINGLE, "single");
  print_tiles(MD_PACKING_DIAGONAL, "diagonal");
  print_tiles(MD_PACKING_BLOCK8, "block8");
  print_stacked(MD_HALF, "stacked-16bit");
  print_stacked(MD_DOUBLE, "stacked-double");
  print_spins("spins");
  printf("\n]\n");
  return 0;
}
