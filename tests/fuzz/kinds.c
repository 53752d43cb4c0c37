#include "kinds.h"
#include "generate/generate.h"
#include "io/lattice_file.h"
#include "io/modes_file.h"
#include "io/propagator.h"
#include "io/vectors.h"
#include "lattice/fields/linear.h"
#include "lattice/fields/source.h"
#include "lattice/gauge/gauge.h"
#include "measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 5, RHS = 3, KEY_BYTES = 32 };

static struct {
  md_geometry *geometry;
  md_gauge gauge;
  md_field field[MD_PARITIES]; /* RHS right-hand sides */
  md_field vector;             /* one, even, of norm 1 */
} made;

static const md_modes_label belongs_to = {"0123456789abcdef", "naive", "antiperiodic"};

md_status fuzz_kinds_prepare(md_context *context) {
  const md_layout_request request = {.global = {2, 2, 2, 4}};
  const md_field_shape many = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, RHS, true, false};
  const md_field_shape one = {MD_DOUBLE, MD_HOST, MD_FERMION_REALS, 1, true, false};
  md_field odd = {.n_rhs = 1};
  double norm2, none = 0.0;
  MD_TRY(md_geometry_create(context, &request, &made.geometry));
  MD_TRY(md_gauge_create(context, made.geometry, &made.gauge));
  MD_TRY(md_gauge_start_hot(context, &made.gauge, 1));
  for (int p = 0; p < MD_PARITIES; p++)
    MD_TRY(md_field_create(context, made.geometry, &many, p, &made.field[p]));
  md_source_gaussian(made.field, 2);
  MD_TRY(md_field_create(context, made.geometry, &one, MD_EVEN, &made.vector));
  md_field both[MD_PARITIES] = {made.vector, odd};
  md_source_gaussian(both, 3);
  MD_TRY(md_linear_norm2(context, &made.vector, NULL, &norm2));
  const double scale = 1.0 / sqrt(norm2);
  md_linear_axpby(&scale, &made.vector, &none, &made.vector);
  return MD_OK;
}

static md_status write_links(md_context *context, const char *path, md_link_kind kind,
                             const char *format, md_precision precision) {
  static const char chain[] = "beta=5.7 seed=1 sweeps=3 overrelax=2", plaquettes[] = "0.1 0.2 0.3";
  md_file_texts texts = {0};
  md_lattice_output output = {.precision = precision, .texts = &texts};
  output.label.kind = kind;
  output.label.bare = kind != MD_LINKS_THIN;
  if (kind != MD_LINKS_THIN) strcpy(output.label.made, "hisq, naik epsilon 0");
  MD_TRY(md_lattice_format_find(context, path, format, &output.format));
  MD_TRY(md_file_texts_add(context, &texts, "minidirac chain", chain, strlen(chain)));
  MD_TRY(md_file_texts_add(context, &texts, "chain plaquettes", plaquettes, strlen(plaquettes)));
  const md_status status = md_lattice_save_as(context, path, &output, &made.gauge);
  md_file_texts_free(&texts);
  return status;
}

static md_status read_improved(md_context *context, const char *path, md_link_kind kind) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_improved_info info;
  const md_status status =
      md_improved_load(context, path, kind, grid, false, &geometry, &gauge, &info);
  if (status == MD_OK) {
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  md_lattice_info_destroy(&info.lattice);
  return status;
}

md_status fuzz_links_read(md_context *context, const char *path) {
  const int grid[MD_DIMS] = {0};
  md_geometry *geometry = NULL;
  md_gauge gauge;
  md_lattice_info info;
  md_chain_record record = {.found = false};
  md_status status =
      md_lattice_load_links(context, path, NULL, grid, false, &geometry, &gauge, &info);
  if (status == MD_OK) {
    status = md_chain_find(context, &info.notes.texts, &record);
    free(record.plaquettes);
    md_gauge_destroy(&gauge);
    md_geometry_destroy(geometry);
  }
  const md_link_kind kind = info.header.label.kind;
  md_lattice_info_destroy(&info);
  return status == MD_OK && kind != MD_LINKS_THIN ? read_improved(context, path, kind) : status;
}

