#include "base/threads.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As OpenMP reads it: a number of KiB, or of what a letter behind it says; 0: not given. */
static size_t stack_bytes(void) {
  const char *text = getenv("OMP_STACKSIZE");
  char *end = NULL;
  if (!text) return 0;
  const unsigned long long number = strtoull(text, &end, 10);
  end += strspn(end, " ");
  static const char units[] = "bBkKmMgG";
  const char *unit = *end ? strchr(units, *end) : &units[2];
  const int bits = unit ? 10 * (int)((unit - units) / 2) : 64;
  return bits < 64 && number <= SIZE_MAX >> bits ? (size_t)number << bits : 0;
}

static void *pass(void *gate) {
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
  return NULL;
}

static int start(pthread_t *thread, pthread_mutex_t *gate) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const size_t stack = stack_bytes();
  if (stack > 0) pthread_attr_setstacksize(&attributes, stack); /* too small a one is not taken */
  const int error = pthread_create(thread, &attributes, pass, gate);
  pthread_attr_destroy(&attributes);
  return error;
}

md_status md_threads_check(md_context *context, int threads) {
  const size_t bytes = (size_t)threads * sizeof(pthread_t);
  pthread_t *others = malloc(bytes);
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  md_status status = others ? MD_OK : md_fail_memory(context, bytes, "threads");
  int count = 0;
  pthread_mutex_lock(&gate);
  for (; status == MD_OK && count < threads - 1; count++) {
    const int error = start(&others[count], &gate);
    if (error == 0) continue;
    status = md_fail(context, MD_ENVIRONMENT,
                     "rank %d must have %d threads, but this machine gives it %d: %s; ask for "
                     "fewer, or raise the limit (ulimit -u, ulimit -v, OMP_STACKSIZE, pids.max)",
                     context->rank, threads, count + 1, strerror(error));
    break;
  }
  status = md_agree(context, status); /* before they end: ranks share some of the limits */
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < count; i++) pthread_join(others[i], NULL);
  free(others);
  return status;
}
