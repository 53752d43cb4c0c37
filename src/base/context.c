#include "base/context.h"
#include "base/device.h"
#include "base/memory_need.h"
#include "base/ranks_mpi.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/tune.h"
#include "base/waiting.h"
#include "base/watch.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct md_ranks {
  MPI_Comm world, host;
};

/* What --threads may still change. */
static void choose_threads(md_context *context) {
  const char *asked = getenv("OMP_NUM_THREADS");
  md_cores cores;
  md_cores_look("", &cores);
  MPI_Comm_size(context->communicator->host, &cores.ranks);
  const int own = md_cores_threads(&cores), most = omp_get_thread_limit();
  if (!asked || !*asked) omp_set_num_threads(own < most ? own : most);
  context->threads = omp_get_max_threads();
}

/* A process without a launcher needs nobody to talk to. Open MPI 4 starts a daemon for it all the
 * same, and at the end unloads mca_pmix_ext3x.so and frees what that works on while its own thread
 * may still have an event to serve in there: on a busy machine one run in some thousands crashed in
 * MPI_Finalize. Settings of the user stay. */
static md_status start_mpi(int *argc, char ***argv) {
  static const char *const launched[] = {
      "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "SLURM_STEP_ID"};
  static const char *const folders = "OMPI_MCA_orte_create_session_dirs";
  int level = MPI_THREAD_SINGLE;
  bool alone = true;
  for (size_t i = 0; i < sizeof launched / sizeof *launched; i++)
    alone = alone && !getenv(launched[i]);
  if (alone) {
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_sharedfp", "individual", 0); /* the other kinds want a folder of the run */
  }
  /* Such processes would share that folder: one removes it while another fills it. */
  const bool without = alone && !getenv(folders);
  if (without) setenv(folders, "0", 0);
  const int started = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
  if (without) unsetenv(folders); /* an mpirun that this process starts makes them */
  return started == MPI_SUCCESS ? MD_OK : MD_ENVIRONMENT;
}

/* v: the numbers of a variable, with commas between; those that it leaves out stay. */
static md_status read_numbers(md_context *context, const char *name, const char *rule,
                              int most_count, long long most, long long *v) {
  const char *text = getenv(name);
  int count = 1;
  if (!text || !*text) return MD_OK;
  for (const char *c = text; *c; c++) count += *c == ',';
  if (count <= most_count && md_number_integers(text, ',', count, 0, most, v) == MD_NUMBER_OK)
    return MD_OK;
  return md_fail(context, MD_INPUT, "%s must be %s, got '%.60s'; unset it", name, rule, text);
}

static md_status read_wishes(md_context *context, md_wishes *wishes) {
  const char *record = getenv("MINIDIRAC_RECORD");
  long long v[4] = {0}, node_size = 0;
  if (record && strcmp(record, "always") == 0)
    wishes->record = MD_RECORD_ALWAYS;
  else if (record && strcmp(record, "never") == 0)
    wishes->record = MD_RECORD_NEVER;
  else if (record && *record)
    return md_fail(context, MD_INPUT,
                   "MINIDIRAC_RECORD must be always or never, got '%.60s'; unset it", record);
  MD_TRY(read_numbers(context, "MINIDIRAC_TEST_GPU",
                      "MULTIPROCESSORS,KIB,MIB,CAPABILITY (of a GPU, shared by a block, of L2, 90 "
                      "for 9.0)",
                      4, 9999, v));
  wishes->gpu = (md_device_wish){(int)v[0], (int)v[1], (int)v[2], (int)v[3]};
  MD_TRY(read_numbers(context, "MINIDIRAC_TEST_NODE_SIZE", "an integer from 0 to 2147483647", 1,
                      INT_MAX, &node_size));
  wishes->node_size = (int)node_size;
  return MD_OK;
}

md_status md_context_fill(md_context *context, MPI_Comm over) {
  *context = (md_context){
      .ranks = 1, .local_ranks = 1, .threads = omp_get_max_threads(), .start_s = md_time_s()};
  MPI_Comm_rank(over, &context->rank);
  context->communicator = malloc(sizeof *context->communicator);
  int failed = !context->communicator, any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, over);
  if (any) {
    free(context->communicator);
    context->communicator = NULL;
    return md_fail_memory(context, sizeof *context->communicator, "communicator");
  }
  MPI_Comm_dup(over, &context->communicator->world);
  MPI_Comm_size(context->communicator->world, &context->ranks);
  MPI_Comm_split_type(context->communicator->world, MPI_COMM_TYPE_SHARED, context->rank,
                      MPI_INFO_NULL, &context->communicator->host);
  MPI_Comm_rank(context->communicator->host, &context->local_rank);
  MPI_Comm_size(context->communicator->host, &context->local_ranks);
  context->device = context->local_rank;
  context->start_bytes = md_memory_resident();
  md_status status = context->rank == 0 ? read_wishes(context, &context->wishes) : MD_OK;
  MD_TRY(md_agree(context, status));
  md_broadcast(context, &context->wishes, sizeof context->wishes);
  return MD_OK;
}

