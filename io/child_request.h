#ifndef MD_IO_CHILD_REQUEST_H
#define MD_IO_CHILD_REQUEST_H

#include "io/attribute.h"
#include "io/hdf5_file.h"

/* Inside of io: what is said between io/child.c and its child, the program of io/reader. Both are
 * of one build, on one machine: plain structs through a socket. What was read is then in the memory
 * that they share. */

enum { MD_CHILD_NAME = 256, MD_CHILD_RANK_MOST = 6, MD_CHILD_DATASETS = 32 };

/* answer.number of SITES and ARRAY: whether the dataset is without checksums. */
typedef enum md_child_what {
  MD_CHILD_DESCRIBE_LINKS, /* md_h5_described */
  MD_CHILD_EXTENTS,        /* of the dataset `name`: md_child_extents */
  MD_CHILD_OBJECT,         /* opens `name`, a dataset or a group */
  MD_CHILD_ATTRIBUTE,      /* `name` of what was opened last; answer.number: whether it is there */
  MD_CHILD_SITES,          /* opens the dataset `name` of site data as the next one */
  MD_CHILD_CHUNKS,         /* of the first such dataset: md_h5_chunk_table */
  MD_CHILD_BOX,            /* sites of the number-th; answer.number: how often Fletcher32 failed */
  MD_CHILD_ARRAY           /* all of the dataset `name`, of doubles or texts */
} md_child_what;

typedef struct md_child_request {
  md_child_what what;
  char name[MD_CHILD_NAME];
  bool dataset;           /* OBJECT: no group */
  md_attribute_type type; /* ATTRIBUTE */
  int count;              /* ATTRIBUTE */
  int dims[MD_DIMS];      /* SITES, CHUNKS */
  md_h5_shape shape;      /* SITES, CHUNKS, BOX */
  int number, lead;       /* BOX */
  md_h5_box box;          /* BOX */
  int rank, text_bytes;   /* ARRAY: as in md_array */
  int64_t extent[MD_CHILD_RANK_MOST];
  bool optional; /* ARRAY: zeros where there is none */
} md_child_request;

/* The first answer comes unasked: the child has begun. */
typedef struct md_child_answer {
  int status;
  long long number;
  char message[sizeof((md_context *)0)->message];
} md_child_answer;

typedef struct md_child_extents {
  int rank;
  long long extent[32]; /* slowest first */
  long long bytes;      /* of an element */
} md_child_extents;

static inline size_t md_attribute_bytes(const md_attribute *a) {
  return (size_t)a->count * (a->type == MD_ATTRIBUTE_TEXT ? 1 : 8);
}

/* All of it; false when the other side is gone or, with a limit (>= 0), silent for that long. */
bool md_child_receive(int socket, void *data, size_t bytes, int limit_ms);
bool md_child_transmit(int socket, const void *data, size_t bytes);

#endif
