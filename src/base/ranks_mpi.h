#pragma once

#include "base/context.h"
#include <mpi.h>

/* The communicator of the run, for the few files that speak MPI (rank agreement, halo
 * transport, reductions, io, gemm over ranks, subcommands). Not to be freed. MPI_COMM_SELF where
 * the context has no MPI. */
MPI_Comm md_mpi(const md_context *context);

/* Fills a context for the ranks of a communicator, of which it takes a copy: with the OpenMP
 * threads that there are, and nothing of the process is changed. MD_ENVIRONMENT for memory,
 * MD_INPUT for a variable of md_wishes; md_context_end is called all the same. Collective. */
md_status md_context_fill(md_context *context, MPI_Comm over);
