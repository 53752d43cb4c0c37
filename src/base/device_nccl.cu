#include "base/device.cuh"
#include "base/device_peers.h"

extern "C" {
#include "base/timer.h"
}
#include <atomic>
#include <exception>
#include <memory>
#include <nccl.h>
#include <new>
#include <string.h>
#include <thread>
#include <unistd.h>

/* The context keeps NCCL's own object under a name without NCCL. */
static ncclComm_t ranks_of(const md_context *context) {
  return (ncclComm_t)context->nccl;
}

/* Of a rank, for the others. */
struct gpu_name {
  char host[64];
  unsigned char gpu[16]; /* its uuid */
};

static md_status nccl_status(md_context *context, ncclResult_t result, const char *what) {
  if (result == ncclSuccess || result == ncclInProgress) return MD_OK;
  return md_fail(
      context, MD_ENVIRONMENT,
      "%s failed on rank %d: NCCL says %s; use another transport, or see NCCL_DEBUG=WARN", what,
      context->rank, ncclGetErrorString(result));
}

static md_status refuse_shared_gpus(md_context *context, const gpu_name *all) {
  for (int a = 0; a < context->ranks; a++)
    for (int b = 0; b < a; b++)
      if (memcmp(&all[a], &all[b], sizeof all[a]) == 0)
        return md_fail(context, MD_ENVIRONMENT,
                       "NCCL needs a GPU for each rank, and ranks %d and %d share one; use fewer "
                       "ranks or another transport",
                       b, a);
  return MD_OK;
}

/* NCCL waits for all ranks when it starts, also for one whose start failed, so a thread waits that
 * may be left behind. */
struct joining {
  ncclComm_t ranks;
  std::atomic<bool> ended;
  ncclResult_t result;
};

static std::shared_ptr<joining> begin_joining(const md_context *context, const ncclUniqueId &id) {
  const int device = context->gpu.number, rank = context->rank, ranks = context->ranks;
  try {
    const auto j = std::make_shared<joining>();
    std::thread([j, device, rank, ranks, id] {
      cudaSetDevice(device);
      j->result = ncclCommInitRank(&j->ranks, ranks, id, rank);
      j->ended = true;
    }).detach();
    return j;
  } catch (const std::exception &) { /* no memory, or no thread */
    return nullptr;
  }
}

static md_status join_ranks(md_context *context, const ncclUniqueId &id) {
  constexpr double patience_s = 30.0;
  const std::shared_ptr<joining> j = begin_joining(context, id);
  const double start_s = md_time_s();
  while (j && !j->ended && md_time_s() - start_s < patience_s) usleep(200);
  const bool ended = j && j->ended;
  /* A rank that knows why speaks before those that have only waited. */
  md_status status = MD_OK;
  if (!j) status = md_fail_memory(context, sizeof *j, "a thread to start NCCL");
  if (ended) status = nccl_status(context, j->result, "the start of NCCL");
  const bool joined = ended && status == MD_OK;
  status = md_agree(context, status);
  if (status == MD_OK)
    status = md_agree(context, ended ? MD_OK
                                     : md_fail(context, MD_ENVIRONMENT,
                                               "NCCL did not start on rank %d within %.0f s; use "
                                               "another transport, or see NCCL_DEBUG=WARN",
                                               context->rank, patience_s));
  if (status == MD_OK)
    context->nccl = (struct md_nccl *)j->ranks;
  else if (joined)
    ncclCommAbort(j->ranks); /* without the others, who may not have joined */
  return status;
}

static md_status start(md_context *context, gpu_name *all) {
  gpu_name mine = {};
  ncclUniqueId id = {};
  md_status status = md_device_open(context);
  if (status == MD_OK) {
    gethostname(mine.host, sizeof mine.host - 1);
    memcpy(mine.gpu, context->gpu.uuid, sizeof mine.gpu);
    if (context->rank == 0)
      status = nccl_status(context, ncclGetUniqueId(&id), "the start of NCCL");
  }
  MD_TRY(md_agree(context, status));
  md_gather_all(context, &mine, sizeof mine, all);
  MD_TRY(refuse_shared_gpus(context, all));
  md_broadcast(context, &id, sizeof id);
  return join_ranks(context, id);
}

extern "C" void md_nccl_close(md_context *context) {
  if (context->nccl) ncclCommDestroy(ranks_of(context));
  context->nccl = NULL;
}

extern "C" md_status md_nccl_open(md_context *context) {
  if (context->nccl) return MD_OK;
  gpu_name *all = new (std::nothrow) gpu_name[context->ranks]();
  md_status status = md_agree(context, all ? MD_OK : md_fail_memory(context, sizeof *all, "NCCL"));
  if (status == MD_OK) status = start(context, all);
  delete[] all;
  return status;
}

extern "C" md_status md_nccl_exchange(md_context *context, const md_nccl_message *messages,
                                      int count, void *stream) {
  const ncclComm_t ranks = ranks_of(context);
  const cudaStream_t queue = (cudaStream_t)stream;
  ncclResult_t result = ncclGroupStart();
  for (const md_nccl_message *m = messages; m < messages + count && result == ncclSuccess; m++)
    result = m->receives ? ncclRecv(m->memory, m->bytes, ncclUint8, m->rank, ranks, queue)
                         : ncclSend(m->memory, m->bytes, ncclUint8, m->rank, ranks, queue);
  const ncclResult_t ended = ncclGroupEnd();
  return nccl_status(context, result == ncclSuccess ? ended : result, "an exchange");
}

extern "C" md_status md_nccl_sum(md_context *context, double *values, int count) {
  const ncclResult_t result = ncclAllReduce(values, values, (size_t)count, ncclDouble, ncclSum,
                                            ranks_of(context), md_stream());
  return nccl_status(context, result, "a sum over ranks");
}

extern "C" md_status md_nccl_check(md_context *context) {
  ncclResult_t met = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(ranks_of(context), &met);
  return nccl_status(context, asked == ncclSuccess ? met : asked, "an exchange");
}
