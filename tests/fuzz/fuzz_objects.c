#include "fuzz_support.h"
#include "kinds.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The input is a list of changes to what a valid HDF5 file says: its first byte chooses the kind of
 * file; each change is a byte that says which, and bytes that it takes. The library itself makes
 * them, so that the file stays sound: what is looked for is trust of ours in values, types, lengths
 * and extents. The file is read without a child process (child_here.c). */
enum { OBJECTS_MOST = 16, ATTRIBUTES_MOST = 64, NAME = 64, NUMBERS_MOST = 32 };
enum { DATA_BYTES = 1 << 18, CHANGES_MOST = 12, EXTENT_MOST = 1 << 20 };

typedef struct file {
  int kind;
  unsigned char *bytes;
  size_t length;
  char object[OBJECTS_MOST][NAME];
  bool dataset[OBJECTS_MOST];
  struct {
    int object;
    char name[NAME];
  } attribute[ATTRIBUTES_MOST];
  hsize_t number[NUMBERS_MOST]; /* extents of datasets and counts of attributes, each once */
  int objects, attributes, numbers;
} file;

static file files[16];
static int file_count;
static char data_of_all[DATA_BYTES]; /* what is written; larger things stay unwritten */

typedef struct input {
  const uint8_t *at;
  size_t left;
} input;

static unsigned take(input *in) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++;
}

/* Where limits are: around powers of two and of ten; else two bytes. */
static hsize_t take_number(input *in) {
  static const unsigned bases[] = {1,  2,   4,   8,    10,   16,    32,    64,    100,  128,
                                   96, 160, 256, 1000, 4096, 10000, 16384, 32768, 65536};
  const unsigned which = take(in), count = sizeof bases / sizeof *bases;
  if (which >= 3 * count) return take(in) | take(in) << 8;
  return bases[which / 3] + which % 3 - 1;
}

/* Reals and integers from the edges of their types. */
static void fill_data(input *in) {
  static const double reals[] = {0, 1, -1, 0.5, 1e300, -1e-300, 3e9, 1e19};
  const unsigned how = take(in);
  const double real = how % 11 < 8    ? reals[how % 11]
                      : how % 11 == 8 ? NAN
                      : how % 11 == 9 ? INFINITY
                                      : 2e5;
  const int64_t whole[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT32_MAX, 1LL << 32, 32768};
  for (size_t i = 0; i + 8 <= sizeof data_of_all; i += 8) {
    if (how < 100) memcpy(data_of_all + i, &real, 8);
    if (how >= 100 && how < 200) memcpy(data_of_all + i, &whole[how % 8], 8);
    if (how >= 200) memset(data_of_all + i, how < 210 ? "\033\n\377%/\"'<{ "[how - 200] : 'a', 8);
  }
}

static void add_number(file *f, hsize_t number) {
  if (number < 2) return;
  for (int i = 0; i < f->numbers; i++)
    if (f->number[i] == number) return;
  if (f->numbers < NUMBERS_MOST) f->number[f->numbers++] = number;
}

static herr_t note_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data) {
  file *f = data;
  (void)info;
  if (f->attributes == ATTRIBUTES_MOST) return 0;
  f->attribute[f->attributes].object = f->objects - 1;
  snprintf(f->attribute[f->attributes++].name, NAME, "%s", name);
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT), space = H5Aget_space(id);
  add_number(f, (hsize_t)H5Sget_simple_extent_npoints(space));
  H5Sclose(space);
  H5Aclose(id);
  return 0;
}

static herr_t note_object(hid_t root, const char *name, const H5O_info_t *info, void *data) {
  file *f = data;
  if (f->objects == OBJECTS_MOST) return 0;
  f->dataset[f->objects] = info->type == H5O_TYPE_DATASET;
  snprintf(f->object[f->objects++], NAME, "%s", name);
  const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
  if (info->type == H5O_TYPE_DATASET) {
    hsize_t extents[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(object);
    const int rank = H5Sget_simple_extent_dims(space, extents, NULL);
    for (int i = 0; i < rank; i++) add_number(f, extents[i]);
    H5Sclose(space);
  }
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, f);
  H5Oclose(object);
  return 0;
}

static hid_t open_file(const char *path, bool write) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* attributes above 64 KiB */
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  H5Pset_file_locking(access, false, true);
  const hid_t id = H5Fopen(path, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
  H5Pclose(access);
  return id;
}

