#include "base/ranks_mpi.h"
#include "io/hdf5_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that all ranks have open, with a view of this rank's sites. */
typedef struct view {
  const char *path;
  const md_geometry *geometry;
  bool write;
  MPI_File file;
  MPI_Datatype site, part;
} view;

static md_status mpi_failed(md_context *context, int code, const char *path, const char *step) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS) return MD_OK;
  MPI_Error_string(code, text, &length);
  return md_fail(context, MD_ENVIRONMENT, "%s cannot be %s by MPI-IO: %s", path, step, text);
}

static md_status can_open(md_context *context, const char *path, int flags) {
  const int file = open(path, flags);
  if (file < 0)
    return md_fail(context, MD_ENVIRONMENT, "%s cannot be opened on rank %d: %s", path,
                   context->rank, strerror(errno));
  close(file);
  return MD_OK;
}

static md_status view_open(md_context *context, const md_lattice_header *header, view *v) {
  int whole[MD_DIMS], part[MD_DIMS], start[MD_DIMS]; /* slowest first */
  const md_geometry *geometry = v->geometry;
  for (int d = 0; d < MD_DIMS; d++) {
    whole[MD_T - d] = geometry->global[d];
    part[MD_T - d] = geometry->local[d];
    start[MD_T - d] = geometry->origin[d];
  }
  v->file = MPI_FILE_NULL;
  /* Plain open first: it knows the reason, and MPI_File_open must not fail on some ranks only. */
  MD_TRY(md_agree(context, can_open(context, v->path, v->write ? O_WRONLY : O_RDONLY)));
  const int opened =
      MPI_File_open(md_mpi(context), v->path, v->write ? MPI_MODE_WRONLY : MPI_MODE_RDONLY,
                    MPI_INFO_NULL, &v->file);
  if (md_agree(context, mpi_failed(context, opened, v->path, "opened")) != MD_OK) {
    v->file = MPI_FILE_NULL;
    return MD_ENVIRONMENT;
  }
  MPI_Type_contiguous((int)md_site_bytes(&header->site), MPI_BYTE, &v->site);
  MPI_Type_create_subarray(MD_DIMS, whole, part, start, MPI_ORDER_C, v->site, &v->part);
  MPI_Type_commit(&v->site);
  MPI_Type_commit(&v->part);
  const int viewed =
      MPI_File_set_view(v->file, header->offset, v->site, v->part, "native", MPI_INFO_NULL);
  return md_agree(context, mpi_failed(context, viewed, v->path, "divided among ranks"));
}

/* The status that was, or that of closing. */
static md_status view_close(md_context *context, view *v, md_status status) {
  if (v->file == MPI_FILE_NULL) return status;
  const int closed = MPI_File_close(&v->file);
  MPI_Type_free(&v->part);
  MPI_Type_free(&v->site);
  const md_status last = md_agree(context, mpi_failed(context, closed, v->path, "closed"));
  return status == MD_OK ? last : status;
}

/* One slab between file and memory. All ranks have slabs of the same shape. */
static md_status transfer(md_context *context, void *file, const md_slab *slab, void *raw) {
  const view *v = file;
  const int64_t sites = md_slab_sites(v->geometry, slab);
  const char *done = v->write ? "written" : "read";
  MPI_Status outcome;
  int moved = 0;
  const int code = v->write ? MPI_File_write_all(v->file, raw, (int)sites, v->site, &outcome)
                            : MPI_File_read_all(v->file, raw, (int)sites, v->site, &outcome);
  md_status status = mpi_failed(context, code, v->path, done);
  if (status == MD_OK) {
    MPI_Get_count(&outcome, v->site, &moved);
    if (moved != sites)
      status =
          md_fail(context, MD_ENVIRONMENT, "%s: %d of %lld sites could be %s on rank %d", v->path,
                  moved == MPI_UNDEFINED ? -1 : moved, (long long)sites, done, context->rank);
  }
  return md_agree(context, status);
}

md_status md_payload_read(md_context *context, const char *path, const md_lattice_header *header,
                          const md_geometry *geometry, const md_site_fields *fields,
                          md_checksum *checksum) {
  view v = {.path = path, .geometry = geometry};
  md_status status = view_open(context, header, &v);
  if (status == MD_OK)
    status = md_sites_read(context, path, header, geometry, transfer, &v, true, fields, checksum);
  return view_close(context, &v, status);
}

/* Empties the file `path` and gives it `bytes` of disk: MD_ENVIRONMENT when the disk or a limit
 * does not allow them. Collective writes of MPI-IO may hang or lose the error when a disk fills up
 * under them, so that must be met before. With `behind` the file's length stays: blocks are kept
 * behind its end until it is closed at its final length, and nothing is done on file systems that
 * do not know this. Rank 0 acts, all agree. Collective. */
static md_status reserve(md_context *context, const char *path, int64_t bytes, bool behind) {
  md_status status = MD_OK;
  if (context->rank == 0) {
    const int file = open(path, behind ? O_WRONLY : O_WRONLY | O_TRUNC | O_NOFOLLOW);
    int reason = file < 0 ? errno : 0;
    if (file >= 0 && behind)
      reason = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 ? errno : 0;
    else if (file >= 0)
      do reason = posix_fallocate(file, 0, bytes);
      while (reason == EINTR);
    if (file >= 0) close(file);
    if (file < 0 && !behind)
      status = md_fail(context, MD_ENVIRONMENT, "%s cannot be opened: %s", path, strerror(reason));
    else if (behind ? reason == ENOSPC && file >= 0 : reason != 0)
      status = md_fail(context, MD_ENVIRONMENT, "%s cannot be written: no room for %lld bytes: %s",
                       path, (long long)bytes, strerror(reason));
  }
  return md_agree(context, status);
}

