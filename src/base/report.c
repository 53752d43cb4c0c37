#include "base/report.h"
#include "base/device.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/machine.h"
#include "base/memory_need.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/waiting.h"
#include "md_version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

md_status md_report_open(md_context *context, const char *command, md_report *report) {
  report->root = cJSON_CreateObject();
  if (!report->root) return md_fail_memory(context, sizeof(cJSON), "report");
  const int one[4] = {1, 1, 1, 1};
  md_report_add(report->root,
                "schema_version=%d command=%s version=%s commit=%s ranks=%d threads=%d "
                "waiting=%s",
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
  cJSON_AddItemToObject(object, key,
                        isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

cJSON *md_report_reals(cJSON *object, const char *key, const double *values, int count) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int i = 0; i < count; i++)
    cJSON_AddItemToArray(array,
                         isfinite(values[i]) ? cJSON_CreateNumber(values[i]) : cJSON_CreateNull());
  return array;
}

cJSON *md_report_integers(cJSON *object, const char *key, const int *values, int count) {
  cJSON *array = cJSON_CreateIntArray(values, count);
  cJSON_AddItemToObject(object, key, array);
  return array;
}

cJSON *md_report_counts(cJSON *object, const char *key, const long long *values, int count) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int i = 0; i < count; i++)
    cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[i]));
  return array;
}

static md_status put(md_context *context, const char *path, const char *text) {
  if (context->rank != 0) return MD_OK;
  if (strcmp(path, "-") != 0) return md_write_file(context, path, text, strlen(text));
  if (fputs(text, stdout) < 0 || fflush(stdout) != 0)
    return md_fail(context, MD_ENVIRONMENT, "standard output cannot be written: %m");
  return MD_OK;
}

/* Texts of files and file names as JSON can hold them: base/text.h. */
static void make_printable(cJSON *item) {
  for (; item; item = item->next) {
    if (cJSON_IsString(item)) {
      const size_t most = 4 * strlen(item->valuestring) + 1;
      char *text = malloc(most);
      if (text) md_printable(item->valuestring, true, text, most);
      if (text) cJSON_SetValuestring(item, text);
      free(text);
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
  if (path) add_memory(context, report->root);
  md_status status = path ? md_machine_report(context, report->root) : MD_OK;
  make_printable(report->root);
  char *text = path ? cJSON_Print(report->root) : NULL;
  cJSON_Delete(report->root);
  report->root = NULL;
  if (!path) return MD_OK;
  if (status == MD_OK && !text) status = md_fail_memory(context, 1, "report");
  if (status == MD_OK) {
    const size_t length = strlen(text);
    char *line = realloc(text, length + 2);
    if (line) {
      memcpy(line + length, "\n", 2);
      text = line;
    }
    status = put(context, path, text);
  }
  free(text);
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

static void csv_cell(FILE *out, const cJSON *item) {
  if (cJSON_IsArray(item)) {
    for (const cJSON *one = item->child; one; one = one->next)
      fprintf(out, "%s%.17g", one == item->child ? "" : "x",
              cJSON_IsNumber(one) ? one->valuedouble : NAN);
  } else if (cJSON_IsString(item))
    fputs(item->valuestring, out);
  else if (cJSON_IsBool(item))
    fputs(cJSON_IsTrue(item) ? "true" : "false", out);
  else if (cJSON_IsNumber(item))
    fprintf(out, "%.10g", item->valuedouble);
}

md_status md_report_csv(md_context *context, const cJSON *rows, const char *path) {
  if (!path) return MD_OK;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  md_status status = out ? MD_OK : md_fail_memory(context, 1, "CSV text");
  for (const cJSON *row = rows->child; out && row; row = row->next) {
    if (row == rows->child)
      for (const cJSON *cell = row->child; cell; cell = cell->next)
        fprintf(out, "%s%c", cell->string, cell->next ? ',' : '\n');
    for (const cJSON *cell = row->child; cell; cell = cell->next) {
      csv_cell(out, cell);
      fputc(cell->next ? ',' : '\n', out);
    }
  }
  if (out) fclose(out);
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
  const md_status closed = md_report_close(context, report, due && written == MD_OK ? json : NULL);
  if (written == MD_OK) written = closed;
  return status != MD_OK ? md_fail(context, status, "%s", message) : written;
}
