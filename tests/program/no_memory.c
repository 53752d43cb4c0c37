/* Preloaded into the program by one_rank.sh: on the rank NO_MEMORY_RANK its own allocation number
 * NO_MEMORY_AT fails; those of libraries do not count, nor those before MPI is started, which in a
 * build with CUDA are those of its runtime. With 0 none does, and their number is printed at the
 * end. With NO_END its own end waits for ever. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what takes the place of functions of libraries */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static uintptr_t code, code_end; /* of the program */
static long count, at = -1;
static int started;

static int look(struct dl_phdr_info *info, size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
      code = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      code_end = code + info->dlpi_phdr[i].p_memsz;
    }
  return 1; /* the first is the program */
}

__attribute__((constructor)) static void begin(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *mine = getenv("NO_MEMORY_RANK");
  const char *which = getenv("NO_MEMORY_AT");
  dl_iterate_phdr(look, NULL);
  if (rank && mine && which && strcmp(rank, mine) == 0) at = atol(which);
}

__attribute__((destructor)) static void end(void) {
  if (at == 0) fprintf(stderr, "allocations: %ld\n", count);
  while (getenv("NO_END")) pause();
}

static int fails(const void *caller) {
  if (at < 0 || !started || (uintptr_t)caller < code || (uintptr_t)caller >= code_end) return 0;
  if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != at) return 0;
  errno = ENOMEM;
  return 1;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int (*start)(int *, char ***, int, int *);
  *(void **)&start = dlsym(RTLD_NEXT, "MPI_Init_thread");
  const int result = start(argc, argv, required, provided);
  started = 1;
  return result;
}

void *malloc(size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t number, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, bytes);
}
void *realloc(void *old, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}
