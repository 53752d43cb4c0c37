#include "files/text_file.h"
#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MOST = 64 << 20, SHOWN = 200 };

/* The whole file if it is a text that begins like a report or a table; NULL: it is not. Rank 0. */
static char *read_text(const char *path) {
  char head[MD_REPORT_HEAD + 1] = "", *text = NULL;
  struct stat there;
  FILE *file = stat(path, &there) == 0 && S_ISREG(there.st_mode) ? fopen(path, "rb") : NULL;
  if (file && fread(head, 1, MD_REPORT_HEAD, file) > 0 && md_begins_as_report(head) &&
      there.st_size < TEXT_MOST)
    text = calloc(1, (size_t)there.st_size + 1);
  if (text) {
    rewind(file);
    const size_t bytes = fread(text, 1, (size_t)there.st_size, file);
    if (strlen(text) != bytes) text[0] = 0; /* no text after all */
  }
  if (file) fclose(file);
  if (text && text[0]) return text;
  free(text);
  return NULL;
}

static void say_value(const md_context *context, cJSON *object, const cJSON *item) {
  char *value = cJSON_PrintUnformatted(item), shown[SHOWN];
  if (!value) return;
  md_printable(value, false, shown, sizeof shown);
  md_say(context, "  %s: %s\n", item->string, shown);
  cJSON_AddItemToObject(object, item->string, cJSON_Duplicate(item, true));
  free(value);
}

/* A report, or the choices of --tune, which have a list of that name. */
static md_status describe_json(md_context *context, const char *path, const char *text,
                               md_report *report) {
  cJSON *found = cJSON_Parse(text);
  const char *command = cJSON_GetStringValue(cJSON_GetObjectItem(found, "command"));
  const cJSON *choices = cJSON_GetObjectItem(found, "choices");
  char name[32];
  if (!found || (!command && !cJSON_IsArray(choices))) {
    cJSON_Delete(found);
    return md_fail(context, MD_INPUT, "%s begins like a report of miniDirac and is none: %s", path,
                   found ? "it names no command" : "its JSON is cut short or damaged");
  }
  if (command) {
    md_printable(command, false, name, sizeof name);
    md_report_add(report->root, "format=%s content=%s of=%s", "json", "report", name);
    md_say(context, "format               json\ncontent              report of %s\n", name);
  } else {
    md_report_add(report->root, "format=%s content=%s", "json", "choices");
    md_say(context, "format               json\ncontent              choices of --tune, %d\n",
           cJSON_GetArraySize(choices));
  }
  cJSON *object = cJSON_AddObjectToObject(report->root, "texts");
  for (const cJSON *item = found->child; item; item = item->next)
    if (!cJSON_IsArray(item) && !cJSON_IsObject(item)) say_value(context, object, item);
  cJSON_Delete(found);
  return MD_OK;
}

static void describe_table(const md_context *context, const char *text, md_report *report) {
  long long rows = -1;
  char columns[2048];
  for (const char *at = text; (at = strchr(at, '\n')); at++) rows++;
  snprintf(columns, sizeof columns, "%.*s", (int)strcspn(text, "\n"), text);
  md_report_add(report->root, "format=%s content=%s rows=%g columns=%s", "csv", "table",
                (double)rows, columns);
  md_say(
      context,
      "format               csv\ncontent              table, %lld row%s\ncolumns              %s\n",
      rows, md_plural(rows), columns);
}

md_status md_info_text_file(md_context *context, const char *path, md_report *report, bool *known) {
  char *text = context->rank == 0 ? read_text(path) : NULL;
  md_status status = MD_OK;
  *known = text != NULL;
  md_broadcast(context, known, sizeof *known);
  if (!*known) return MD_OK;
  if (text) md_say(context, "file                 %s\n", path);
  if (text && *text == '{')
    status = describe_json(context, path, text, report);
  else if (text)
    describe_table(context, text, report);
  free(text);
  return md_agree(context, status);
}
