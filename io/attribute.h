#pragma once

#include "base/context.h"

#include <stdint.h>

/* A named value in an HDF5 file: `count` doubles or 64-bit integers, or a text. Written from
 * data, or read into it. */
typedef enum md_attribute_type {
  MD_ATTRIBUTE_REAL,    /* double[count] */
  MD_ATTRIBUTE_INTEGER, /* int64_t[count] */
  MD_ATTRIBUTE_TEXT     /* char[count], closed by a zero byte; on writing count is not used */
} md_attribute_type;

typedef struct md_attribute {
  const char *name;
  md_attribute_type type;
  int count;
  void *data;
} md_attribute;

/* Where a file comes from, as attributes of the group or dataset that holds its data. All HDF5
 * files of miniDirac have the same names:
 *   lattice           text  file of the links, as the command line named it
 *   lattice_checksum  text  its checksum in the words of md_checksum_print
 *   action            text  what D is, with its parameters
 *   mass, tolerance   real
 *   version, commit, date_utc (2026-01-31T23:59:59Z), command_line: text
 * The last four are always there; of the others those that the writer knows. */
enum {
  MD_PROVENANCE_ATTRIBUTES = 9, /* at most */
  MD_PROVENANCE_DATE = 32,
  MD_PROVENANCE_COMMAND_LINE = 4096 /* bytes; a longer one is cut and ends in "..." */
};

typedef struct md_provenance {
  const char *lattice, *lattice_checksum, *action; /* borrowed; NULL or empty: not known */
  double mass, tolerance;                          /* NaN: none */
  char date_utc[MD_PROVENANCE_DATE], command_line[MD_PROVENANCE_COMMAND_LINE];
} md_provenance;

/* A provenance of which only the run itself is known: its date and command line are those of rank
 * 0, now, on every rank, as HDF5 asks for. Collective. */
void md_provenance_of_run(const md_context *context, md_provenance *p);

/* Appends what is known to the list of `count` attributes, which has room for
 * MD_PROVENANCE_ATTRIBUTES more, and returns the new count. The list points into *p. Local. */
int md_provenance_append(md_provenance *p, md_attribute *attributes, int count);
