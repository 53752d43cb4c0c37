#include "io/bundle.h"
#include "io/child.h"

#include <stdlib.h>
#include <string.h>

/* Requests: OPEN, then numbers of slabs of all datasets and right-hand sides. */
enum { OPEN = -1 };

/* Attributes first, then a slab: both seen by the child and the parent. */
typedef struct common {
  long long damaged;
  bool unguarded; /* some dataset has no checksums */
  _Alignas(64) unsigned char data[];
} common;

typedef struct reader {
  const char *path;
  const md_bundle *b;
  hid_t file, dataset[MD_BUNDLE_DATASETS]; /* in the child */
} reader;

static size_t attribute_bytes(const md_attribute *a) {
  return (size_t)a->count * (a->type == MD_ATTRIBUTE_TEXT ? 1 : 8);
}

static md_status check_own_attributes(md_context *context, const char *path, hid_t object,
                                      const md_geometry *geometry) {
  int64_t dims[MD_DIMS], version = 0;
  const int *g = geometry->global;
  if (!md_h5_get_attribute(object,
                           &(md_attribute){"format_version", MD_ATTRIBUTE_INTEGER, 1, &version}) ||
      version != MD_BUNDLE_VERSION)
    return md_fail(context, MD_INPUT, "%s: format_version must be %d, got %lld", path,
                   MD_BUNDLE_VERSION, (long long)version);
  if (!md_h5_get_attribute(object, &(md_attribute){"dims", MD_ATTRIBUTE_INTEGER, 4, dims}))
    return md_fail(context, MD_INPUT, "%s: attribute dims is missing", path);
  for (int d = 0; d < MD_DIMS; d++)
    if (dims[d] != g[d])
      return md_fail(context, MD_INPUT,
                     "%s is of a %lldx%lldx%lldx%lld lattice, needed is one of %dx%dx%dx%d", path,
                     (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                     g[0], g[1], g[2], g[3]);
  return MD_OK;
}

/* The attributes one behind the other, each from a multiple of 8 bytes on. */
static md_status get_attributes(md_context *context, const reader *r, hid_t object, common *c) {
  unsigned char *at = c->data;
  for (int i = 0; i < r->b->attribute_count; i++) {
    md_attribute a = r->b->attributes[i];
    a.data = at;
    if (!md_h5_get_attribute(object, &a))
      return md_fail(context, MD_INPUT, "%s: attribute %s is missing or has another type or length",
                     r->path, a.name);
    at += (attribute_bytes(&a) + 7) / 8 * 8;
  }
  return MD_OK;
}

static md_status open_dataset(md_context *context, reader *r, int i, common *c) {
  const md_bundle_sites *s = &r->b->datasets[i];
  const md_h5_shape shape = md_bundle_shape(s);
  int64_t parity = -1;
  MD_TRY(md_h5_open_sites(context, r->path, r->file, s->name, s->field[0]->geometry->global, &shape,
                          &r->dataset[i]));
  c->unguarded = c->unguarded || !md_h5_has_sums(r->dataset[i]);
  if (md_bundle_one_parity(s) &&
      (!md_h5_get_attribute(r->dataset[i],
                            &(md_attribute){"parity", MD_ATTRIBUTE_INTEGER, 1, &parity}) ||
       parity != s->field[0]->parity))
    return md_fail(context, MD_INPUT, "%s: dataset %s must be of parity %d, got %lld", r->path,
                   s->name, s->field[0]->parity, (long long)parity);
  return MD_OK;
}

static md_status open_in_child(md_context *context, reader *r, common *c) {
  const md_bundle *b = r->b;
  hid_t object;
  MD_TRY(md_h5_open(context, r->path, &r->file));
  MD_TRY(md_h5_open_object(context, r->path, r->file, b->object, strcmp(b->object, b->group) != 0,
                           &object));
  MD_TRY(check_own_attributes(context, r->path, object, b->geometry));
  MD_TRY(get_attributes(context, r, object, c));
  H5Oclose(object);
  for (int i = 0; i < b->dataset_count; i++) MD_TRY(open_dataset(context, r, i, c));
  return MD_OK;
}

/* A request counts slabs fastest, then right-hand sides, then datasets. */
typedef struct part {
  int dataset, rhs, slab;
} part;

static bool part_of(const md_bundle *b, int request, part *p) {
  for (p->dataset = 0; p->dataset < b->dataset_count; p->dataset++) {
    size_t bytes;
    const md_bundle_sites *s = &b->datasets[p->dataset];
    const int slabs = md_bundle_plan(s, &bytes).count, all = slabs * s->field[0]->n_rhs;
    p->rhs = request / slabs;
    p->slab = request % slabs;
    if (request < all) return true;
    request -= all;
  }
  return false;
}

static md_slab slab_of(const md_bundle *b, const part *p) {
  const md_bundle_sites *s = &b->datasets[p->dataset];
  size_t bytes;
  const md_slab_plan plan = md_bundle_plan(s, &bytes);
  return md_slab_at(s->field[0]->geometry, &plan, p->slab);
}

static md_status serve(md_context *context, void *state, int request, void *shared) {
  reader *r = state;
  common *c = shared;
  part p = {0};
  if (request == OPEN) return open_in_child(context, r, c);
  if (!part_of(r->b, request, &p)) return MD_OK;
  const md_slab slab = slab_of(r->b, &p);
  const md_bundle_sites *s = &r->b->datasets[p.dataset];
  const md_h5_shape shape = md_bundle_shape(s);
  c->damaged = 0;
  return md_h5_read_slab(context, r->path, r->dataset[p.dataset], s->field[0]->geometry, &shape,
                         p.rhs, &slab, c->data, &c->damaged);
}

static void take_attributes(const md_bundle *b, const common *c) {
  const unsigned char *at = c->data;
  for (int i = 0; i < b->attribute_count; i++) {
    const md_attribute *a = &b->attributes[i];
    memcpy(a->data, at, attribute_bytes(a));
    if (a->type == MD_ATTRIBUTE_TEXT && a->count > 0) ((char *)a->data)[a->count - 1] = 0;
    at += (attribute_bytes(a) + 7) / 8 * 8;
  }
}

/* Local. */
static md_status read_all(md_context *context, const char *path, const md_bundle *b,
                          md_child *child) {
  part p = {0};
  MD_TRY(md_child_ask(context, child, OPEN));
  common *c = child->shared;
  take_attributes(b, c);
  if (c->unguarded) md_h5_warn_of_sums(context, path);
  for (int request = 0; part_of(b, request, &p); request++) {
    const md_bundle_sites *s = &b->datasets[p.dataset];
    const md_slab slab = slab_of(b, &p);
    MD_TRY(md_child_ask(context, child, request));
    if (c->damaged > 0)
      return md_fail(context, MD_INPUT, "%s: dataset %s is damaged, its Fletcher32 checksums fail",
                     path, s->name);
    if (!md_bundle_copy_slab(s, &slab, p.rhs, (double *)c->data, true))
      return md_fail(context, MD_INPUT, "%s: dataset %s has values that are NaN or infinite", path,
                     s->name);
  }
  return MD_OK;
}

md_status md_bundle_read(md_context *context, const char *path, const md_bundle *b) {
  reader r = {.path = path, .b = b};
  md_child child;
  size_t most = 0, attributes = 0;
  for (int i = 0; i < b->dataset_count; i++) {
    size_t bytes;
    md_bundle_plan(&b->datasets[i], &bytes);
    most = bytes > most ? bytes : most;
  }
  for (int i = 0; i < b->attribute_count; i++)
    attributes += (attribute_bytes(&b->attributes[i]) + 7) / 8 * 8;
  most = attributes > most ? attributes : most;
  md_status status = md_child_start(context, path, serve, &r, sizeof(common) + most, &child);
  if (status == MD_OK) status = read_all(context, path, b, &child);
  md_child_stop(&child);
  return md_agree(context, status);
}
