#include "base/report.h"
#include "base/device.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/tune.h"
#include "base/waiting.h"
#include "md_version.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* JSON has no word for infinite numbers and for none. */
static cJSON *number(double value) {
  return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull();
}

enum { NAME_BYTES = 64, FORMAT_BYTES = 16, LINE_BYTES = 1024 };

typedef struct column {
  char key[NAME_BYTES], head[NAME_BYTES], format[FORMAT_BYTES];
  int width; /* as printf takes it, negative: to the left; 0: it is not printed */
  char type; /* the letter that ends the conversion */
  bool wide; /* ll */
} column;

/* The next of "key|head=%format ..."; *text moves behind it. False: there is none left. */
static bool next_column(const char **text, column *c) {
  *text += strspn(*text, " ");
  const char *equals = strchr(*text, '=');
  if (!equals) return false;
  const int names = (int)(equals - *text), key = (int)strcspn(*text, "|=");
  const char *format = equals + 1;
  const int length = (int)strcspn(format, " ");
  *c = (column){.width = atoi(format + 1), .type = format[length - 1]};
  c->wide = strstr(format, "ll") && strstr(format, "ll") < format + length;
  snprintf(c->key, sizeof c->key, "%.*s", key, *text);
  snprintf(c->head, sizeof c->head, "%.*s", key < names ? names - key - 1 : key,
           key < names ? *text + key + 1 : *text);
  for (char *blank = c->head; (blank = strchr(blank, '~'));) *blank = ' ';
  snprintf(c->format, sizeof c->format, "%.*s", length, format);
  *text = format + length;
  return true;
}

/* A blank before each column but the first and those without head. */
static void put_cell(char *line, const column *c, const char *text) {
  md_append(line, LINE_BYTES, "%s%*s", *line && *c->head ? " " : "", c->width, text);
}

/* Takes the value of a column: the item for JSON and, where it is printed, the line's text. */
static cJSON *take(const column *c, char *line, va_list *values) {
  char text[LINE_BYTES / 2] = "-";
  cJSON *item = NULL;
  if (c->type == 's') {
    const char *value = va_arg(*values, const char *);
    item = value ? cJSON_CreateString(value) : cJSON_CreateNull();
    if (value) snprintf(text, sizeof text, c->format, value);
  } else if (strstr(c->format, "hhd")) {
    item = cJSON_CreateBool(va_arg(*values, int));
  } else if (c->type == 'd') {
    const long long value = c->wide                  ? va_arg(*values, long long)
                            : strchr(c->format, 'l') ? va_arg(*values, long)
                                                     : va_arg(*values, int);
    item = cJSON_CreateNumber((double)value);
    snprintf(text, sizeof text, "%lld", value);
  } else {
    const double value = va_arg(*values, double);
    item = number(value);
    if (isfinite(value)) snprintf(text, sizeof text, c->format, value);
  }
  if (line && (c->width != 0 || !*c->key)) put_cell(line, c, text);
  return item;
}

static void add(cJSON *object, const char *columns, char *line, va_list *values) {
  for (column c; next_column(&columns, &c);) {
    cJSON *item = take(&c, line, values);
    if (*c.key)
      cJSON_AddItemToObject(object, c.key, item);
    else
      cJSON_Delete(item);
  }
}

void md_report_add(cJSON *object, const char *keys, ...) {
  va_list values;
  va_start(values, keys);
  add(object, keys, NULL, &values);
  va_end(values);
}

void md_rows_head(const md_context *context, const char *columns) {
  char line[LINE_BYTES] = "";
  for (column c; next_column(&columns, &c);)
    if (c.width != 0) put_cell(line, &c, c.head);
  md_say(context, "%s\n", line);
}

cJSON *md_rows_add(const md_context *context, cJSON *rows, const char *columns, ...) {
  char line[LINE_BYTES] = "";
  cJSON *row = cJSON_CreateObject();
  va_list values;
  cJSON_AddItemToArray(rows, row);
  va_start(values, columns);
  add(row, columns, line, &values);
  va_end(values);
  if (*line) md_say(context, "%s\n", line);
  return row;
}

static const char *text_of(const cJSON *object, const char *key) {
  return key ? cJSON_GetObjectItem(object, key)->valuestring : "";
}

