/* Contexts for programs that own MPI, and what other handles are made with. */
#include "base/device.h"
#include "base/file.h"
#include "base/memory_need.h"
#include "base/options.h"
#include "base/ranks_mpi.h"
#include "base/timer.h"
#include "base/tune.h"
#include "gemm/gemm.h"
#include "library/library.h"
#include "md_version.h"
#include "measure/measure.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

const char *md_version(void) {
  return MD_VERSION;
}

/* Of this process alone, before any call that others take part in. */
static md_status check_mpi(md_context *context, MPI_Comm communicator) {
  int started = 0, ended = 0, inter = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (!started || ended)
    return md_fail(context, MD_ENVIRONMENT,
                   "a context needs MPI, which has %s; call MPI_Init_thread with "
                   "MPI_THREAD_FUNNELED before, and MPI_Finalize after the last context is closed",
                   ended ? "ended" : "not been started");
  if (communicator != MPI_COMM_NULL) MPI_Comm_test_inter(communicator, &inter);
  if (communicator == MPI_COMM_NULL || inter)
    return md_fail(context, MD_INPUT,
                   "a context needs an intracommunicator, got %s; open it on the ranks that are to "
                   "work together",
                   inter ? "an intercommunicator" : "MPI_COMM_NULL");
  return MD_OK;
}

/* OpenMP threads run beside calls of MPI. */
static md_status check_level(md_context *context) {
  static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED"};
  int level = MPI_THREAD_SINGLE, main_thread = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&main_thread);
  if (level < MPI_THREAD_FUNNELED)
    return md_fail(context, MD_ENVIRONMENT,
                   "MPI must have thread level %s or above, got %s; start it by MPI_Init_thread in "
                   "place of MPI_Init",
                   names[1], names[0]);
  if (level == MPI_THREAD_FUNNELED && !main_thread)
    return md_fail(context, MD_ENVIRONMENT,
                   "under %s the thread that started MPI makes all calls, this is another one; "
                   "call from that, or start MPI with MPI_THREAD_SERIALIZED",
                   names[1]);
  return MD_OK;
}

md_status md_context_open_on(MPI_Comm communicator, md_context **context) {
  md_context spare = {.ranks = 1}, *own = calloc(1, sizeof *own);
  *context = own;
  md_status status = check_mpi(own ? own : &spare, communicator);
  if (status != MD_OK) return status;
  int failed = !own, any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, communicator);
  if (any) {
    free(own);
    *context = NULL;
    return MD_ENVIRONMENT;
  }
  status = md_context_fill(own, communicator);
  own->quiet = true;
  if (own->communicator) status = md_agree(own, status == MD_OK ? check_level(own) : status);
  return status;
}

md_status md_context_open_world(md_context **context) {
  int started = 0, level;
  MPI_Initialized(&started);
  if (!started) MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  const md_status status = md_context_open_on(MPI_COMM_WORLD, context);
  if (*context) (*context)->owns_mpi = !started;
  return status;
}

void md_context_close(md_context *context) {
  if (context) md_context_end(context);
  free(context);
}

void md_context_choose_device(md_context *context, int number) {
  context->device = number < 0 ? 0 : number;
}

const char *md_context_message(const md_context *context) {
  return context ? context->message : "there is not enough memory for a context";
}

void *md_handle(md_context *context, size_t bytes) {
  void *handle = calloc(1, bytes);
  const md_status status = handle ? MD_OK : md_fail_memory(context, bytes, "a handle");
  if (md_agree(context, status) == MD_OK) return handle;
  free(handle);
  return NULL;
}

md_status md_word(md_context *context, const char *label, const char *choices, const char *word,
                  int *value) {
  *value = word ? md_choice_of(choices, word) : -1;
  if (!word) return md_fail(context, MD_INPUT, "%s must be one of %s, got NULL", label, choices);
  return *value < 0 ? md_fail_choice(context, label, choices, word) : MD_OK;
}

md_status md_given(md_context *context, const char *label, const char *word) {
  return word ? MD_OK : md_fail(context, MD_INPUT, "%s must be given, got NULL", label);
}

md_status md_space_word(md_context *context, const char *word, md_space *space) {
  int place;
  MD_TRY(md_word(context, "space", "host|device", word, &place));
  *space = (md_space)place;
  return MD_OK;
}

md_status md_output_path(md_context *context, const char *path, bool replace) {
  const md_named_file file = {
      .option = "the path", .path = path, .use = MD_FILE_RESULT, .force = "replace"};
  return md_outputs_check(context, &file, 1, replace);
}

/* A study begins here: its report counts time and memory from now on. */
static void lend(md_context *context) {
  context->start_s = md_time_s();
  context->start_bytes = md_memory_resident();
  context->host_need = context->device_need = 0;
}

/* What the words of a study change of its context, which is the caller's. */
static void give_back(md_context *context, const md_context *before, int threads) {
  omp_set_num_threads(threads);
  context->threads = threads;
  context->start_s = before->start_s;
  context->patience_s = before->patience_s;
  context->start_bytes = before->start_bytes;
  context->host_need = before->host_need;
  context->device_need = before->device_need;
  context->quiet = before->quiet;
  context->progress = before->progress;
}

md_status md_study_perform(md_context *context, int count, const char *const *words) {
  static char name[] = "measure", silent[] = "--quiet";
  bool said = false;
  int argc = 0;
  for (int i = 0; i < count; i++) MD_TRY(md_given(context, "a word", words[i]));
  char **argv = md_handle(context, ((size_t)count + 3) * sizeof *argv);
  if (!argv) return MD_ENVIRONMENT;
  for (int i = 0; i < count; i++) said = said || strcmp(words[i], silent) == 0;
  argv[argc++] = name;
  if (!said) argv[argc++] = silent; /* before the last word, which may lack its value */
  for (int i = 0; i < count; i++) argv[argc++] = (char *)words[i]; /* read only */
  const md_context before = *context;
  const int threads = omp_get_max_threads();
  lend(context);
  md_status status = md_arguments_check(context, argc, argv);
  if (status == MD_OK) status = md_study_by_words(context, argc, argv);
  md_tune_close(context); /* of --tune, which is the study's */
  free(argv);
  give_back(context, &before, threads);
  return status;
}

md_product md_product_defaults(int64_t m, int64_t n, int64_t k) {
  return (md_product){"cpu_tiled", "double", m, n, k, 1.0, 0.0};
}

md_status md_product_compute(md_context *context, const md_product *product, const void *a,
                             const void *b, void *c) {
  const md_gemm_kernel *kernel;
  md_gemm_launch launch = {.threads = context->threads, .stream = md_device_stream()};
  int precision;
  MD_TRY(md_word(context, "precision", "double|single|tf32|half|bf16", product->precision,
                 &precision));
  MD_TRY(md_given(context, "the kernel", product->kernel));
  const md_gemm_problem problem = {
      product->m,   product->n, product->k, (md_gemm_precision)precision,
      product->k,   product->n, product->n, product->alpha,
      product->beta};
  MD_TRY(md_gemm_find(context, product->kernel, &kernel, &launch.variant));
  MD_TRY(md_gemm(context, kernel, &problem, &launch, a, b, c));
  return kernel->space == MD_GEMM_DEVICE ? md_device_synchronise(context) : MD_OK;
}
