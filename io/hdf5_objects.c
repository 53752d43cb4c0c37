#include "io/hdf5_objects.h"

#include <stdio.h>
#include <string.h>

enum { OBJECTS_MOST = 512, LEVELS_MOST = 8 };

/* The list is its own queue: groups in it wait for their turn, so that nothing here is called
 * deeper than a file's author likes. */
typedef struct listing {
  hid_t file;
  md_notes *notes;
  int turn; /* record whose members are being listed */
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
  md_record record = {.bytes = (int64_t)info->data_size};
  if (!has_room(l)) return 1;
  snprintf(record.type, sizeof record.type, "%.64s@%.60s", l->notes->records[l->turn].type, name);
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  const hid_t space = id < 0 ? H5I_INVALID_HID : H5Aget_space(id);
  if (space >= 0) describe_space(space, record.detail, sizeof record.detail);
  if (space >= 0) H5Sclose(space);
  if (id >= 0) H5Aclose(id);
  md_notes_record(l->notes, &record);
  return 0;
}

static void describe_dataset(hid_t dataset, md_record *record) {
  static const char *const elsewhere[] = {[MD_H5_VIRTUAL] = "virtual dataset",
                                          [MD_H5_EXTERNAL] = "external raw storage",
                                          [MD_H5_UNKNOWN] = "dataset of unknown layout"};
  const md_h5_storage storage = md_h5_storage_of(dataset);
  if (storage != MD_H5_HERE) {
    snprintf(record->detail, sizeof record->detail, "%s", elsewhere[storage]);
    return;
  }
  const hid_t space = H5Dget_space(dataset);
  if (space < 0) return;
  describe_space(space, record->detail, sizeof record->detail);
  record->bytes = (int64_t)H5Dget_storage_size(dataset);
  H5Sclose(space);
}

static void describe_object(listing *l, hid_t object, md_record *record) {
  H5O_info_t info;
  if (object < 0 || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) {
    snprintf(record->detail, sizeof record->detail, "cannot be opened");
    return;
  }
  record->offset = (int64_t)info.addr;
  for (int i = 0; i < l->notes->record_count; i++) /* a hard link back or aside */
    if (l->notes->records[i].offset == record->offset && !strchr(l->notes->records[i].type, '@')) {
      snprintf(record->detail, sizeof record->detail, "another name of %.60s",
               l->notes->records[i].type);
      return;
    }
  if (info.type == H5O_TYPE_DATASET)
    describe_dataset(object, record);
  else
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
    if (object >= 0) H5Oclose(object);
  } else {
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

void md_h5_list_objects(hid_t file, md_notes *notes) {
  listing l = {.file = file, .notes = notes};
  md_record root = {.type = "/"};
  const hid_t first = H5Oopen(file, "/", H5P_DEFAULT);
  describe_object(&l, first, &root);
  if (first >= 0) H5Oclose(first);
  md_notes_record(notes, &root);
  for (l.turn = 0; l.turn < notes->record_count && !l.full; l.turn++) {
    char name[sizeof root.type];
    memcpy(name, notes->records[l.turn].type, sizeof name);
    const char *detail = notes->records[l.turn].detail;
    const bool group = strcmp(detail, group_detail) == 0;
    if (strchr(name, '@') || (!group && *detail != '[')) continue;
    const hid_t object = H5Oopen(file, name, H5P_DEFAULT); /* hard links all the way */
    if (object < 0) continue;
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, &l);
    if (group && level_of(name) < LEVELS_MOST)
      H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_link, &l);
    else if (group)
      md_notes_departure(notes, "groups below %.60s are not listed", name);
    H5Oclose(object);
  }
  if (l.full) md_notes_departure(notes, "only the first %d objects are listed", OBJECTS_MOST);
}
