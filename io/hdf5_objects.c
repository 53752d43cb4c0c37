#include "io/hdf5_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOFT_LINKS_MOST = 8 };

/* An object that is being opened by its name. */
typedef struct opening {
  const md_h5_file *file;
  const char *name;
  bool refused; /* and the message says why */
} opening;

/* A link may lead into another file, and the library would open that without asking. */
static herr_t refuse_external(const char *from, const char *group, const char *there,
                              const char *object, unsigned *flags, hid_t access, void *user) {
  opening *o = user;
  (void)from, (void)group, (void)flags, (void)access;
  o->refused = true;
  (void)md_fail(o->file->context, MD_INPUT,
                "%s: %s leads through an external link to '%.200s' in the file '%.200s'; links to "
                "other files are not followed, copy the data into this one (h5repack or h5py)",
                o->file->path, o->name, object, there);
  return -1;
}

static herr_t keep_innermost(unsigned depth, const H5E_error2_t *error, void *minor) {
  if (depth == 0) *(hid_t *)minor = error->min_num;
  return 0;
}

static md_status fail_open(const opening *o) {
  md_context *context = o->file->context;
  hid_t minor = H5I_INVALID_HID;
  if (o->refused) return MD_INPUT;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &minor);
  if (minor == H5E_NOTFOUND)
    return md_fail(context, MD_INPUT, "%s: there is no %s in this file", o->file->path, o->name);
  if (minor == H5E_NLINKS)
    return md_fail(context, MD_INPUT, "%s: %s leads through more than %d soft links", o->file->path,
                   o->name, SOFT_LINKS_MOST);
  char step[300];
  snprintf(step, sizeof step, "opening %.280s", o->name);
  return md_h5_fail(o->file, MD_INPUT, step);
}

/* Where a dataset has its data: in the file, or in others by one of two ways. */
typedef enum storage { HERE, VIRTUAL, EXTERNAL, UNKNOWN } storage;

static storage storage_of(hid_t dataset) {
  const hid_t create = H5Dget_create_plist(dataset);
  if (create < 0) return UNKNOWN;
  const H5D_layout_t layout = H5Pget_layout(create);
  const int external = layout == H5D_VIRTUAL ? 0 : H5Pget_external_count(create);
  MD_H5_CLOSE(create);
  if (layout == H5D_VIRTUAL) return VIRTUAL;
  if (external > 0) return EXTERNAL;
  return layout == H5D_LAYOUT_ERROR || external < 0 ? UNKNOWN : HERE;
}

/* Data that the file itself does not hold are refused before they are looked for. */
static md_status check_storage(const md_h5_file *file, const char *name, hid_t dataset) {
  const storage where = storage_of(dataset);
  if (where == HERE) return MD_OK;
  if (where == UNKNOWN) return md_h5_fail(file, MD_INPUT, "reading the layout of a dataset");
  return md_fail(file->context, MD_INPUT,
                 "%s: %s %s; data in other files are not read, copy them into this one (h5repack "
                 "or h5py)",
                 file->path, name,
                 where == VIRTUAL ? "is a virtual dataset" : "has external raw storage");
}

md_status md_h5_open_object(const md_h5_file *file, const char *name, bool dataset, hid_t *object) {
  opening o = {.file = file, .name = name};
  const hid_t access = H5Pcreate(H5P_LINK_ACCESS);
  const bool guarded = H5Pset_elink_cb(access, refuse_external, &o) >= 0 &&
                       H5Pset_nlinks(access, SOFT_LINKS_MOST) >= 0;
  *object = guarded ? H5Oopen(file->id, name, access) : H5I_INVALID_HID;
  md_status status = *object < 0 ? fail_open(&o) : MD_OK;
  MD_H5_CLOSE(access);
  if (status == MD_OK && H5Iget_type(*object) != (dataset ? H5I_DATASET : H5I_GROUP))
    status = md_fail(file->context, MD_INPUT, "%s: %s must be a %s", file->path, name,
                     dataset ? "dataset" : "group");
  if (status == MD_OK && dataset) status = check_storage(file, name, *object);
  if (status == MD_OK) return MD_OK;
  MD_H5_CLOSE(*object);
  *object = H5I_INVALID_HID;
  return status;
}

enum { OBJECTS_MOST = 512, LEVELS_MOST = 8 };

/* The list is its own queue: groups in it wait for their turn, so that nothing here is called
 * deeper than a file's author likes. */
typedef struct listing {
  md_notes *notes;
  int turn; /* record whose members are being listed */
  md_datasets_found found;
  bool full;
} listing;

