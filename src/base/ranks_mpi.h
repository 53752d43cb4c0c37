#pragma once

#include "base/context.h"
#include <mpi.h>

/* The communicator of the run, for the few files that speak MPI (rank agreement, halo
 * transport, reductions, io, gemm over ranks, subcommands). Not to be freed. MPI_COMM_SELF where
 * the context has no MPI. */
MPI_Comm md_mpi(const md_context *context);
