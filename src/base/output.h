#ifndef MD_BASE_OUTPUT_H
#define MD_BASE_OUTPUT_H

#include "base/context.h"

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

/* Checks the files that a command will write before its work, so that hours are not lost to a
 * name. MD_INPUT: an output that is a directory, a device, a pipe or socket, one of the inputs
 * (through whatever links), the same as another output, or a result that is there without `force`.
 * MD_ENVIRONMENT: a folder that is not there, or a folder or old file that may not be written. Rank
 * 0 looks. Collective. */
md_status md_outputs_check(md_context *context, const md_named_file *files, size_t count,
                           bool force);

#endif
