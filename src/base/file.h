#ifndef MD_BASE_FILE_H
#define MD_BASE_FILE_H

#include "base/context.h"

/* Writes `bytes` of `data` to `path` so that `path` holds the old file or the whole new one,
 * never a part: temporary name beside it, fsync, rename. Local; MD_ENVIRONMENT with the reason
 * and no temporary file left on failure. */
md_status md_write_file(md_context *context, const char *path, const void *data, size_t bytes);

/* The temporary name that belongs to `path`: PATH.partial. MD_INPUT when it is too long. */
md_status md_temporary_name(md_context *context, const char *path, char *name, size_t name_bytes);
/* Flushes the closed file `temporary` to disk and gives it the name `path`. Local. */
md_status md_commit_file(md_context *context, const char *temporary, const char *path);

#endif
