#include "base/device.cuh"
#include "base/device_nccl.h"

#include <nccl.h>
#include <new>
#include <string.h>
#include <unistd.h>

struct md_nccl {
  ncclComm_t ranks;
};

/* Of a rank, for the others. */
struct gpu_name {
  char host[64];
  cudaUUID_t gpu;
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

static md_status start(md_context *context, gpu_name *all) {
  gpu_name mine = {};
  ncclUniqueId id = {};
  cudaDeviceProp properties;
  md_status status = md_device_open(context);
  if (status == MD_OK)
    status = md_cuda_status(context, cudaGetDeviceProperties(&properties, context->device),
                            "device query");
  if (status == MD_OK) {
    gethostname(mine.host, sizeof mine.host - 1);
    mine.gpu = properties.uuid;
    if (context->rank == 0)
      status = nccl_status(context, ncclGetUniqueId(&id), "the start of NCCL");
  }
  MD_TRY(md_agree(context, status));
  md_gather_all(context, &mine, sizeof mine, all);
  MD_TRY(refuse_shared_gpus(context, all));
  md_broadcast(context, &id, sizeof id);
  const ncclResult_t started =
      ncclCommInitRank(&context->nccl->ranks, context->ranks, id, context->rank);
  return md_agree(context, nccl_status(context, started, "the start of NCCL"));
}

extern "C" void md_nccl_close(md_context *context) {
  if (!context->nccl) return;
  if (context->nccl->ranks) ncclCommDestroy(context->nccl->ranks);
  delete context->nccl;
  context->nccl = NULL;
}

extern "C" md_status md_nccl_open(md_context *context) {
  if (context->nccl) return MD_OK;
  gpu_name *all = new (std::nothrow) gpu_name[context->ranks]();
  context->nccl = new (std::nothrow) md_nccl();
  md_status status = all && context->nccl ? MD_OK : md_fail_memory(context, sizeof *all, "NCCL");
  status = md_agree(context, status);
  if (status == MD_OK) status = start(context, all);
  if (status != MD_OK) md_nccl_close(context);
  delete[] all;
  return status;
}

extern "C" md_status md_nccl_exchange(md_context *context, int count, const md_nccl_message *send,
                                      const md_nccl_message *receive, void *stream) {
  ncclComm_t ranks = context->nccl->ranks;
  ncclResult_t result = ncclGroupStart();
  for (int c = 0; c < count && result == ncclSuccess; c++) {
    result = ncclSend(send[c].memory, send[c].bytes, ncclUint8, send[c].rank, ranks,
                      (cudaStream_t)stream);
    if (result == ncclSuccess)
      result = ncclRecv(receive[c].memory, receive[c].bytes, ncclUint8, receive[c].rank, ranks,
                        (cudaStream_t)stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return nccl_status(context, result == ncclSuccess ? ended : result, "an exchange");
}

extern "C" md_status md_nccl_check(md_context *context) {
  ncclResult_t met = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(context->nccl->ranks, &met);
  return nccl_status(context, asked == ncclSuccess ? met : asked, "an exchange");
}
