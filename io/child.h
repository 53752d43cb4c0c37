#ifndef MD_IO_CHILD_H
#define MD_IO_CHILD_H

#include "io/child_request.h"

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
 * count, up to WAIT_S seconds.
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

/* Starts a child; to be stopped in any case. path outlives it. MD_INPUT when it is no regular
 * file; MD_ENVIRONMENT. Local. */
md_status md_child_start(md_context *context, const char *path, size_t shared_bytes,
                         md_child *child);
/* Waits for the answer: its status and message; MD_INPUT when the child did not live to give one.
 * The file is opened by the first request. May be called by any thread, by one at a time. Local. */
md_status md_child_ask(md_context *context, md_child *child, const md_child_request *request);
/* Ends the child and releases all. Local. */
void md_child_stop(md_child *child);

/* Requests in words, each as md_child_ask. Opens an object, whose attributes are then asked for. */
md_status md_child_open(md_context *context, md_child *child, const char *name, bool dataset);
/* Reads into its data; *found is false when it is absent or of another type or length. */
md_status md_child_find(md_context *context, md_child *child, const md_attribute *attribute,
                        bool *found);
/* The same for all of a list: MD_INPUT names one that is not found. */
md_status md_child_attributes(md_context *context, md_child *child, const md_attribute *list,
                              int count);
/* Opens a dataset of site data: md_h5_open_sites. child->number: whether it is without checksums.
 */
md_status md_child_open_sites(md_context *context, md_child *child, const char *name,
                              const int dims[MD_DIMS], const md_h5_shape *shape);
/* One slab of one lead index of the number-th of these into child->shared; child->number: how many
 * reads met a Fletcher32 that fails. */
md_status md_child_read_slab(md_context *context, md_child *child, int number,
                             const md_geometry *geometry, const md_h5_shape *shape, int lead,
                             const md_slab *slab);

/* The program of io/reader as a descriptor to start it from, at least 3; -1 and errno. The caller
 * closes it. */
int md_child_program(void);

#endif