/* Of any content: what info does. */
static md_status look(md_context *context, const char *path) {
  md_lattice_info info;
  md_datasets_found found;
  md_checksum_state state;
  md_status status = md_lattice_describe(context, path, &info);
  if (status == MD_OK && strcmp(info.header.content, "vectors") == 0)
    status = md_vectors_verify(context, path, made.geometry, &info, NULL, &state);
  else if (status == MD_OK)
    status = md_datasets_verify(context, path, &found);
  md_lattice_info_destroy(&info);
  return status;
}

static md_status read_modes(md_context *context, const char *path);

md_status fuzz_vectors_read(md_context *context, const char *path) {
  if (!md_vectors_recognised(context, path)) return MD_OK;
  const md_status read = md_propagator_read(context, path, made.field, NULL, 0);
  const md_status modes = read == MD_OK || read == MD_INPUT ? read_modes(context, path) : read;
  return read == MD_OK && modes == MD_INPUT ? read : modes;
}

static md_status write_solution(md_context *context, const char *path, const char *format,
                                md_precision precision) {
  char action[] = "naive";
  double mass = 0.1, residuals[RHS] = {1e-9, 2e-9, 3e-9};
  const md_attribute attributes[] = {{"mass", MD_ATTRIBUTE_REAL, 1, &mass},
                                     {"residuals", MD_ATTRIBUTE_REAL, RHS, residuals},
                                     {"action", MD_ATTRIBUTE_TEXT, 0, action}};
  return md_solution_write(context, path, md_vectors_format_of(path, format), precision, false,
                           made.field, made.field, attributes, 3);
}

/* Attributes as of a guess of solve. */
static md_status propagator(md_context *context, const char *path, bool write) {
  char action[KEY_BYTES] = "naive", boundary[KEY_BYTES] = "antiperiodic";
  double plaquette = 0.5;
  const md_attribute attributes[] = {{"plaquette", MD_ATTRIBUTE_REAL, 1, &plaquette},
                                     {"action", MD_ATTRIBUTE_TEXT, KEY_BYTES, action},
                                     {"boundary", MD_ATTRIBUTE_TEXT, KEY_BYTES, boundary}};
  return write ? md_solution_write(context, path, md_vectors_format_of(path, "hdf5"), MD_DOUBLE,
                                   false, made.field, NULL, attributes, 3)
               : md_propagator_read(context, path, made.field, attributes, 3);
}

static md_status checkpoint(md_context *context, const char *path, bool write) {
  char key[KEY_BYTES] = "mass 0.05";
  int64_t iteration = 5, counts[RHS] = {5, 4, 3};
  double norm2[RHS] = {1, 2, 3};
  const md_named_field named[] = {{"x", &made.field[0]}, {"r", &made.field[0]}};
  const md_attribute attributes[] = {{"belongs_to", MD_ATTRIBUTE_TEXT, KEY_BYTES, key},
                                     {"iteration", MD_ATTRIBUTE_INTEGER, 1, &iteration},
                                     {"rhs_iterations", MD_ATTRIBUTE_INTEGER, RHS, counts},
                                     {"r_norm2", MD_ATTRIBUTE_REAL, RHS, norm2}};
  return write ? md_checkpoint_write(context, path, named, 2, attributes, 4)
               : md_checkpoint_read(context, path, made.geometry, named, 2, attributes, 4);
}

static md_status write_modes(md_context *context, const char *path, const char *format,
                             md_precision store) {
  double values[MODES] = {0.01, 0.02, 0.03, 0.04, 0.05}, residuals[MODES] = {0};
  md_field vectors[MODES];
  for (int i = 0; i < MODES; i++) vectors[i] = made.vector;
  const md_modes modes = {
      .count = MODES, .values = values, .residuals = residuals, .vectors = vectors};
  const md_modes_info info = {
      .converged = MODES - 1, .tolerance = 1e-8, .store = store, .label = belongs_to};
  return md_modes_write(context, path, md_vectors_format_of(path, format), &modes, &info);
}

static md_status read_modes(md_context *context, const char *path) {
  md_modes_info info;
  md_modes modes;
  MD_TRY(md_modes_describe(context, path, &info));
  const int count = info.converged > 0 ? info.converged : 1;
  MD_TRY(md_modes_read(context, path, made.geometry, &belongs_to, &info, count, MD_HOST, &modes));
  md_modes_destroy(&modes);
  return MD_OK;
}

