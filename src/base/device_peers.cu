#include "base/device_peers.cuh"

extern "C" {
#include "base/waiting.h"
#include "base/watch.h"
}

#include <new>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a rank tells the others of its memory. */
struct announcement {
  char host[128]; /* name and boot of the machine: ranks of one node agree in all bytes */
  cudaIpcMemHandle_t handle;
};

static void name_host(const md_context *context, char *host, size_t bytes) {
  const int size = context->wishes.node_size;
  memset(host, 0, bytes);
  gethostname(host, bytes / 4);
  if (size > 0)
    snprintf(host + strlen(host), bytes / 4, " (node %d of a test)", context->rank / size);
  md_line_in("/proc/sys/kernel/random/boot_id", host + bytes / 2, (int)(bytes / 2));
}

extern "C" md_status md_device_nodes(md_context *context, int *node) {
  constexpr size_t bytes = sizeof announcement::host;
  char *all = new (std::nothrow) char[context->ranks * bytes];
  char mine[bytes];
  name_host(context, mine, bytes);
  const md_status status =
      md_agree(context, all ? MD_OK : md_fail_memory(context, context->ranks * bytes, "nodes"));
  if (status == MD_OK) md_gather_all(context, mine, bytes, all);
  for (int r = 0; r < context->ranks && status == MD_OK; r++) {
    node[r] = 0;
    while (memcmp(&all[node[r] * bytes], &all[r * bytes], bytes) != 0) node[r]++;
  }
  delete[] all;
  return status;
}

/* Plain memory: that of a pool has no handle that another process could open. */
static md_status announce(md_context *context, md_device_peers *p, const char *what,
                          announcement *mine) {
  MD_TRY(md_device_require(context, p->bytes, what));
  MD_TRY(md_cuda_status(context, cudaMalloc(&p->mine, p->bytes), what));
  MD_TRY(md_cuda_status(context, cudaMemset(p->mine, 0, p->bytes), what));
  MD_TRY(md_cuda_status(context, cudaDeviceSynchronize(), what));
  name_host(context, mine->host, sizeof mine->host);
  if (context->ranks == 1) return MD_OK;
  return md_cuda_status(context, cudaIpcGetMemHandle(&mine->handle, p->mine),
                        "sharing device memory with other ranks");
}

static md_status map(md_context *context, md_device_peers *p, bool within,
                     const announcement *all) {
  for (int r = 0; r < p->ranks; r++) {
    if (r == context->rank) {
      p->of[r] = p->mine;
      continue;
    }
    const bool far = memcmp(all[r].host, all[context->rank].host, sizeof all[r].host) != 0;
    if (far && within) continue;
    if (far)
      return md_fail(context, MD_ENVIRONMENT,
                     "GPUs address each other's memory only within a host, and rank %d is on %s, "
                     "rank %d on %s; use another transport",
                     context->rank, all[context->rank].host, r, all[r].host);
    const cudaError_t error =
        cudaIpcOpenMemHandle(&p->of[r], all[r].handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess) {
      p->of[r] = NULL;
      cudaGetLastError();
      return md_fail(context, MD_ENVIRONMENT,
                     "the GPU of rank %d cannot address the memory of the GPU of rank %d (%s); use "
                     "another transport",
                     context->rank, r, cudaGetErrorString(error));
    }
  }
  MD_TRY(md_device_allocate(context, p->ranks * sizeof(void *), "addresses of other ranks",
                            (void **)&p->of_on_device));
  return md_device_upload(context, p->of_on_device, p->of, p->ranks * sizeof(void *));
}

static md_status share(md_context *context, md_device_peers *p, const char *what, bool within,
                       announcement *all) {
  announcement mine = {};
  md_status status = md_device_allocate_pinned(context, sizeof *p->timeout, "flags of other ranks",
                                               (void **)&p->timeout);
  if (status == MD_OK) {
    *p->timeout = {-1, 0};
    status = announce(context, p, what, &mine);
  }
  MD_TRY(md_agree(context, status));
  md_gather_all(context, &mine, sizeof mine, all);
  return md_agree(context, map(context, p, within, all));
}

/* Nobody frees what another rank still has mapped. Also for a start that failed on some ranks. */
static void end(md_context *context, md_device_peers *p) {
  cudaDeviceSynchronize();
  for (int r = 0; p && p->of && r < p->ranks; r++)
    if (p->of[r] && p->of[r] != p->mine) cudaIpcCloseMemHandle(p->of[r]);
  md_barrier(context);
  if (!p) return;
  cudaFree(p->mine);
  md_device_free(p->of_on_device);
  md_device_free_pinned(p->timeout);
  delete[] p->of;
  delete p;
}

extern "C" md_status md_device_peers_create(md_context *context, size_t bytes, const char *what,
                                            bool within, md_device_peers **peers) {
  md_device_peers *p = new (std::nothrow) md_device_peers();
  announcement *all = new (std::nothrow) announcement[context->ranks]();
  md_status status = md_device_open(context);
  *peers = NULL;
  if (p)
    *p = {context->ranks, bytes, NULL,   new (std::nothrow) void *[context->ranks](),
          NULL,           NULL,  context};
  if (!p || !all || !p->of) status = md_fail_memory(context, sizeof *p, "shared device memory");
  status = md_agree(context, status);
  if (status == MD_OK) status = share(context, p, what, within, all);
  delete[] all;
  if (status == MD_OK)
    *peers = p;
  else
    end(context, p);
  return status;
}

extern "C" void md_device_peers_destroy(md_device_peers *peers) {
  if (peers) end(peers->context, peers);
}

extern "C" md_status md_device_peers_check(md_context *context, const md_device_peers *peers) {
  const int rank = __atomic_load_n(&peers->timeout->rank, __ATOMIC_ACQUIRE);
  if (rank < 0) return MD_OK;
  const md_status status =
      md_fail(context, MD_ENVIRONMENT,
              "the GPU of rank %d waited 20 s for rank %d in vain (step %lld); that rank has ended "
              "or is blocked",
              context->rank, rank, peers->timeout->tick);
  return md_watch_begin(context, MD_WATCH_RANKS, 12.0, status);
}
