#include "base/device.h"
#include "base/timer.h"
#include "dirac/operator.h"
#include "lattice/gauge_start.h"
#include "lattice/source.h"
#include "lattice/linear.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define T(x) do { if ((x) != MD_OK) { printf("FAIL %s: %s\n", #x, c->message); exit(1);} } while (0)
static double copy_rate(md_context *c) {
  void *a, *b; size_t n = (size_t)2 << 30; md_device_timer *t; double v[11];
  T(md_device_allocate(c, n, "a", &a)); T(md_device_allocate(c, n, "b", &b)); T(md_device_timer_create(c, &t));
  for (int i = 0; i < 11; i++) { md_device_timer_start(t); T(md_device_copy(c, b, a, n)); v[i] = md_device_timer_stop_s(t); }
  md_device_free(a); md_device_free(b); md_device_timer_destroy(t);
  return 2.0 * (double)n / md_median(v, 11) * 1e-9;
}
int main(int argc, char **argv) {
  md_context ctx, *c = &ctx;
  T(md_context_open(c, &argc, &argv));
  T(md_device_open(c));
  md_layout_request req = {{48, 48, 48, 64}, {0}, false};
  sscanf(argv[1], "%dx%dx%dx%d", &req.global[0], &req.global[1], &req.global[2], &req.global[3]);
  md_geometry *g; T(md_geometry_create(c, &req, &g));
  double t0 = md_time_s();
  md_gauge gauge; T(md_gauge_create(c, g, &gauge)); T(md_gauge_start_hot(c, &gauge, 3));
  double copy = copy_rate(c);
  printf("%s copy %.0f GB/s, gauge %.1f s\n", argv[1], copy, md_time_s() - t0);
  md_field src[2]; const md_field_shape hs = {MD_DOUBLE, MD_HOST, 6, 1, true};
  for (int p = 0; p < 2; p++) T(md_field_create(c, g, &hs, p, &src[p]));
  md_source_gaussian(src, 5);
  for (int k = 2; k < argc; k++) { /* precision:reals:rhs[:V or block] */
    char pn[20], rn[20], opt[64] = ""; int nr;
    sscanf(argv[k], "%19[^:]:%19[^:]:%d:%63s", pn, rn, &nr, opt);
    unsetenv("MD_BLOCK"); unsetenv("MD_V"); unsetenv("MD_THREADS"); unsetenv("MD_B");
    for (char *w = strtok(opt, "/"); w; w = strtok(NULL, "/")) setenv(w[0] == 'b' ? "MD_BLOCK" : w[0] == 't' ? "MD_THREADS" : w[0] == 'v' ? "MD_V" : "MD_B", w + 1, 1);
    md_backend_request r = {(md_precision)md_precision_of(pn), (md_reconstruct)md_reconstruct_of(rn), MD_PACKING_NONE, nr, true};
    md_dirac d; t0 = md_time_s(); T(md_dirac_create(c, &gauge, "cuda", &r, &d)); double load = md_time_s() - t0;
    md_field in, out; T(md_dirac_field(c, &d, 1, &in)); T(md_dirac_field(c, &d, 0, &out));
    if (nr == 1) T(md_field_convert(c, &in, &src[1]));
    else { md_field many; md_field_shape ms = {MD_DOUBLE, MD_HOST, 6, nr, true}; T(md_field_create(c, g, &ms, 1, &many)); for (int q = 0; q < nr; q++) md_field_copy_rhs(&many, q, &src[1], 0); T(md_field_convert(c, &in, &many)); md_field_destroy(&many); }
    md_device_timer *t; T(md_device_timer_create(c, &t)); double v[15]; int batch = g->sites > 400000 ? 5 : 40;
    for (int i = 0; i < 3; i++) T(md_dirac_hop(c, &d, &out, &in, NULL));
    for (int i = 0; i < 15; i++) { md_device_timer_start(t); for (int j = 0; j < batch; j++) T(md_dirac_hop(c, &d, &out, &in, NULL)); v[i] = md_device_timer_stop_s(t) / batch; }
    double s = md_median(v, 15), vec = 12.0 * nr * (double)md_precision_bytes(r.precision) + (r.precision == MD_HALF ? 8 : 0);
    double bytes = (d.backend->link_bytes(&r) + vec) * (double)g->sites;
    printf("%-28s %8.1f us %8.0f GFLOP/s %7.0f GB/s fraction %.3f  load %.2f s\n", argv[k], s * 1e6, 570.0 * nr * (double)g->sites / s * 1e-9, bytes / s * 1e-9, bytes / s * 1e-9 / copy, load);
    fflush(stdout);
    md_field_destroy(&in); md_field_destroy(&out); md_dirac_destroy(&d); md_device_timer_destroy(t);
  }
  return 0;
}
