#pragma once

#include "base/context.h"
#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* Writing a file so that its name holds the old file or the whole new one, never a part: a
 * temporary in the same folder, fsync, rename.
 *
 * The temporary is called TARGET.MACHINE-PID-START-RANDOM.partial and created exclusively. The
 * name tells its owner: a process with this pid and start time, on the machine, boot and pid
 * namespace whose hash is MACHINE. One whose owner is dead is removed when TARGET is written
 * again; one of another machine is left alone, because nothing safe tells whether its owner
 * lives (a lock on it would do so, but MPI-IO itself locks whole files on NFS). Two writers of
 * one target do not meet: the one that renames last stays; with `keep_old` it is the one that
 * renames first, and what the other wrote last is called TARGET.MACHINE-PID-START.kept. A
 * symbolic link is followed: the file that it names is replaced, the link stays. An old file hands
 * down its permissions. */
typedef struct md_new_file {
  char target[PATH_MAX]; /* the name to be, links followed */
  char path[PATH_MAX];   /* the temporary, the same on every rank: write here, do not unlink */
  int file;              /* rank 0: descriptor of the temporary; elsewhere -1 */
  mode_t mode;           /* of the finished file */
  bool keep_old;         /* set after begin: the target is to be new, also at the end */
} md_new_file;

/* To be called first in main: descriptors 0 to 2 that are closed become ones whose use fails, so
 * that no library opens something else under such a number, which the program would then write to.
 * Local. */
void md_files_hold_standard(void);

/* Rank 0 removes what dead writers of `path` left and creates the temporary; every rank gets its
 * name. MD_INPUT: a name that is empty or too long, a target that is no regular file.
 * MD_ENVIRONMENT: it cannot be created. Collective. */
md_status md_new_file_begin(md_context *context, const char *path, md_new_file *file);
/* With MD_OK on every rank the temporary, closed by all others, is flushed to disk and renamed,
 * and so is its folder; else, and when that fails (MD_ENVIRONMENT), it is removed and the old file
 * stays. With keep_old and a target that is there by now: MD_ENVIRONMENT, and the message says
 * where the new file is. Returns the agreed status. Collective; `file` may come from a begin that
 * failed.
 */
md_status md_new_file_end(md_context *context, md_new_file *file, md_status status);

/* Writes `bytes` of `data` to `path` in this way. Local. */
md_status md_write_file(md_context *context, const char *path, const void *data, size_t bytes);

/* The file that `path` names after all symbolic links of its last part, which need not be there;
 * one of /proc, which stands for an open file, is not followed. MD_INPUT when it is too long or the
 * links go in a circle. Local. */
md_status md_follow_links(md_context *context, const char *path, char target[PATH_MAX]);
/* The folder of a name: "." without a slash. Local. */
void md_folder_of(const char *path, char folder[PATH_MAX]);
/* "a directory", "a device", "a pipe", "a socket" for what is no regular file. */
const char *md_file_kind(mode_t mode);
/* What the errno of a name that cannot be opened counts as: MD_INPUT where the name is at fault
 * (none of that name, no permission, a folder), MD_ENVIRONMENT where the system is (too many open
 * files, memory, disk). */
md_status md_open_blame(int reason);
/* The failure to open `path` for reading, with its errno. `what` begins the message and may be
 * empty. Local. */
md_status md_fail_open(md_context *context, const char *what, const char *path, int reason);
/* Length of the regular file that `path` names, before it is opened: a pipe would keep its reader
 * waiting for ever. MD_INPUT when it is missing or no regular file. Local. */
md_status md_file_length(md_context *context, const char *path, int64_t *bytes);

/* What a command does with a file that one of its options names. */
typedef enum md_file_use {
  MD_FILE_NONE,   /* the option names no file */
  MD_FILE_INPUT,  /* it is read */
  MD_FILE_REPORT, /* it is written or replaced at the end; "-" is stdout */
  MD_FILE_RESULT, /* it is written; one that is there is replaced only with --force */
  MD_FILE_STATE   /* a checkpoint: read, written and replaced */
} md_file_use;

enum { MD_FILE_OPTION_BYTES = 32 };
typedef struct md_named_file {
  char option[MD_FILE_OPTION_BYTES]; /* as messages name it: "--output", "OUT" */
  const char *path;
  md_file_use use;
  const char *force; /* as messages name what replaces it; NULL: --force */
} md_named_file;

/* Files beside those that options name: a command makes their names of given ones. Empty: all
 * zero. */
typedef struct md_made_files {
  md_named_file *file;
  size_t count, room;
} md_made_files;

/* Appends a file, with copies of the texts. MD_ENVIRONMENT: memory. Local. */
md_status md_made_files_add(md_context *context, md_made_files *files, const char *option,
                            const char *path, md_file_use use);
void md_made_files_free(md_made_files *files);

/* Whether a text begins as a report does, with a brace, or as a table, with a line of names and
 * commas: its first MD_REPORT_HEAD bytes, or all of a shorter one, tell. Local. */
enum { MD_REPORT_HEAD = 4096 };
bool md_begins_as_report(const char *head);

/* Checks the files that a command will write before its work, so that hours are not lost to a
 * name. MD_INPUT: an output that is a directory, a device, a pipe or socket, a descriptor, one of
 * the inputs (through whatever links), the same as another output, a result that is there without
 * `force`, or a report that would replace a file which is neither empty nor begins as reports and
 * tables do. MD_ENVIRONMENT: a folder that is not there, or a folder or old file that may not be
 * written. Rank 0 looks. Collective. */
md_status md_outputs_check(md_context *context, const md_named_file *files, size_t count,
                           bool force);