md_status md_context_open(md_context *context, int *argc, char ***argv) {
  *context = (md_context){.ranks = 1, .local_ranks = 1, .threads = 1};
  if (start_mpi(argc, argv) != MD_OK)
    return md_fail(context, MD_ENVIRONMENT, "MPI could not start; check the Open MPI installation");
  const md_status status = md_context_fill(context, MPI_COMM_WORLD);
  context->owns_mpi = true;
  if (context->communicator) choose_threads(context);
  return status;
}

void md_context_end(md_context *context) {
  md_device_close(context);
  md_watch_end(context);
  md_tune_close(context);
  if (context->communicator) {
    MPI_Comm_free(&context->communicator->host);
    MPI_Comm_free(&context->communicator->world);
    free(context->communicator);
    context->communicator = NULL;
  }
  if (context->owns_mpi) MPI_Finalize();
}

md_status md_context_split(md_context *whole, int group, md_context *part) {
  *part = *whole;
  part->staging = NULL;
  part->nccl = NULL;
  part->watch = NULL;
  part->communicator = malloc(sizeof *part->communicator);
  const md_status status = part->communicator ? MD_OK
                                              : md_fail_memory(whole, sizeof *part->communicator,
                                                               "communicator of a group");
  if (md_agree(whole, status) != MD_OK) {
    free(part->communicator);
    return MD_ENVIRONMENT;
  }
  struct md_ranks *ranks = part->communicator;
  MPI_Comm_split(md_mpi(whole), group, whole->rank, &ranks->world);
  MPI_Comm_split_type(ranks->world, MPI_COMM_TYPE_SHARED, whole->rank, MPI_INFO_NULL, &ranks->host);
  MPI_Comm_rank(ranks->world, &part->rank);
  MPI_Comm_size(ranks->world, &part->ranks);
  return MD_OK; /* the place among the ranks of the host, which chooses the GPU, stays */
}

void md_context_join(md_context *whole, md_context *part) {
  const md_context found = *part;
  md_device_close(part);
  md_watch_end(part);
  whole->gpu = found.gpu;
  MPI_Comm_free(&part->communicator->host);
  MPI_Comm_free(&part->communicator->world);
  free(part->communicator);
  part->communicator = NULL;
}

MPI_Comm md_mpi(const md_context *context) {
  return context->communicator ? context->communicator->world : MPI_COMM_SELF;
}

md_status md_defer(md_context *context, md_status status) {
  if (context->ranks == 1 || status == MD_OK) return status;
  if (context->deferred.status == MD_OK) {
    context->deferred.status = status;
    memcpy(context->deferred.message, context->message, sizeof context->message);
  }
  return MD_OK;
}

/* The worse of `status` and the deferred failure, which ends here; the deferred one came first. */
static md_status take_deferred(md_context *context, md_status status) {
  const md_status deferred = context->deferred.status;
  context->deferred.status = MD_OK;
  if (deferred == MD_OK || deferred < status) return status;
  memcpy(context->message, context->deferred.message, sizeof context->message);
  return deferred;
}

