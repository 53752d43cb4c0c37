/* Preloaded by bad_disk.sh: rank 1 flips a bit of the FLIP_AT-th message of halos that it awaits.
 */
#include <mpi.h>
#include <stdlib.h>

#pragma GCC visibility push(default) /* what takes the place of functions of libraries */

enum { MOST = 4096 };
static struct {
  MPI_Request request;
  char *buffer;
} receipts[MOST]; /* persistent ones */
static int made, awaited;

int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag,
                  MPI_Comm communicator, MPI_Request *request) {
  const int code = PMPI_Recv_init(buffer, count, type, source, tag, communicator, request);
  if (made < MOST) {
    receipts[made].buffer = buffer;
    receipts[made++].request = *request;
  }
  return code;
}

int MPI_Request_free(MPI_Request *request) {
  for (int i = 0; i < made; i++)
    if (receipts[i].request == *request) receipts[i] = receipts[--made];
  return PMPI_Request_free(request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const char *at = getenv("FLIP_AT");
  char *buffer = NULL;
  int rank;
  for (int i = 0; i < made && count > 0; i++)
    if (receipts[i].request == requests[0]) buffer = receipts[i].buffer;
  const int code = PMPI_Waitall(count, requests, statuses);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (at && buffer && rank == 1 && ++awaited == atoi(at)) buffer[8] ^= 1;
  return code;
}
