#include "base/ranks_mpi.h"
#include "io/hdf5_file.h"
#include "io/payload.h"

#include <sys/stat.h>
#include <unistd.h>

md_status md_h5_create(md_context *context, const char *path, int64_t bytes, hid_t *file) {
  *file = H5I_INVALID_HID;
  const int64_t room = bytes + bytes / 128 + (1 << 20);
  MD_TRY(md_reserve(context, path, room)); /* HDF5 empties the file again */
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* checksummed metadata */
  H5Pset_file_locking(access, true, true);
  if (context->ranks > 1) H5Pset_fapl_mpio(access, md_mpi(context), MPI_INFO_NULL);
  *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  const md_status status =
      *file < 0 ? md_h5_fail(context, MD_ENVIRONMENT, path, "creating the file") : MD_OK;
  MD_TRY(md_agree(context, status));
  return md_reserve_behind(context, path, room);
}

md_status md_h5_close_written(md_context *context, const char *path, hid_t *file) {
  md_status status = MD_OK;
  if (*file < 0) return MD_OK;
  if (H5Fflush(*file, H5F_SCOPE_GLOBAL) < 0)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "flushing the file");
  if (H5Fclose(*file) < 0 && status == MD_OK)
    status = md_h5_fail(context, MD_ENVIRONMENT, path, "closing the file");
  *file = H5I_INVALID_HID;
  struct stat there; /* gives back what was reserved behind the end */
  if (status == MD_OK && context->rank == 0 && stat(path, &there) == 0 &&
      truncate(path, there.st_size) != 0)
    status = md_fail(context, MD_ENVIRONMENT, "%s cannot be closed: %m", path);
  return md_agree(context, status);
}