void fuzz_prepare(md_context *context) {
  fuzz_require(fuzz_kinds_prepare(context) == MD_OK, "what files hold is to be had");
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  for (int kind = 0; kind < fuzz_kind_count; kind++) {
    if (!fuzz_kind_is_hdf5(kind)) continue;
    file *f = &files[file_count++];
    f->kind = kind;
    f->bytes = fuzz_made(context, kind, &f->length);
    const hid_t id = open_file(fuzz_file(f->bytes, f->length), false);
    fuzz_require(id >= 0 &&
                     H5Ovisit2(id, H5_INDEX_NAME, H5_ITER_INC, note_object, f, H5O_INFO_BASIC) >= 0,
                 "the file's objects can be listed");
    H5Fclose(id);
    fuzz_require(f->attributes > 0 && f->numbers > 0, "it has attributes and extents");
    fuzz_require(fuzz_kind_read(context, kind, fuzz_file(f->bytes, f->length)) == MD_OK,
                 "what was written can be read");
  }
}

static hid_t text_type(hsize_t bytes) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, bytes == 0 ? H5T_VARIABLE : (size_t)bytes);
  return type;
}

/* Released with H5Tclose. */
static hid_t type_of(unsigned which, hsize_t bytes) {
  static const size_t words[] = {1, 2, 4, 8};
  if (which % 8 == 0) return text_type(bytes > EXTENT_MOST ? EXTENT_MOST : bytes);
  if (which % 8 == 1) return H5Tcopy(H5T_NATIVE_INT64);
  if (which % 8 == 2) return H5Tcopy(H5T_NATIVE_DOUBLE);
  if (which % 8 == 3) return H5Tcopy(H5T_STD_U8BE);
  if (which % 8 == 4) return H5Tcopy(H5T_IEEE_F32BE);
  if (which % 8 == 5) return H5Tcreate(H5T_OPAQUE, bytes == 0 || bytes > 4096 ? 1 : (size_t)bytes);
  const size_t word = words[which / 8 % 4]; /* complex numbers of some size, and what resembles */
  const hid_t real = H5Tcopy(word < 4    ? H5T_NATIVE_INT8
                             : word == 4 ? H5T_NATIVE_FLOAT
                                         : H5T_NATIVE_DOUBLE);
  const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * word);
  H5Tinsert(type, "r", 0, real);
  H5Tinsert(type, which % 8 == 6 ? "i" : "j", word, real);
  H5Tclose(real);
  return type;
}

/* Replaces or adds it, with the first of `data_of_all`, where they are enough. */
static void put_attribute(hid_t object, const char *name, hid_t type, hsize_t count) {
  if (H5Tget_size(type) * count > sizeof data_of_all) return;
  if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  const hid_t space = count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
  const hid_t id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (id >= 0 && count > 0 && H5Tis_variable_str(type) <= 0) H5Awrite(id, type, data_of_all);
  if (id >= 0) H5Aclose(id);
  H5Sclose(space);
}

/* The same type with another count, or the same text with another length, its values repeated. */
static void resize_attribute(hid_t object, const char *name, hsize_t size) {
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  if (id < 0) return;
  hid_t type = H5Aget_type(id);
  const hid_t space = H5Aget_space(id);
  const bool text = H5Tget_class(type) == H5T_STRING;
  const size_t had = H5Tget_size(type) * (size_t)H5Sget_simple_extent_npoints(space);
  if (H5Tis_variable_str(type) <= 0 && had > 0 && had < sizeof data_of_all / 2) {
    H5Aread(id, type, data_of_all);
    for (size_t i = had; i < sizeof data_of_all; i++) data_of_all[i] = data_of_all[i - had];
    if (text && size > 0 && size < sizeof data_of_all)
      for (size_t i = 0; i < size; i++)
        if (data_of_all[i] == 0) data_of_all[i] = 'z';
  }
  H5Sclose(space);
  H5Aclose(id);
  if (text) H5Tset_size(type, size > 0 && size < DATA_BYTES ? (size_t)size : 1);
  put_attribute(object, name, type, text ? 1 : size);
  H5Tclose(type);
}

