#include "base/file.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/sanitized.h"
#include "base/text.h"
#include "base/waiting.h"
#include "commands.h"
#include "md_version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
  const char *name, *summary;
  md_status (*perform)(md_context *context, int argc, char **argv);
} commands[] = {
    {"info", "what is in a lattice file, and whether it is whole", md_command_info},
    {"convert", "copy a lattice into a file of another format", md_command_convert},
    {"generate", "make a gauge field: cold, hot or by heatbath", md_command_generate},
    {"smear", "make fat and long links, or smeared links, of a gauge field", md_command_smear},
    {"bench", "measure kernels, each checked first", md_command_bench},
    {"solve", "load a lattice and solve the Dirac equation on it", md_command_solve},
    {"measure", "pion correlators and condensates of many lattices", md_command_measure},
    {"eigen", "find the lowest modes of the Dirac operator", md_command_eigen},
    {"validate", "hold every backend and precision to double", md_command_validate},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out) {
  fprintf(out,
          "miniDirac %s (%s): a lattice QCD mini-app\n\nusage: minidirac COMMAND [options]\n\n",
          MD_VERSION, MD_COMMIT);
  for (int c = 0; c < COMMANDS; c++)
    fprintf(out, "  %-10s %s\n", commands[c].name, commands[c].summary);
  fputs("\nminidirac COMMAND --help lists the options of one, and so does minidirac help COMMAND.\n"
        "Exit codes: 0 success, 1 the asked result was not reached, 2 bad usage or input,\n"
        "3 environment (device, MPI, memory, disk) or ended early by a signal.\n",
        out);
}

/* "help COMMAND ..." into "COMMAND ... --help", alone into "--help". */
static void take_help(int argc, char **argv) {
  static char flag[] = "--help";
  if (argc < 2 || (strcmp(argv[1], "help") != 0 && strcmp(argv[1], "-h") != 0)) return;
  for (int i = 1; i + 1 < argc; i++) argv[i] = argv[i + 1];
  argv[argc - 1] = flag;
}

static md_status run_command(md_context *context, int argc, char **argv) {
  take_help(argc, argv);
  const char *name = argc > 1 ? argv[1] : "--help";
  if (strcmp(name, "--help") == 0 || strcmp(name, "--version") == 0) {
    if (argc > 2)
      return md_fail(context, MD_INPUT, "%s stands alone, got '%.200s'; leave that out", name,
                     argv[2]);
    if (context->rank == 0 && strcmp(name, "--version") == 0)
      printf("minidirac %s (%s)\n", MD_VERSION, MD_COMMIT);
    if (context->rank == 0 && strcmp(name, "--help") == 0) print_usage(argc > 1 ? stdout : stderr);
    return argc > 1 ? MD_OK
                    : md_fail(context, MD_INPUT, "a command is needed; see minidirac --help");
  }
  for (int c = 0; c < COMMANDS; c++)
    if (strcmp(commands[c].name, name) == 0)
      return commands[c].perform(context, argc - 1, argv + 1);
  md_suggestion nearest = md_suggest(name);
  for (int c = 0; c < COMMANDS; c++)
    md_suggest_name(&nearest, commands[c].name, strlen(commands[c].name));
  return md_fail(context, MD_INPUT, "the command '%.200s' is not known; see minidirac --help%s",
                 name, nearest.text);
}

/* exit would wait for what does not end. */
static void give_up(const char *failure) {
  fprintf(stderr, "minidirac: error: %s\n", failure);
  _exit(MD_ENVIRONMENT);
}

static void end_at_once(int number, siginfo_t *info, void *user) {
  (void)number;
  (void)user;
  _exit(info->si_value.sival_int);
}

/* All is said and done, but exit runs the ends of libraries, and one of them may wait for ever:
 * OpenBLAS for a thread of its own that asks again and again for memory that a limit (ulimit -v)
 * does not leave. Then the process ends a few seconds later all the same. Those that have something
 * to write at the end, profilers among them, do so. A leak check may take longer. */
static void limit_exit(md_status status) {
  enum { SECONDS = 5 };
  struct sigaction action = {.sa_sigaction = end_at_once, .sa_flags = SA_SIGINFO};
  struct sigevent event = {
      .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = (int)status};
  const struct itimerspec due = {.it_value.tv_sec = SECONDS};
  timer_t timer;
  fflush(NULL); /* exit does so last */
  if (MD_SANITIZED || sigaction(SIGALRM, &action, NULL) != 0) return;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &due, NULL);
}

int main(int argc, char **argv) {
  md_context context;
  md_files_hold_standard();
  md_waiting_prepare(argv);
  /* A file that outgrows its limit is an error of the write call, not the end of the process. */
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  md_status status = md_context_open(&context, &argc, &argv);
  context.give_up = give_up;
  if (status == MD_OK) status = md_arguments_check(&context, argc, argv);
  if (status == MD_OK) status = run_command(&context, argc, argv);
  errno = 0; /* of an earlier line that failed nothing but the mark is left */
  if (status == MD_OK && context.rank == 0 && (fflush(stdout) != 0 || ferror(stdout)))
    status = md_fail(&context, MD_ENVIRONMENT, "standard output cannot be written: %s",
                     errno != 0 ? strerror(errno) : "earlier lines of it are lost");
  status = md_agree_last(&context, status);
  if (context.progress.drawn) fputs(MD_PROGRESS_CLEAR, stderr);
  if (status != MD_OK && context.rank == 0)
    fprintf(stderr, "minidirac: error: %s\n", context.message);
  md_context_end(&context);
  limit_exit(status);
  return (int)status;
}