/* Rank 0: head and tail around a run of sites, with the final checksum. */
static md_status write_frame(md_context *context, const char *path, const md_lattice_header *header,
                             const md_lattice_format *format) {
  md_frame frame = {0};
  md_status status = format->compose(context, header, &frame);
  FILE *file = status == MD_OK ? fopen(path, "r+") : NULL;
  if (status == MD_OK && !file)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be opened: %s", path, strerror(errno));
  if (file && (fseeko(file, header->offset - (int64_t)frame.head_bytes, SEEK_SET) != 0 ||
               fwrite(frame.head, 1, frame.head_bytes, file) != frame.head_bytes ||
               fseeko(file, header->offset + md_lattice_link_bytes(header), SEEK_SET) != 0 ||
               (frame.tail_bytes > 0 &&
                fwrite(frame.tail, 1, frame.tail_bytes, file) != frame.tail_bytes) ||
               fflush(file) != 0))
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %s", path, strerror(errno));
  if (file && fclose(file) != 0 && status == MD_OK)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be closed: %s", path, strerror(errno));
  MD_FREE(frame.head, frame.tail);
  return status;
}

/* Where the sites of the next run begin that starts at *at, which moves to its end. Collective. */
static md_status place_run(md_context *context, md_lattice_header *header,
                           const md_lattice_format *format, int64_t *at) {
  md_frame frame = {0};
  const md_status status = format->compose(context, header, &frame);
  header->offset = *at + (int64_t)frame.head_bytes;
  *at = header->offset + md_lattice_link_bytes(header) + (int64_t)frame.tail_bytes;
  MD_FREE(frame.head, frame.tail);
  return md_agree(context, status);
}

/* Sites, then head and tail around them. */
static md_status write_run(md_context *context, const char *path, md_lattice_header *header,
                           const md_site_fields *fields, const md_lattice_format *format) {
  view v = {.path = path, .geometry = fields->geometry, .write = true};
  md_status status = view_open(context, header, &v);
  if (status == MD_OK) status = md_sites_write(context, header, fields, transfer, &v);
  MD_TRY(view_close(context, &v, status));
  if (context->rank == 0) status = write_frame(context, path, header, format);
  return md_agree(context, status);
}

md_status md_payload_write(md_context *context, const char *path, md_lattice_header *header,
                           const md_site_fields *fields, const md_lattice_format *format,
                           const md_runs *runs) {
  int64_t bytes = 0, at = 0;
  for (header->run = 0; header->run < runs->count; header->run++)
    MD_TRY(place_run(context, header, format, &bytes));
  MD_TRY(reserve(context, path, bytes, false));
  for (header->run = 0; header->run < runs->count; header->run++) {
    MD_TRY(place_run(context, header, format, &at));
    if (runs->fill) MD_TRY(runs->fill(context, runs->user, header->run));
    MD_TRY(write_run(context, path, header, fields, format));
    if (runs->sums) runs->sums[header->run] = header->checksum;
  }
  return MD_OK;
}

/* HDF5 must not fail on some ranks only, which wait for each other in it. */
static md_status can_write(md_context *context, const char *path, int64_t bytes) {
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
      (rlim_t)bytes > most.rlim_cur)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s cannot be written on rank %d: files may have %lld bytes there, %lld are "
                   "needed; raise the limit (ulimit -f)",
                   path, context->rank, (long long)most.rlim_cur, (long long)bytes);
  return can_open(context, path, O_WRONLY);
}

md_status md_h5_create(md_h5_file *file, int64_t bytes) {
  md_context *context = file->context;
  const int64_t room = bytes + bytes / 128 + (1 << 20);
  file->id = H5I_INVALID_HID;
  MD_TRY(reserve(context, file->path, room, false)); /* HDF5 empties the file again */
  MD_TRY(md_agree(context, can_write(context, file->path, room)));
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* checksummed metadata */
  H5Pset_file_locking(access, true, true);
  if (context->ranks > 1) H5Pset_fapl_mpio(access, md_mpi(context), MPI_INFO_NULL);
  file->id = H5Fcreate(file->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  MD_H5_CLOSE(access);
  const md_status status =
      file->id < 0 ? md_h5_fail(file, MD_ENVIRONMENT, "creating the file") : MD_OK;
  if (md_agree(context, status) != MD_OK) {
    file->id = H5I_INVALID_HID; /* also where it was created: closing would wait for the others */
    return MD_ENVIRONMENT;
  }
  return reserve(context, file->path, room, true);
}

md_status md_h5_close_written(md_h5_file *file, md_status status) {
  struct stat there;
  if (file->id < 0) return status;
  if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0 && status == MD_OK)
    status = md_h5_fail(file, MD_ENVIRONMENT, "flushing the file");
  if (H5Fclose(file->id) < 0 && status == MD_OK)
    status = md_h5_fail(file, MD_ENVIRONMENT, "closing the file");
  /* Gives back what was reserved behind the end. */
  if (status == MD_OK && file->context->rank == 0 && stat(file->path, &there) == 0 &&
      truncate(file->path, there.st_size) != 0)
    status = md_fail(file->context, MD_ENVIRONMENT, "%s cannot be closed: %m", file->path);
  return md_agree(file->context, status);
}
