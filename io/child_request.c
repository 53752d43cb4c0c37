#include "io/child_request.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

bool md_child_receive(int socket, void *data, size_t bytes, int limit_ms) {
  for (size_t done = 0; done < bytes;) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    const int ready = limit_ms < 0 ? 1 : poll(&wait, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t part = recv(socket, (char *)data + done, bytes - done, 0);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}

bool md_child_transmit(int socket, const void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}
