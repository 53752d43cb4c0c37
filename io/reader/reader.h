#pragma once

#include "io/child.h"

/* Inside of the program that reads HDF5 files of unknown origin (io/child.h). It has no MPI, CUDA
 * or OpenMP, and one thread. */

typedef struct md_reader {
  md_h5_file file;
  void *shared; /* with the parent: where answers are put */
  size_t shared_bytes;
  struct {
    hid_t dataset;
    int dims[MD_DIMS];
    md_h5_shape shape;
  } sites[MD_CHILD_DATASETS];
  int dataset_count;
} md_reader;

/* Does what is asked for; the first time it opens the file. *number is that of the answer. */
md_status md_reader_serve(md_reader *reader, const md_child_request *request, long long *number);
/* From now on no file can be opened, so none that this one points to is read. */
void md_reader_open_no_more(void);