bool md_rows_skip(cJSON *skipped, cJSON *object, const char *key, const char *reason) {
  bool first = true;
  for (const cJSON *one = skipped->child; one; one = one->next)
    first = first && (strcmp(text_of(one, "reason"), reason) != 0 ||
                      strcmp(text_of(one, key), text_of(object, key)) != 0);
  cJSON_AddStringToObject(object, "reason", reason);
  cJSON_AddItemToArray(skipped, object);
  return first;
}

const char *md_rows_skipped(const cJSON *skipped) {
  return skipped->child ? text_of(skipped->child, "reason") : NULL;
}

md_status md_report_open(md_context *context, const char *command, md_report *report) {
  const int one[4] = {1, 1, 1, 1};
  report->root = cJSON_CreateObject();
  const md_status status =
      md_agree(context, report->root ? MD_OK : md_fail_memory(context, sizeof(cJSON), "report"));
  if (status != MD_OK) {
    cJSON_Delete(report->root);
    return status;
  }
  md_report_add(report->root,
                "schema_version=%d command=%s version=%s commit=%s ranks=%d threads=%d waiting=%s",
                MD_REPORT_SCHEMA_VERSION, command, MD_VERSION, MD_COMMIT, context->ranks,
                context->threads, md_waiting_name());
  md_report_integers(report->root, "grid", one, 4);
  return MD_OK;
}

void md_report_grid(md_report *report, const int grid[4], bool asked, const char *reason) {
  cJSON_ReplaceItemInObject(report->root, "grid", cJSON_CreateIntArray(grid, 4));
  md_report_add(report->root, "grid_chosen_by=%s grid_reason=%s", asked ? "user" : "auto", reason);
}

void md_report_real(cJSON *object, const char *key, double value) {
  cJSON_AddItemToObject(object, key, number(value));
}

cJSON *md_report_reals(cJSON *object, const char *key, const double *values, int count) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int i = 0; i < count; i++) cJSON_AddItemToArray(array, number(values[i]));
  return array;
}

cJSON *md_report_integers(cJSON *object, const char *key, const int *values, int count) {
  cJSON *array = cJSON_CreateIntArray(values, count);
  cJSON_AddItemToObject(object, key, array);
  return array;
}

cJSON *md_report_counts(cJSON *object, const char *key, const long long *values, int count) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int i = 0; i < count; i++) cJSON_AddItemToArray(array, number((double)values[i]));
  return array;
}

static md_status put(md_context *context, const char *path, const char *text) {
  if (context->rank != 0) return MD_OK;
  if (strcmp(path, "-") != 0) return md_write_file(context, path, text, strlen(text));
  if (fputs(text, stdout) < 0 || fflush(stdout) != 0)
    return md_fail(context, MD_ENVIRONMENT, "standard output cannot be written: %m");
  return MD_OK;
}

/* A whole number that 15 digits do not tell, as cJSON writes them where they come near. */
static void make_exact(cJSON *item) {
  char *digits;
  const double value = item->valuedouble;
  if (!(fabs(value) >= 1e15 && fabs(value) <= 0x1p53) || value != trunc(value)) return;
  if (asprintf(&digits, "%.0f", value) < 0) return;
  item->valuestring = digits, item->type = cJSON_Raw;
}

/* A copy for JSON, to be freed. NULL: no memory. */
static char *printable_copy(const char *text) {
  const size_t most = 4 * strlen(text) + 1;
  char *copy = malloc(most);
  if (copy) md_printable(text, true, copy, most);
  return copy;
}

/* Texts of files and file names, and keys that are such, as JSON can hold them: base/text.h; whole
 * numbers. */
static void make_printable(cJSON *item) {
  for (; item; item = item->next) {
    if (cJSON_IsNumber(item)) make_exact(item);
    if (cJSON_IsString(item)) {
      char *text = printable_copy(item->valuestring);
      if (text) cJSON_SetValuestring(item, text);
      free(text);
    }
    if (item->string && !(item->type & cJSON_StringIsConst)) {
      char *key = printable_copy(item->string);
      if (key) {
        cJSON_free(item->string);
        item->string = key;
      }
    }
    make_printable(item->child);
  }
}

/* Of the rank that takes most, beyond what the process had when it began. Collective. */
static void add_memory(const md_context *context, cJSON *root) {
  double bytes[4] = {(double)context->host_need, (double)context->device_need,
                     (double)(md_memory_peak() - context->start_bytes),
                     (double)md_device_peak(context)};
  md_maximum(context, bytes, 4);
  cJSON *memory = cJSON_AddObjectToObject(root, "memory");
  md_report_add(memory,
                "host_bytes_estimated=%g device_bytes_estimated=%g host_bytes_peak=%g "
                "device_bytes_peak=%g",
                bytes[0], bytes[1], bytes[2], bytes[3]);
}