/* Of two lattices, one action, mass and source. */
static md_status study(md_context *context, const char *path, bool write) {
  md_study_lattice lattices[2] = {
      {.name = "cfg.1.h5", .state = MD_LATTICE_MEASURED, .sums = {.file = "scidac 1 2"}},
      {.name = "cfg.2.h5", .state = MD_LATTICE_MEASURED, .sums = {.file = "scidac 3 4"}}};
  md_study s = {.lattices = 2, .lattice = lattices};
  md_study_options *o = &s.options;
  memcpy(s.dims, made.geometry->global, sizeof s.dims);
  o->output = path;
  o->run.boundary = "antiperiodic";
  o->actions = (md_choices){.count = 1};
  o->masses = (md_reals){.value = {0.1}, .count = 1};
  o->sources.count = 1;
  o->sources.source[0] = (md_source){.word = MD_WORD_POINT, .points = 1, .text = "point:0,0,0,0"};
  strcpy(o->settings, "boundary antiperiodic");
  md_status status = md_study_records_create(context, &s);
  for (int i = 0; status == MD_OK && i < s.lattices * s.record; i++) s.records[i] = 0.5;
  if (status == MD_OK) status = write ? md_study_save(context, &s) : md_study_load(context, &s);
  free(s.records);
  return status;
}

typedef enum content {
  THIN,
  FAT,
  LONG,
  PROPAGATOR,
  CHECKPOINT,
  MODES_FILE,
  STUDY,
  SOLUTION
} content;
static const struct kind {
  const char *name;
  content content;
  const char *format; /* of links and vectors */
  md_precision precision;
} kinds[] = {{"thin.h5", THIN, "hdf5", MD_SINGLE},
             {"fat.h5", FAT, "hdf5", MD_SINGLE},
             {"long.h5", LONG, "hdf5", MD_DOUBLE},
             {"propagator.h5", .content = PROPAGATOR},
             {"checkpoint.h5", .content = CHECKPOINT},
             {"modes.h5", MODES_FILE, "hdf5", MD_SINGLE},
             {"fixed8.h5", MODES_FILE, "hdf5", MD_FIXED},
             {"study.h5", .content = STUDY},
             {"thin.lime", THIN, "ildg", MD_DOUBLE},
             {"fat.lime", FAT, "ildg", MD_SINGLE},
             {"long.lime", LONG, "ildg", MD_SINGLE},
             {"fat.milc", FAT, "milc", MD_SINGLE},
             {"thin.nersc", THIN, "nersc", MD_SINGLE},
             {"solution.lime", SOLUTION, "scidac", MD_DOUBLE},
             {"solution.milc", SOLUTION, "milc", MD_SINGLE},
             {"solution.fnal", SOLUTION, "fnal", MD_SINGLE},
             {"modes.lime", MODES_FILE, "scidac", MD_SINGLE}};
const int fuzz_kind_count = sizeof kinds / sizeof *kinds;

const char *fuzz_kind_name(int kind) {
  return kinds[kind].name;
}

bool fuzz_kind_is_hdf5(int kind) {
  return strstr(kinds[kind].name, ".h5") != NULL;
}

md_status fuzz_kind_write(md_context *context, int kind, const char *path) {
  static const md_link_kind of[] = {MD_LINKS_THIN, MD_LINKS_FAT, MD_LINKS_LONG};
  const struct kind *k = &kinds[kind];
  if (k->content == PROPAGATOR) return propagator(context, path, true);
  if (k->content == CHECKPOINT) return checkpoint(context, path, true);
  if (k->content == MODES_FILE) return write_modes(context, path, k->format, k->precision);
  if (k->content == STUDY) return study(context, path, true);
  if (k->content == SOLUTION) return write_solution(context, path, k->format, k->precision);
  return write_links(context, path, of[k->content], k->format, k->precision);
}

md_status fuzz_kind_read(md_context *context, int kind, const char *path) {
  const content what = kinds[kind].content;
  if (what > LONG) MD_TRY(look(context, path));
  if (what == PROPAGATOR) return propagator(context, path, false);
  if (what == CHECKPOINT) return checkpoint(context, path, false);
  if (what == MODES_FILE) return read_modes(context, path);
  if (what == STUDY) return study(context, path, false);
  if (what == SOLUTION) return fuzz_vectors_read(context, path);
  return fuzz_links_read(context, path);
}
