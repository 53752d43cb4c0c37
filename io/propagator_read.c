#include "io/bundle.h"
#include "io/child.h"

#include <string.h>

_Static_assert((int)MD_BUNDLE_DATASETS <= (int)MD_CHILD_DATASETS, "datasets of a child");

static md_status check_own_attributes(md_context *context, md_child *child,
                                      const md_geometry *geometry) {
  int64_t dims[MD_DIMS], version = 0;
  const md_attribute of_version = {"format_version", MD_ATTRIBUTE_INTEGER, 1, &version};
  const md_attribute of_dims = {"dims", MD_ATTRIBUTE_INTEGER, MD_DIMS, dims};
  const char *path = child->path;
  const int *g = geometry->global;
  bool found = false;
  MD_TRY(md_child_find(context, child, &of_version, &found));
  if (!found || version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", path,
                   MD_BUNDLE_VERSION, (long long)version);
  MD_TRY(md_child_find(context, child, &of_dims, &found));
  if (!found) return md_fail(context, MD_INPUT, "%s: attribute dims is missing", path);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != g[d])
      return md_fail(context, MD_INPUT,
                     "%s is of a %lldx%lldx%lldx%lld lattice, needed is one of %dx%dx%dx%d", path,
                     (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                     g[0], g[1], g[2], g[3]);
  return MD_OK;
}

static md_status open_dataset(md_context *context, md_child *child, const md_bundle_sites *s,
                              bool *unguarded) {
  const md_h5_shape shape = md_bundle_shape(s);
  int64_t parity = -1;
  bool found = true;
  MD_TRY(md_child_open_sites(context, child, s->name, s->field[0]->geometry->global, &shape));
  *unguarded = *unguarded || child->number > 0;
  if (!md_bundle_one_parity(s)) return MD_OK;
  MD_TRY(md_child_find(context, child, &(md_attribute){"parity", MD_ATTRIBUTE_INTEGER, 1, &parity},
                       &found));
  if (!found || parity != s->field[0]->parity)
    return md_fail(context, MD_INPUT, "%s: dataset %s must be of parity %d, got %lld", child->path,
                   s->name, s->field[0]->parity, (long long)parity);
  return MD_OK;
}

static md_status open_bundle(md_context *context, md_child *child, const md_bundle *b) {
  bool unguarded = false;
  MD_TRY(md_child_open(context, child, b->object, strcmp(b->object, b->group) != 0));
  MD_TRY(check_own_attributes(context, child, b->geometry));
  MD_TRY(md_child_attributes(context, child, b->attributes, b->attribute_count));
  for (int i = 0; i < b->dataset_count; i++)
    MD_TRY(open_dataset(context, child, &b->datasets[i], &unguarded));
  if (unguarded) md_h5_warn_of_sums(context, child->path);
  return MD_OK;
}

/* One right-hand side. Local. */
static md_status read_rhs(md_context *context, md_child *child, int dataset,
                          const md_bundle_sites *s, int rhs) {
  const md_geometry *g = s->field[0]->geometry;
  const md_h5_shape shape = md_bundle_shape(s);
  size_t bytes;
  const md_slab_plan plan = md_bundle_plan(s, &bytes);
  for (int i = 0; i < plan.count; i++) {
    const md_slab slab = md_slab_at(g, &plan, i);
    MD_TRY(md_child_read_slab(context, child, dataset, g, &shape, rhs, &slab));
    if (child->number > 0)
      return md_fail(context, MD_INPUT, "%s: dataset %s is damaged, its Fletcher32 checksums fail",
                     child->path, s->name);
    if (!md_bundle_copy_slab(s, &slab, rhs, child->shared, true))
      return md_fail(context, MD_INPUT, "%s: dataset %s has values that are NaN or infinite",
                     child->path, s->name);
  }
  return MD_OK;
}

/* Local. */
static md_status read_all(md_context *context, md_child *child, const md_bundle *b) {
  MD_TRY(open_bundle(context, child, b));
  for (int i = 0; i < b->dataset_count; i++)
    for (int r = 0; r < b->datasets[i].field[0]->n_rhs; r++)
      MD_TRY(read_rhs(context, child, i, &b->datasets[i], r));
  return MD_OK;
}

md_status md_bundle_read(md_context *context, const char *path, const md_bundle *b) {
  md_child child;
  size_t most = MD_DIMS * sizeof(int64_t);
  for (int i = 0; i < b->dataset_count; i++) {
    size_t bytes;
    md_bundle_plan(&b->datasets[i], &bytes);
    most = bytes > most ? bytes : most;
  }
  for (int i = 0; i < b->attribute_count; i++) {
    const size_t bytes = md_attribute_bytes(&b->attributes[i]);
    most = bytes > most ? bytes : most;
  }
  md_status status = md_child_start(context, path, most, &child);
  if (status == MD_OK) status = read_all(context, &child, b);
  md_child_stop(&child);
  return md_agree(context, status);
}