md_status md_report_close(md_context *context, md_report *report, const char *path) {
  cJSON_AddNumberToObject(report->root, "seconds", md_time_s() - context->start_s);
  if (context->signal && !cJSON_HasObjectItem(report->root, "interrupted"))
    cJSON_AddBoolToObject(report->root, "interrupted", context->interrupt.by != 0);
  md_tune_report(context, report->root);
  if (path) add_memory(context, report->root);
  md_status status = path ? md_machine_report(context, report->root) : MD_OK;
  make_printable(report->root);
  char *printed = path ? cJSON_Print(report->root) : NULL, *text = NULL;
  cJSON_Delete(report->root);
  report->root = NULL;
  if (!path) return MD_OK;
  if (!printed || asprintf(&text, "%s\n", printed) < 0) text = NULL;
  if (status == MD_OK)
    status = text ? put(context, path, text) : md_fail_memory(context, 1, "report");
  MD_FREE(printed, text);
  return md_agree(context, status);
}

md_status md_report_close_after(md_context *context, md_report *report, const char *path,
                                md_status status) {
  char message[sizeof context->message];
  memcpy(message, context->message, sizeof message);
  const md_status written = md_report_close(context, report, path);
  if (status == MD_OK) return written;
  memcpy(context->message, message, sizeof message);
  return status;
}

/* In quotes where a comma or a quote would end the cell, as RFC 4180 says. */
static void put_words(FILE *out, const char *words) {
  const bool quoted = strpbrk(words, ",\"\n") != NULL;
  if (quoted) fputc('"', out);
  for (; *words; words++) {
    if (*words == '"') fputc('"', out);
    fputc(*words, out);
  }
  if (quoted) fputc('"', out);
}

static void csv_cell(FILE *out, const cJSON *item) {
  if (cJSON_IsArray(item)) {
    for (const cJSON *one = item->child; one; one = one->next)
      fprintf(out, "%s%.17g", one == item->child ? "" : "x",
              cJSON_IsNumber(one) ? one->valuedouble : NAN);
  } else if (cJSON_IsString(item))
    put_words(out, item->valuestring);
  else if (cJSON_IsBool(item))
    fputs(cJSON_IsTrue(item) ? "true" : "false", out);
  else if (cJSON_IsNumber(item))
    fprintf(out, "%.10g", item->valuedouble);
}

/* The names of all cells, in the order in which rows first have them. */
static cJSON *csv_head(const cJSON *rows) {
  cJSON *head = cJSON_CreateObject();
  for (const cJSON *row = rows->child; row; row = row->next)
    for (const cJSON *cell = row->child; cell; cell = cell->next)
      if (!cJSON_IsObject(cell) && !cJSON_HasObjectItem(head, cell->string))
        cJSON_AddNullToObject(head, cell->string);
  return head;
}

md_status md_report_csv(md_context *context, const cJSON *rows, const char *path) {
  if (!path) return MD_OK;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  md_status status = out ? MD_OK : md_fail_memory(context, 1, "CSV text");
  cJSON *head = out ? csv_head(rows) : NULL;
  for (const cJSON *name = head ? head->child : NULL; name; name = name->next)
    fprintf(out, "%s%s", name->string, name->next ? "," : "\n");
  for (const cJSON *row = rows->child; head && row; row = row->next)
    for (const cJSON *name = head->child; name; name = name->next) {
      csv_cell(out, cJSON_GetObjectItemCaseSensitive(row, name->string));
      fputc(name->next ? ',' : '\n', out);
    }
  cJSON_Delete(head);
  if (out && fclose(out) != 0) status = md_fail_memory(context, bytes, "CSV text");
  if (status == MD_OK) status = put(context, path, text);
  free(text);
  return md_agree(context, status);
}

md_status md_report_finish(md_context *context, md_report *report, const cJSON *rows,
                           const char *csv, const char *json, md_status status) {
  char message[sizeof context->message];
  const bool due = md_report_is_due(context, status);
  memcpy(message, context->message, sizeof message);
  md_status written = due ? md_report_csv(context, rows, csv) : MD_OK;
  const md_status closed = md_report_close(context, report, due ? json : NULL);
  if (written == MD_OK) written = closed;
  return status != MD_OK ? md_fail(context, status, "%s", message) : written;
}

