#include "base/context.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A process without a launcher ends in order, however late the threads of MPI come: here they sleep
 * whenever they have been woken. Started as a user starts it, without the settings of the tests. */
enum { LATE_MS = 200 };
static pthread_t first;
static bool ready;

/* That of the C library, which MPI's threads call for what they wait for. */
int poll(struct pollfd *files, nfds_t count, int limit_ms) {
  const struct timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000L};
  const struct timespec late = {0, LATE_MS * 1000000L};
  const long found =
      syscall(SYS_ppoll, files, count, limit_ms < 0 ? NULL : &limit, NULL, (size_t)0);
  if (found > 0 && ready && !pthread_equal(pthread_self(), first)) nanosleep(&late, NULL);
  return (int)found;
}

int main(int argc, char **argv) {
  static const char *const settings[] = {"OMPI_MCA_ess_singleton_isolated",
                                         "OMPI_MCA_orte_create_session_dirs", "OMPI_MCA_sharedfp"};
  md_context context;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) unsetenv(settings[i]);
  first = pthread_self();
  ready = true;
  if (md_context_open(&context, &argc, &argv) != MD_OK) return 1;
  const bool tidy = getenv("OMPI_MCA_orte_create_session_dirs") == NULL;
  if (!tidy) fputs("a setting for this process alone is left to those that it starts\n", stderr);
  md_context_end(&context);
  return tidy ? 0 : 1;
}
