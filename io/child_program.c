#include "io/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* MD_READER_FILE is the program where it was built. */
#ifdef MD_READER_IN_PLACE
int md_child_program(void) {
  const int file = open(MD_READER_FILE, O_RDONLY | O_CLOEXEC);
  const int program = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
  if (file >= 0) close(file);
  return program;
}
#else

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".hidden md_reader_begin\n.globl md_reader_begin\nmd_reader_begin:\n"
        ".incbin \"" MD_READER_FILE "\"\n"
        ".hidden md_reader_end\n.globl md_reader_end\nmd_reader_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const unsigned char md_reader_begin[], md_reader_end[];

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int copy_to(int file) {
  const size_t bytes = (size_t)(md_reader_end - md_reader_begin);
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = write(file, md_reader_begin + done, bytes - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return -1;
    done += (size_t)part;
  }
  return fcntl(file, F_DUPFD_CLOEXEC, 3);
}

int md_child_program(void) {
  int file = memfd_create("minidirac_read", MFD_CLOEXEC | MFD_EXEC);
  if (file < 0 && errno == EINVAL) /* Linux before 6.3 */
    file = memfd_create("minidirac_read", MFD_CLOEXEC);
  if (file < 0) return -1;
  const int program = copy_to(file), reason = errno;
  close(file);
  errno = reason;
  return program;
}
#endif