/* An empty text says nothing: null, and so does a count of 0. */
static const char *told(const char *text) {
  return text && *text ? text : NULL;
}
static double counted(double count) {
  return count > 0 ? count : NAN;
}

/* What stands behind the colon of the first line of /proc/cpuinfo that names the model. */
static void read_cpu(char *model, size_t bytes) {
  char line[512];
  *model = '\0';
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && !*model && fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    snprintf(model, bytes, "%s", colon + 1 + strspn(colon + 1, " \t"));
    model[strcspn(model, "\n")] = '\0';
  }
  if (file) fclose(file);
}

static int numa_nodes(void) {
  int nodes = 0;
  DIR *folder = opendir("/sys/devices/system/node");
  for (const struct dirent *entry; folder && (entry = readdir(folder));)
    nodes += strncmp(entry->d_name, "node", 4) == 0 && isdigit((unsigned char)entry->d_name[4]);
  if (folder) closedir(folder);
  return nodes;
}

/* The first word with a point behind a digit: "NVRM version: ... Kernel Module  580.65.06  ...". */
static void driver_version(char *version, size_t bytes) {
  char line[512], *rest = NULL;
  *version = '\0';
  md_line_in("/proc/driver/nvidia/version", line, sizeof line);
  for (char *word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
    if (isdigit((unsigned char)*word) && strchr(word, '.')) {
      snprintf(version, bytes, "%s", word);
      return;
    }
}

static void add_gpu(cJSON *gpus, const md_device_facts *facts, int ranks) {
  char driver[64], cuda[16] = "";
  driver_version(driver, sizeof driver);
  if (facts->driver_cuda > 0)
    snprintf(cuda, sizeof cuda, "%d.%d", facts->driver_cuda / 1000, facts->driver_cuda % 1000 / 10);
  md_rows_add(NULL, gpus,
              "name=%s driver=%s driver_cuda=%s memory_bytes=%g clock_mhz=%g memory_clock_mhz=%g "
              "ecc=%hhd ranks=%d",
              told(facts->name), told(driver), told(cuda), counted((double)facts->memory_bytes),
              counted(facts->clock_mhz), counted(facts->memory_clock_mhz), facts->ecc, ranks);
}

/* Each GPU that a rank opened once, in the order of ranks; null where none did. Collective. */
static md_status add_gpus(md_context *context, cJSON *machine) {
  md_device_facts *all = calloc((size_t)context->ranks, sizeof *all);
  const size_t bytes = (size_t)context->ranks * sizeof *all;
  const md_status status =
      md_agree(context, all ? MD_OK : md_fail_memory(context, bytes, "report"));
  cJSON *gpus = NULL;
  if (status == MD_OK) md_gather_all(context, &context->gpu, sizeof context->gpu, all);
  for (int r = 0; status == MD_OK && r < context->ranks; r++) {
    int first = r, sharers = 0;
    for (int other = context->ranks - 1; all[r].open && other >= 0; other--)
      if (all[other].open && memcmp(all[other].uuid, all[r].uuid, sizeof all[r].uuid) == 0) {
        first = other;
        sharers++;
      }
    if (!all[r].open || first < r) continue;
    if (!gpus) gpus = cJSON_CreateArray();
    add_gpu(gpus, &all[r], sharers);
  }
  free(all);
  cJSON_AddItemToObject(machine, "gpu", gpus ? gpus : cJSON_CreateNull());
  return status;
}

/* In the order of ranks. Collective. */
static md_status add_rank_cores(md_context *context, cJSON *machine) {
  char mine[MD_CORES_BYTES] = "";
  const size_t bytes = (size_t)context->ranks * sizeof mine;
  char *all = malloc(bytes);
  const md_status status =
      md_agree(context, all ? MD_OK : md_fail_memory(context, bytes, "report"));
  md_cores_list(mine);
  if (status == MD_OK) md_gather_all(context, mine, sizeof mine, all);
  cJSON *list = cJSON_AddArrayToObject(machine, "rank_cores");
  for (int r = 0; status == MD_OK && r < context->ranks; r++)
    cJSON_AddItemToArray(list, cJSON_CreateString(&all[(size_t)r * sizeof mine]));
  free(all);
  return status;
}

static int is_named(const struct dirent *entry) {
  return *entry->d_name != '.';
}

/* The devices of the host that the network of a cluster is reached by; null: there are none. */
static void add_interconnect(cJSON *machine) {
  struct dirent **found = NULL;
  const int count = scandir("/sys/class/infiniband", &found, is_named, alphasort);
  cJSON *list = cJSON_AddArrayToObject(machine, "interconnect");
  for (int i = 0; i < count; i++) {
    cJSON_AddItemToArray(list, cJSON_CreateString(found[i]->d_name));
    free(found[i]);
  }
  free(found);
  if (count <= 0) cJSON_ReplaceItemInObject(machine, "interconnect", cJSON_CreateNull());
}

/* A word as a shell takes it: in single quotes where it holds more than plain characters. */
static void put_word(FILE *out, const char *word) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
  if (*word && word[strspn(word, plain)] == '\0') {
    fputs(word, out);
    return;
  }
  fputc('\'', out);
  for (; *word; word++)
    if (*word == '\'')
      fputs("'\\''", out);
    else
      fputc(*word, out);
  fputc('\'', out);
}

