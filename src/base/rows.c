#include "base/rows.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static void put(char *line, const column *c, const char *text) {
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
    item = isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull();
    if (isfinite(value)) snprintf(text, sizeof text, c->format, value);
  }
  if (line && (c->width != 0 || !*c->key)) put(line, c, text);
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
    if (c.width != 0) put(line, &c, c.head);
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