static herr_t move_attribute(hid_t from, const char *name, const H5A_info_t *info, void *data) {
  const hid_t to = *(hid_t *)data, id = H5Aopen(from, name, H5P_DEFAULT);
  const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
  (void)info;
  const hsize_t count = (hsize_t)H5Sget_simple_extent_npoints(space);
  if (H5Tis_variable_str(type) <= 0 && H5Tget_size(type) * count <= sizeof data_of_all &&
      H5Aread(id, type, data_of_all) >= 0)
    put_attribute(to, name, type, count);
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(id);
  return 0;
}

/* Puts another dataset in the place of one, with its attributes. */
static void replace_dataset(hid_t id, const char *name, hid_t type, int rank,
                            const hsize_t *extents, unsigned storage) {
  const hid_t old = H5Dopen2(id, name, H5P_DEFAULT);
  if (old < 0) return;
  const hid_t space = H5Screate_simple(rank, extents, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
  double bytes = (double)H5Tget_size(type);
  for (int i = 0; i < rank; i++) bytes *= (double)extents[i];
  const bool small =
      bytes > 0 && bytes <= 0.9 * sizeof data_of_all && H5Tis_variable_str(type) <= 0;
  if (storage % 4 == 1 && small && bytes < 60000) H5Pset_layout(create, H5D_COMPACT);
  if (storage % 4 >= 2 && small) H5Pset_chunk(create, rank, extents);
  if (storage % 4 == 3 && small) H5Pset_fletcher32(create);
  const hid_t new = H5Dcreate2(id, "/replaced", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  if (new >= 0) {
    if (small && storage < 200) H5Dwrite(new, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data_of_all);
    hid_t to = new;
    H5Aiterate2(old, H5_INDEX_NAME, H5_ITER_INC, NULL, move_attribute, &to);
    H5Dclose(new);
    H5Ldelete(id, name, H5P_DEFAULT);
    H5Lmove(id, "/replaced", id, name, H5P_DEFAULT, H5P_DEFAULT);
  }
  H5Pclose(create);
  H5Sclose(space);
  H5Dclose(old);
}

/* The dataset with `extents` changed by `change`: at[k] = to[k] where k < count. */
static void change_dataset(hid_t id, const char *name, input *in, hsize_t from, hsize_t to) {
  hsize_t extents[H5S_MAX_RANK + 1];
  const hid_t set = H5Dopen2(id, name, H5P_DEFAULT);
  if (set < 0) return;
  const hid_t space = H5Dget_space(set);
  hid_t type = H5Dget_type(set);
  int rank = H5Sget_simple_extent_dims(space, extents, NULL);
  bool changed = false;
  unsigned storage = 3;
  if (to > 0 && rank > 0)
    for (int i = 0; i < rank; i++)
      if (extents[i] == from) extents[i] = to, changed = true;
  if (to == 0 && rank > 0) {
    const unsigned how = take(in);
    storage = take(in);
    changed = true;
    if (how % 4 < 2) extents[take(in) % (unsigned)rank] = take_number(in) % EXTENT_MOST;
    if (how % 4 == 2 && rank > 1) rank--;
    if (how % 4 == 3) extents[rank++] = 1 + take(in) % 4;
    if (how >= 128) {
      H5Tclose(type);
      type = type_of(take(in), take(in));
    }
    if (how >= 64) fill_data(in);
  }
  H5Sclose(space);
  H5Dclose(set);
  if (changed) replace_dataset(id, name, type, rank, extents, storage);
  H5Tclose(type);
}

/* A number that the file has in several places becomes another in all of them. */
static void renumber(hid_t id, const file *f, input *in) {
  const hsize_t from = f->number[take(in) % (unsigned)f->numbers], to = take_number(in);
  if (to == 0) return;
  for (int i = 0; i < f->objects; i++)
    if (f->dataset[i]) change_dataset(id, f->object[i], in, from, to);
  for (int i = 0; i < f->attributes; i++) {
    const hid_t object = H5Oopen(id, f->object[f->attribute[i].object], H5P_DEFAULT);
    const hid_t a = object < 0 ? -1 : H5Aopen(object, f->attribute[i].name, H5P_DEFAULT);
    const hid_t space = a < 0 ? -1 : H5Aget_space(a), type = a < 0 ? -1 : H5Aget_type(a);
    const bool same = a >= 0 && H5Tget_class(type) != H5T_STRING &&
                      H5Sget_simple_extent_npoints(space) == (hssize_t)from;
    if (a >= 0) H5Tclose(type), H5Sclose(space), H5Aclose(a);
    if (same) resize_attribute(object, f->attribute[i].name, to);
    if (object >= 0) H5Oclose(object);
  }
}

static void change_attribute(hid_t id, const file *f, input *in, bool known) {
  const int which = (int)(take(in) % (unsigned)f->attributes);
  const char *owner = f->object[known ? f->attribute[which].object : (int)take(in) % f->objects];
  const hid_t object = H5Oopen(id, owner, H5P_DEFAULT);
  if (object < 0) return;
  const char *name = f->attribute[which].name;
  const unsigned how = take(in);
  if (known && how < 128) {
    resize_attribute(object, name, take_number(in));
  } else if (known && how < 140) {
    if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  } else {
    const hsize_t count = how < 200 ? 1 : take_number(in), bytes = take_number(in);
    const hid_t type = type_of(take(in), bytes);
    char odd[] = "text \033? a";
    odd[6] = (char)(take(in) | 1);
    fill_data(in);
    put_attribute(object, known ? name : odd, type, count);
    H5Tclose(type);
  }
  H5Oclose(object);
}

/* Writes over some of the stored numbers. */
static void change_data(hid_t id, const char *name, input *in) {
  const hid_t set = H5Dopen2(id, name, H5P_DEFAULT);
  if (set < 0) return;
  const hid_t type = H5Dget_type(set);
  const hid_t space = H5Dget_space(set);
  const size_t bytes = (size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
  H5Sclose(space);
  static char numbers[DATA_BYTES];
  fill_data(in);
  const size_t at = take_number(in), some = 8 * (size_t)(1 + take(in) % 32);
  if (bytes > 0 && bytes <= sizeof numbers && H5Tis_variable_str(type) <= 0 &&
      H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0) {
    if (at + some <= bytes) memcpy(numbers + at, data_of_all, some);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
  }
  H5Tclose(type);
  H5Dclose(set);
}

static void change_link(hid_t id, const file *f, input *in) {
  const char *name = f->object[take(in) % (unsigned)f->objects];
  const char *other = f->object[take(in) % (unsigned)f->objects];
  const unsigned how = take(in);
  if (strcmp(name, ".") == 0) return;
  H5Ldelete(id, name, H5P_DEFAULT);
  if (how % 4 == 1) H5Lcreate_hard(id, other, id, name, H5P_DEFAULT, H5P_DEFAULT);
  if (how % 4 == 2) H5Lcreate_soft(other, id, name, H5P_DEFAULT, H5P_DEFAULT);
  if (how % 4 == 3) H5Gclose(H5Gcreate2(id, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void change(hid_t id, const file *f, input *in) {
  const unsigned how = take(in) % 8;
  const unsigned object = how == 3 || how == 4 ? take(in) % (unsigned)f->objects : 0;
  if (how <= 1) change_attribute(id, f, in, true);
  if (how == 2 || how == 7) renumber(id, f, in);
  if (how == 3 && f->dataset[object]) change_dataset(id, f->object[object], in, 0, 0);
  if (how == 4 && f->dataset[object]) change_data(id, f->object[object], in);
  if (how == 5) change_attribute(id, f, in, false);
  if (how == 6) change_link(id, f, in);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

/* One more change, or a new list of one or two: short lists are not refused before they are met. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
  enum { CHANGE = 8 };
  if (seed % 4 == 0 || bytes < 1 || bytes + CHANGE > most)
    return LLVMFuzzerMutate(data, bytes, most);
  const size_t from = seed % 4 == 1 ? bytes : 0, to = from + (seed % 8 < 4 ? CHANGE : 2 * CHANGE);
  for (size_t i = from; i < to && i < most; i++) {
    seed = seed * 1103515245u + 12345u;
    data[i] = (uint8_t)(seed >> 16);
  }
  return to < most ? to : most;
}

void fuzz_one(md_context *context, const uint8_t *data, size_t bytes) {
  input in = {data, bytes};
  const file *f = &files[take(&in) % (unsigned)file_count];
  const char *path = fuzz_file(f->bytes, f->length);
  memset(data_of_all, 'a', sizeof data_of_all);
  const hid_t id = open_file(path, true);
  fuzz_require(id >= 0, "the file can be changed");
  for (int i = 0; i < CHANGES_MOST && in.left > 0; i++) change(id, f, &in);
  H5Fclose(id);
  fuzz_require_refusal(context, fuzz_kind_read(context, f->kind, path));
}