/* The system has them with a zero byte behind each. */
char *md_command_line(void) {
  char *text = NULL, *word = NULL;
  size_t bytes = 0, word_bytes = 0;
  FILE *file = fopen("/proc/self/cmdline", "r"), *out = open_memstream(&text, &bytes);
  while (file && out && getdelim(&word, &word_bytes, '\0', file) > 0) {
    if (ftell(out) > 0) fputc(' ', out);
    put_word(out, word);
  }
  if (out) fclose(out);
  if (file) fclose(file);
  free(word);
  return text;
}

void md_date_utc(char *date, size_t bytes) {
  struct tm parts;
  const time_t now = time(NULL);
  if (!gmtime_r(&now, &parts) || !strftime(date, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts)) *date = '\0';
}

md_status md_machine_report(md_context *context, cJSON *root) {
  char host[256] = "", cpu[256], kernel[128], governor[64], job[128], date[32],
       mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  md_cores cores;
  long long hosts = context->local_rank == 0;
  cJSON *machine = cJSON_AddObjectToObject(root, "machine");
  md_sum_integers(context, &hosts, 1);
  md_cores_look("", &cores);
  if (gethostname(host, sizeof host - 1) != 0) *host = '\0';
  read_cpu(cpu, sizeof cpu);
  md_line_in("/proc/sys/kernel/osrelease", kernel, sizeof kernel);
  md_line_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor);
  md_batch_job(job, sizeof job);
  md_report_add(machine,
                "host=%s hosts=%lld cpu=%s cores=%g cores_usable=%g threads=%d numa_nodes=%g "
                "memory_bytes=%g kernel=%s governor=%s job=%s",
                told(host), hosts, told(cpu), counted(cores.online), counted(cores.affinity),
                context->threads, counted(numa_nodes()),
                counted((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE)),
                told(kernel), told(governor), told(job));
  add_interconnect(machine);
  md_status status = add_gpus(context, machine);
  if (status == MD_OK) status = add_rank_cores(context, machine);
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\r\n")] = '\0'; /* where Open MPI begins to tell how it was built */
  md_report_add(machine,
                "compiler=%s compiler_flags=%s cuda_compiler=%s cuda_flags=%s mpi=%s hdf5=%s",
                told(MD_COMPILER), told(MD_COMPILER_FLAGS), told(MD_CUDA_COMPILER),
                told(MD_CUDA_FLAGS), told(mpi), told(MD_HDF5_VERSION));
  cJSON *libraries = cJSON_AddObjectToObject(machine, "libraries"); /* but for these two */
  md_report_add(libraries, "cjson=%s inih=%s libdeflate=%s openblas=%s cuda=%s nccl=%s",
                told(MD_CJSON_VERSION), told(MD_INIH_VERSION), told(MD_DEFLATE_VERSION),
                told(MD_OPENBLAS_VERSION), told(MD_CUDA_TOOLKIT_VERSION), told(MD_NCCL_VERSION));
  md_date_utc(date, sizeof date);
  char *command_line = md_command_line();
  md_report_add(machine, "date_utc=%s command_line=%s commit=%s", told(date), told(command_line),
                MD_COMMIT);
  free(command_line);
  return status;
}