static const char group_detail[] = "group";

static bool has_room(listing *l) {
  l->full = l->full || l->notes->record_count >= OBJECTS_MOST;
  return !l->full;
}

static void describe_space(hid_t space, char *text, size_t bytes) {
  hsize_t extents[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, extents, NULL);
  *text = 0;
  for (int i = 0; i < rank; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "[%llu]", (unsigned long long)extents[i]);
  }
}

static herr_t note_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data) {
  listing *l = data;
  md_record record = {.attribute = true, .bytes = (int64_t)info->data_size};
  if (!has_room(l)) return 1;
  snprintf(record.type, sizeof record.type, "%.64s@%.60s", l->notes->records[l->turn].type, name);
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  const hid_t space = id < 0 ? H5I_INVALID_HID : H5Aget_space(id);
  if (space >= 0) describe_space(space, record.detail, sizeof record.detail);
  MD_H5_CLOSE(space, id);
  md_notes_record(l->notes, &record);
  return 0;
}

static void describe_dataset(hid_t dataset, md_record *record) {
  static const char *const elsewhere[] = {[VIRTUAL] = "virtual dataset",
                                          [EXTERNAL] = "external raw storage",
                                          [UNKNOWN] = "dataset of unknown layout"};
  const storage where = storage_of(dataset);
  if (where != HERE) {
    snprintf(record->detail, sizeof record->detail, "%s", elsewhere[where]);
    return;
  }
  const hid_t space = H5Dget_space(dataset);
  if (space < 0) return;
  describe_space(space, record->detail, sizeof record->detail);
  record->bytes = (int64_t)H5Dget_storage_size(dataset);
  MD_H5_CLOSE(space);
}

static void describe_object(listing *l, hid_t object, md_record *record) {
  H5O_info_t info;
  if (object < 0 || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) {
    snprintf(record->detail, sizeof record->detail, "cannot be opened");
    l->found.damaged++;
    return;
  }
  record->offset = (int64_t)info.addr;
  for (int i = 0; i < l->notes->record_count; i++) /* a hard link back or aside */
    if (l->notes->records[i].offset == record->offset && !l->notes->records[i].attribute) {
      snprintf(record->detail, sizeof record->detail, "another name of %.60s",
               l->notes->records[i].type);
      return;
    }
  if (info.type == H5O_TYPE_DATASET) {
    describe_dataset(object, record);
    if (*record->detail != '[') l->found.unseen = true;
  } else
    snprintf(record->detail, sizeof record->detail, "%s",
             info.type == H5O_TYPE_GROUP ? group_detail : "type");
}

static herr_t note_link(hid_t group, const char *name, const H5L_info_t *info, void *data) {
  listing *l = data;
  md_record record = {0};
  if (!has_room(l)) return 1;
  const char *folder = l->notes->records[l->turn].type;
  const int length =
      snprintf(record.type, sizeof record.type, "%s/%s", strcmp(folder, "/") ? folder : "", name);
  const bool whole = length > 0 && (size_t)length < sizeof record.type;
  if (info->type == H5L_TYPE_HARD && whole) {
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    describe_object(l, object, &record);
    MD_H5_CLOSE(object);
  } else {
    if (info->type == H5L_TYPE_HARD) l->found.unseen = true;
    snprintf(record.detail, sizeof record.detail, "%s, not followed",
             info->type == H5L_TYPE_HARD       ? "long name"
             : info->type == H5L_TYPE_SOFT     ? "soft link"
             : info->type == H5L_TYPE_EXTERNAL ? "external link"
                                               : "user-defined link");
  }
  md_notes_record(l->notes, &record);
  return 0;
}

static int level_of(const char *name) {
  int level = 0;
  for (const char *at = name; *at; at++) level += *at == '/' && at[1];
  return level;
}

md_datasets_found md_h5_list_objects(hid_t file, md_notes *notes) {
  listing l = {.notes = notes};
  md_record root = {.type = "/"};
  const hid_t first = H5Oopen(file, "/", H5P_DEFAULT);
  describe_object(&l, first, &root);
  MD_H5_CLOSE(first);
  md_notes_record(notes, &root);
  for (l.turn = 0; l.turn < notes->record_count && !l.full; l.turn++) {
    char name[sizeof root.type];
    memcpy(name, notes->records[l.turn].type, sizeof name);
    const char *detail = notes->records[l.turn].detail;
    const bool group = strcmp(detail, group_detail) == 0;
    if (notes->records[l.turn].attribute || (!group && *detail != '[')) continue;
    const hid_t object = H5Oopen(file, name, H5P_DEFAULT); /* hard links all the way */
    if (object < 0) continue;
    herr_t listed = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, &l);
    if (group && level_of(name) < LEVELS_MOST && listed >= 0)
      listed = H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_link, &l);
    else if (group && listed >= 0) {
      md_notes_departure(notes, "groups below %.60s are not listed", name);
      l.found.unseen = true;
    }
    l.found.damaged += listed < 0;
    MD_H5_CLOSE(object);
  }
  if (l.full) md_notes_departure(notes, "only the first %d objects are listed", OBJECTS_MOST);
  l.found.unseen = l.found.unseen || l.full;
  return l.found;
}

