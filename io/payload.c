#include "io/payload.h"
#include "base/memory.h"
#include "base/ranks_mpi.h"
#include "io/read_ahead.h"
#include "io/site_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLAB_BYTES = 16 << 20 };

/* A file that all ranks have open, with a view of this rank's sites. */
typedef struct view {
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

static md_status view_open(md_context *context, const char *path, int mode,
                           const md_lattice_header *header, const md_geometry *geometry, view *v) {
  int whole[MD_DIMS], part[MD_DIMS], start[MD_DIMS]; /* slowest first */
  for (int d = 0; d < MD_DIMS; d++) {
    whole[MD_T - d] = geometry->global[d];
    part[MD_T - d] = geometry->local[d];
    start[MD_T - d] = geometry->origin[d];
  }
  *v = (view){.file = MPI_FILE_NULL};
  /* Plain open first: it knows the reason, and MPI_File_open must not fail on some ranks only. */
  MD_TRY(md_agree(context, can_open(context, path, mode == MPI_MODE_RDONLY ? O_RDONLY : O_WRONLY)));
  const int opened = MPI_File_open(md_mpi(context), path, mode, MPI_INFO_NULL, &v->file);
  if (md_agree(context, mpi_failed(context, opened, path, "opened")) != MD_OK) {
    v->file = MPI_FILE_NULL;
    return MD_ENVIRONMENT;
  }
  MPI_Type_contiguous((int)md_site_bytes(&header->site), MPI_BYTE, &v->site);
  MPI_Type_create_subarray(MD_DIMS, whole, part, start, MPI_ORDER_C, v->site, &v->part);
  MPI_Type_commit(&v->site);
  MPI_Type_commit(&v->part);
  const int viewed =
      MPI_File_set_view(v->file, header->offset, v->site, v->part, "native", MPI_INFO_NULL);
  return md_agree(context, mpi_failed(context, viewed, path, "divided among ranks"));
}

static md_status view_close(md_context *context, const char *path, view *v) {
  if (v->file == MPI_FILE_NULL) return MD_OK;
  const int closed = MPI_File_close(&v->file);
  MPI_Type_free(&v->part);
  MPI_Type_free(&v->site);
  return md_agree(context, mpi_failed(context, closed, path, "closed"));
}

/* One slab between file and memory. All ranks have slabs of the same shape. */
static md_status transfer(md_context *context, const char *path, const view *v, bool write,
                          void *raw, int64_t sites) {
  MPI_Status outcome;
  int moved = 0;
  const int code = write ? MPI_File_write_all(v->file, raw, (int)sites, v->site, &outcome)
                         : MPI_File_read_all(v->file, raw, (int)sites, v->site, &outcome);
  md_status status = mpi_failed(context, code, path, write ? "written" : "read");
  if (status == MD_OK) {
    MPI_Get_count(&outcome, v->site, &moved);
    if (moved != sites)
      status = md_fail(context, MD_ENVIRONMENT, "%s: %d of %lld sites could be %s on rank %d", path,
                       moved == MPI_UNDEFINED ? -1 : moved, (long long)sites,
                       write ? "written" : "read", context->rank);
  }
  return md_agree(context, status);
}

/* What read_slab needs. */
typedef struct reader {
  const char *path;
  const md_lattice_header *header;
  const md_geometry *geometry;
  md_slab_plan plan;
  view view;
  md_read_ahead *ahead;
} reader;

static md_status read_slab(md_context *context, void *file, int i, void *raw) {
  const reader *r = file;
  const md_slab slab = md_slab_at(r->geometry, &r->plan, i);
  md_read_ahead_advance(r->ahead);
  return transfer(context, r->path, &r->view, false, raw, md_slab_sites(r->geometry, &slab));
}

md_status md_payload_read(md_context *context, const char *path, const md_lattice_header *header,
                          const md_geometry *geometry, md_gauge *gauge, md_checksum *checksum) {
  const size_t site_bytes = md_site_bytes(&header->site);
  reader r = {.path = path,
              .header = header,
              .geometry = geometry,
              .plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, 1)};
  void *raw[2];
  *checksum = (md_checksum){.kind = header->checksum.kind};
  MD_TRY(md_agree(context, md_slab_buffers(context, geometry, &r.plan, site_bytes, raw)));
  r.ahead = md_read_ahead_start(path, geometry, &r.plan, header->offset, site_bytes);
  md_status status = view_open(context, path, MPI_MODE_RDONLY, header, geometry, &r.view);
  if (status == MD_OK)
    status = md_sites_read(context, geometry, &r.plan, &header->site, read_slab, &r, raw, gauge,
                           checksum);
  md_read_ahead_stop(r.ahead);
  const md_status closed = view_close(context, path, &r.view);
  free(raw[0]);
  free(raw[1]);
  if (status == MD_OK) md_checksum_combine(context, checksum);
  return status == MD_OK ? closed : status;
}