/* A status and whose it is, as MPI_MAXLOC takes them: the worst, then the lowest rank. */
typedef struct vote {
  int status, rank;
} vote;

/* The worst vote of all ranks is known: its message goes to all. */
static md_status take_worst(md_context *context, MPI_Comm over, const vote *worst) {
  if (worst->status != MD_OK)
    MPI_Bcast(context->message, (int)sizeof context->message, MPI_CHAR, worst->rank, over);
  md_watch_agreed(context);
  return (md_status)worst->status;
}

static md_status agree(md_context *context, MPI_Comm over, md_status status) {
  if (context->ranks == 1) return status;
  const vote mine = {(int)take_deferred(context, status), context->rank};
  vote worst;
  MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, over);
  return take_worst(context, over, &worst);
}

md_status md_agree(md_context *context, md_status status) {
  return agree(context, md_mpi(context), status);
}

md_status md_agree_last(md_context *context, md_status status) {
  if (status != MD_OK) (void)md_watch_begin(context, MD_WATCH_RANKS, context->patience_s, status);
  return agree(context, MPI_COMM_WORLD, status); /* all other steps are those of its copy */
}

md_status md_agree_soon(md_context *context, md_status status, const char *what) {
  if (context->ranks == 1) return status;
  const vote mine = {(int)take_deferred(context, status), context->rank};
  const double start_s = md_time_s();
  bool waits = true;
  int over = 0;
  vote worst;
  MPI_Request request;
  MPI_Iallreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, md_mpi(context), &request);
  for (long long looks = 1; !over; looks++) {
    MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    if (over || !waits || looks % 64 != 0) continue;
    waits = !md_watch_due(context, start_s);
    if (waits) continue;
    md_status failed = (md_status)mine.status; /* with a message of its own */
    if (failed == MD_OK)
      failed = md_fail(context, MD_ENVIRONMENT,
                       "rank %d waited %.0f s for the other ranks to end %s too; one of them is "
                       "blocked",
                       context->rank, context->patience_s, what);
    (void)md_watch_begin(context, MD_WATCH_RANKS, 6.0, failed);
  }
  return take_worst(context, md_mpi(context), &worst);
}

void md_broadcast(const md_context *context, void *data, size_t bytes) {
  const size_t most = 1u << 30;
  for (size_t done = 0; context->ranks > 1 && done < bytes;) {
    const size_t part = bytes - done < most ? bytes - done : most;
    MPI_Bcast((char *)data + done, (int)part, MPI_BYTE, 0, md_mpi(context));
    done += part;
  }
}

void md_gather_all(const md_context *context, const void *mine, size_t bytes, void *all) {
  MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, md_mpi(context));
}

void md_barrier(const md_context *context) {
  if (context->ranks > 1) MPI_Barrier(md_mpi(context));
}

/* MPI_MAX leaves the order of NaN open, so it travels as 0 beside a flag. */
static void extreme(const md_context *context, double *values, int count, MPI_Op operation) {
  if (context->ranks == 1) return;
  for (int i = 0; i < count; i++) {
    double pair[2] = {isnan(values[i]) ? 0.0 : values[i], 0.0};
    int bad = isnan(values[i]) ? 1 : 0, any = 0;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, md_mpi(context));
    MPI_Allreduce(&pair[0], &pair[1], 1, MPI_DOUBLE, operation, md_mpi(context));
    values[i] = any ? NAN : pair[1];
  }
}

void md_maximum(const md_context *context, double *values, int count) {
  extreme(context, values, count, MPI_MAX);
}

void md_minimum(const md_context *context, double *values, int count) {
  extreme(context, values, count, MPI_MIN);
}

long long md_sum_on_host(const md_context *context, long long value, int *ranks) {
  *ranks = 1;
  if (context->ranks == 1) return value;
  MPI_Comm_size(context->communicator->host, ranks);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LONG_LONG, MPI_SUM, context->communicator->host);
  return value;
}

void md_sum_integers(const md_context *context, long long *values, int count) {
  if (context->ranks > 1)
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_LONG_LONG, MPI_SUM, md_mpi(context));
}