enum { CHUNK_MOST = 64 << 20 };

/* The next box of chunk's extents; false behind the last. */
static bool next_box(int rank, const hsize_t *extent, const hsize_t *chunk, hsize_t *start) {
  for (int d = rank - 1; d >= 0; d--) {
    start[d] += chunk[d];
    if (start[d] < extent[d]) return true;
    start[d] = 0;
  }
  return false;
}

static bool read_box(hid_t dataset, hid_t type, int rank, const hsize_t *extent,
                     const hsize_t *chunk, const hsize_t *start, void *raw) {
  hsize_t count[H5S_MAX_RANK];
  for (int d = 0; d < rank; d++)
    count[d] = chunk[d] < extent[d] - start[d] ? chunk[d] : extent[d] - start[d];
  const hid_t there = H5Dget_space(dataset), here = H5Screate_simple(rank, count, NULL);
  if (rank > 0) H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, count, NULL);
  const bool read = H5Dread(dataset, type, here, there, H5P_DEFAULT, raw) >= 0;
  MD_H5_CLOSE(here, there);
  return read;
}

/* Of a box of these extents. */
static double bytes_of(hid_t type, int rank, const hsize_t *extent) {
  double bytes = (double)H5Tget_size(type);
  for (int d = 0; d < rank; d++) bytes *= (double)extent[d];
  return bytes;
}

/* All of a dataset: chunk by chunk, or in parts of one that is not chunked. Damaged where a part
 * cannot be read; chunks for which there is no room, and elements of any length, are not looked
 * at. */
static void read_all(hid_t dataset, md_datasets_found *found) {
  hsize_t extent[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK] = {0}, start[H5S_MAX_RANK] = {0};
  const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  const hid_t create = H5Dget_create_plist(dataset);
  const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
  const bool chunked = rank > 0 && H5Pget_layout(create) == H5D_CHUNKED;
  const bool fixed = H5Tdetect_class(type, H5T_VLEN) == 0 && H5Tis_variable_str(type) == 0;
  bool sound = rank >= 0 && (!chunked || H5Pget_chunk(create, rank, chunk) == rank);
  if (!chunked) memcpy(chunk, extent, sizeof chunk);
  for (int d = 0; d < rank && !chunked; d++)
    while (chunk[d] > 1 && bytes_of(type, rank, chunk) > CHUNK_MOST) chunk[d] = (chunk[d] + 1) / 2;
  const double bytes = bytes_of(type, rank, chunk), all = bytes_of(type, rank, extent);
  const double most = (double)H5Dget_storage_size(dataset) * MD_H5_RATIO_MOST;
  sound = sound && bytes > 0 && all > 0 && all <= most;
  if (sound && (bytes > CHUNK_MOST || !fixed)) {
    found->unseen = true;
  } else {
    void *raw = sound ? malloc((size_t)bytes) : NULL;
    sound = raw != NULL;
    if (sound) do
        sound = read_box(dataset, type, rank, extent, chunk, start, raw);
      while (sound && next_box(rank, extent, chunk, start));
    free(raw);
    found->damaged += !sound;
  }
  MD_H5_CLOSE(create, type, space);
}

md_datasets_found md_h5_verify(const md_h5_file *file) {
  md_notes notes = {0};
  md_datasets_found found = md_h5_list_objects(file->id, &notes);
  for (int i = 0; i < notes.record_count; i++) {
    const md_record *r = &notes.records[i];
    hid_t dataset;
    if (*r->detail != '[' || r->attribute) continue;
    found.datasets++;
    if (md_h5_open_object(file, r->type, true, &dataset) != MD_OK) {
      found.damaged++;
      continue;
    }
    found.unguarded += !md_h5_has_sums(dataset);
    read_all(dataset, &found);
    MD_H5_CLOSE(dataset);
  }
  MD_FREE(notes.records, notes.departures);
  return found;
}