static md_status no_room(md_context *context, const char *path, int64_t bytes, int reason) {
  return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: no room for %lld bytes: %s", path,
                 (long long)bytes, strerror(reason));
}

md_status md_reserve(md_context *context, const char *path, int64_t bytes) {
  md_status status = MD_OK;
  if (context->rank == 0) {
    const int file = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW);
    int reason = errno;
    if (file < 0) {
      status = md_fail(context, MD_ENVIRONMENT, "%s cannot be opened: %s", path, strerror(reason));
    } else {
      do reason = posix_fallocate(file, 0, bytes);
      while (reason == EINTR);
      close(file);
    }
    if (file >= 0 && reason != 0) status = no_room(context, path, bytes, reason);
  }
  return md_agree(context, status);
}

md_status md_reserve_behind(md_context *context, const char *path, int64_t bytes) {
  md_status status = MD_OK;
  if (context->rank == 0) {
    const int file = open(path, O_WRONLY);
    if (file >= 0 && fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && errno == ENOSPC)
      status = no_room(context, path, bytes, errno);
    if (file >= 0) close(file);
  }
  return md_agree(context, status);
}

static md_status write_at(md_context *context, const char *path, int file, const char *data,
                          size_t bytes, int64_t offset) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = pwrite(file, data + done, bytes - done, offset + (int64_t)done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0)
      return md_fail(context, MD_ENVIRONMENT, "%s cannot be written: %s", path, strerror(errno));
    done += (size_t)part;
  }
  return MD_OK;
}

/* Rank 0: head and tail around the links, with the final checksum. */
static md_status write_frame(md_context *context, const char *path, const md_lattice_header *header,
                             md_payload_compose compose) {
  md_payload_frame frame = {0};
  md_status status = compose(context, header, &frame);
  const int file = status == MD_OK ? open(path, O_WRONLY) : -1;
  if (status == MD_OK && file < 0)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be opened: %s", path, strerror(errno));
  if (status == MD_OK) status = write_at(context, path, file, frame.head, frame.head_bytes, 0);
  if (status == MD_OK)
    status = write_at(context, path, file, frame.tail, frame.tail_bytes,
                      header->offset + md_lattice_link_bytes(header));
  if (file >= 0 && close(file) != 0 && status == MD_OK)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be closed: %s", path, strerror(errno));
  free(frame.head);
  free(frame.tail);
  return status;
}

static md_status write_links(md_context *context, const char *path, md_lattice_header *header,
                             const md_gauge *gauge) {
  const md_geometry *geometry = gauge->geometry;
  const size_t site_bytes = md_site_bytes(&header->site);
  const md_slab_plan plan = md_slab_plan_make(geometry, site_bytes, SLAB_BYTES, 1);
  const size_t bytes = md_slab_bytes(geometry, &plan, site_bytes);
  view v;
  void *raw = NULL;
  MD_TRY(md_agree(context, md_allocate(context, bytes, "output buffer", &raw)));
  md_status status = view_open(context, path, MPI_MODE_WRONLY, header, geometry, &v);
  for (int i = 0; i < plan.count && status == MD_OK; i++) {
    const md_slab slab = md_slab_at(geometry, &plan, i);
    md_sites_pack(geometry, &slab, &header->site, gauge, raw, &header->checksum);
    status = transfer(context, path, &v, true, raw, md_slab_sites(geometry, &slab));
  }
  const md_status closed = view_close(context, path, &v);
  free(raw);
  if (status == MD_OK) md_checksum_combine(context, &header->checksum);
  return status == MD_OK ? closed : status;
}

md_status md_payload_write(md_context *context, const char *path, md_lattice_header *header,
                           const md_gauge *gauge, md_payload_compose compose) {
  md_payload_frame frame = {0};
  header->checksum.a = header->checksum.b = 0;
  md_status status = compose(context, header, &frame);
  const int64_t tail_bytes = (int64_t)frame.tail_bytes;
  header->offset = (int64_t)frame.head_bytes;
  free(frame.head);
  free(frame.tail);
  MD_TRY(md_agree(context, status));
  const int64_t bytes = header->offset + md_lattice_link_bytes(header) + tail_bytes;
  MD_TRY(md_reserve(context, path, bytes));
  MD_TRY(write_links(context, path, header, gauge));
  if (context->rank == 0) status = write_frame(context, path, header, compose);
  return md_agree(context, status);
}
