#pragma once

#include "io/arrays.h"
#include "io/hdf5_file.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Inside of io: work on an HDF5 file that may be damaged or hostile, done in a process of its own.
 *
 * The HDF5 library trusts what it reads: a flipped bit in a file's metadata can end it with a
 * signal, keep it in a loop or make it ask for all memory. So it sees files of others only in a
 * child, which answers through a socket and shared memory; the parent takes from it nothing but
 * plain data, which it checks. The child is a program of its own (io/reader), started anew for each
 * file by posix_spawn: nothing of this process, its threads, MPI or CUDA is in it. It has no core
 * dump, nothing to print to, MEMORY bytes beside its own code, and for each request PROCESSOR_S
 * seconds of processor time and one more for every 256 MiB of the file; waiting for a disk does not
 * count, up to WAIT_S seconds and 8 for each of those.
 *
 * The library carries that program within itself and starts it from a file in memory (memfd), so
 * that there is nothing to find: not for a program elsewhere that links the library, nor after an
 * installation was moved. Builds with sanitizers, which are not installed, start it from the build
 * folder, where their reports find its source lines. */
enum { MD_CHILD_MEMORY = 1 << 30, MD_CHILD_PROCESSOR_S = 3, MD_CHILD_WAIT_S = 600 };

typedef struct md_child {
  const char *path; /* of the file, for messages */
  int processor_s;  /* for each request */
  int socket;
  pid_t process; /* 0: none */
  void *shared;  /* zeros at the start */
  size_t shared_bytes;
  long long number; /* of the last answer */
} md_child;

/* What is said between io/child.c and its child. Both are of one build, on one machine: plain
 * structs through a socket, each sent whole. What was read is then in the memory that they share.
 */
enum { MD_CHILD_NAME = 256, MD_CHILD_DATASETS = 48 };

/* answer.number of SITES and ARRAY: whether the dataset is without checksums. */
typedef enum md_child_what {
  MD_CHILD_DESCRIBE_LINKS, /* md_h5_described */
  MD_CHILD_EXTENTS,        /* of the dataset `name`: md_h5_found */
  MD_CHILD_ATTRIBUTE,      /* of the object `name`; answer.number: whether it is there */
  MD_CHILD_SITES,          /* opens the dataset `name` of site data as the next one */
  MD_CHILD_CHUNKS,         /* of the first such dataset: md_h5_chunk_table */
  MD_CHILD_BOX,            /* sites of the number-th; answer.number: how often Fletcher32 failed */
  MD_CHILD_ARRAY,          /* all of the dataset `name` */
  MD_CHILD_VERIFY          /* md_datasets_found */
} md_child_what;

typedef struct md_child_request {
  md_child_what what;
  char name[MD_CHILD_NAME];
  char attribute[MD_CHILD_NAME]; /* ATTRIBUTE, with the next three */
  bool dataset;                  /* the object is no group */
  md_attribute_type type;
  int count;
  int dims[MD_DIMS]; /* SITES */
  md_h5_shape shape; /* SITES */
  int number, lead;  /* BOX */
  md_h5_box box;     /* BOX */
  md_array array;    /* ARRAY: without its pointers */
} md_child_request;

/* The first answer comes unasked: the child has begun. */
typedef struct md_child_answer {
  int status;
  long long number;
  char message[sizeof((md_context *)0)->message];
} md_child_answer;

/* What the child tells of a file of links: nothing of it is to be trusted. */
enum { MD_H5_RECORDS_MOST = 1024, MD_H5_DEPARTURES_MOST = 64 };
typedef struct md_h5_described {
  md_lattice_header header;
  int record_count, departure_count;
  md_record records[MD_H5_RECORDS_MOST];
  char departures[MD_H5_DEPARTURES_MOST][200];
  size_t texts_used;
  int texts_lost;
  char texts[MD_FILE_TEXTS_MOST];
} md_h5_described;

/* One message of that length; false, and errno, when the other side is gone or silent for longer
 * than the socket allows. */
static inline bool md_child_receive(int socket, void *data, size_t bytes) {
  ssize_t part;
  do part = recv(socket, data, bytes, 0);
  while (part < 0 && errno == EINTR);
  return part == (ssize_t)bytes;
}
static inline bool md_child_transmit(int socket, const void *data, size_t bytes) {
  ssize_t part;
  do part = send(socket, data, bytes, MSG_NOSIGNAL);
  while (part < 0 && errno == EINTR);
  return part == (ssize_t)bytes;
}

static inline size_t md_attribute_bytes(const md_attribute *a) {
  return (size_t)a->count * (a->type == MD_ATTRIBUTE_TEXT ? 1 : 8);
}

/* The most that one of the list takes, and at least that many bytes. */
static inline size_t md_attributes_most(const md_attribute *list, int count, size_t most) {
  for (int i = 0; i < count; i++)
    if (md_attribute_bytes(&list[i]) > most) most = md_attribute_bytes(&list[i]);
  return most;
}
static inline size_t md_array_bytes(const md_array *a) {
  size_t bytes = a->text_bytes ? (size_t)a->text_bytes : sizeof(double);
  for (int d = 0; d < a->rank; d++) bytes *= (size_t)a->extent[d];
  return bytes;
}

/* Starts a child; to be stopped in any case. path outlives it. MD_INPUT when it is no regular
 * file; MD_ENVIRONMENT. Local. */
md_status md_child_start(md_context *context, const char *path, size_t shared_bytes,
                         md_child *child);
/* Waits for the answer: its status and message; MD_INPUT when the child did not live to give one.
 * The file is opened by the first request. May be called by any thread, by one at a time. Local. */
md_status md_child_ask(md_context *context, md_child *child, const md_child_request *request);
/* Ends the child and releases all. Local. */
void md_child_stop(md_child *child);

/* Requests in words, each as md_child_ask. Reads an attribute of a dataset or group into its data;
 * *found is false when it is absent or of another type or length. */
md_status md_child_find(md_context *context, md_child *child, const char *object, bool dataset,
                        const md_attribute *attribute, bool *found);
/* The same for all of a list: MD_INPUT names one that is not found. */
md_status md_child_attributes(md_context *context, md_child *child, const char *object,
                              bool dataset, const md_attribute *list, int count);
/* Opens a dataset of site data: md_h5_open_sites. child->number: whether it is without checksums.
 */
md_status md_child_open_sites(md_context *context, md_child *child, const char *name,
                              const int dims[MD_DIMS], const md_h5_shape *shape);
/* One slab of one lead index of the number-th of these into child->shared; child->number: how many
 * reads met a Fletcher32 that fails. */
md_status md_child_read_slab(md_context *context, md_child *child, int number,
                             const md_geometry *geometry, int lead, const md_slab *slab);
