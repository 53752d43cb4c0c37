#include "base/text.h"
#include "io/lattice_format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

md_status md_header_input_read(const md_header_input *s, int64_t offset, void *data, size_t bytes) {
  if (offset < 0 || offset > s->bytes || (uint64_t)(s->bytes - offset) < bytes)
    return md_fail(s->context, MD_INPUT,
                   "%s is truncated: %zu bytes are needed at byte %lld, the file ends at %lld",
                   s->path, bytes, (long long)offset, (long long)s->bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t part = pread(s->file, (char *)data + done, bytes - done, offset + (int64_t)done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0)
      return md_fail(s->context, MD_ENVIRONMENT, "%s cannot be read at byte %lld: %s", s->path,
                     (long long)offset, part < 0 ? strerror(errno) : "the file became shorter");
    done += (size_t)part;
  }
  return MD_OK;
}

md_status md_header_input_check_dims(const md_header_input *s, const long long dims[MD_DIMS]) {
  const char *rule = NULL;
  double volume = 1;
  for (int d = 0; d < MD_DIMS && !rule; d++) {
    if (dims[d] < 2 || dims[d] > 32767 || dims[d] % 2)
      rule = "extents must be even and within 2..32767";
    else
      s->header->dims[d] = (int)dims[d];
    volume *= (double)dims[d];
  }
  if (!rule && volume > 0x1p40) rule = "a lattice has at most 2^40 sites";
  if (!rule) return MD_OK;
  return md_fail(s->context, MD_INPUT, "%s: %s, the header says %lld x %lld x %lld x %lld", s->path,
                 rule, dims[0], dims[1], dims[2], dims[3]);
}

int64_t md_lattice_link_bytes(const md_lattice_header *header) {
  int64_t bytes = (int64_t)md_site_bytes(&header->site);
  for (int d = 0; d < MD_DIMS; d++) bytes *= header->dims[d];
  return bytes; /* below 2^40 * 576 */
}

md_status md_header_input_take_sites(const md_header_input *s, const char *what) {
  const int *d = s->header->dims;
  const int64_t bytes = md_lattice_link_bytes(s->header);
  const int64_t rest = s->bytes - s->header->offset - bytes;
  if (rest < 0)
    return md_fail(s->context, MD_INPUT,
                   "%s is truncated: a %dx%dx%dx%d lattice has %lld bytes of %s from byte %lld, "
                   "the file ends at %lld",
                   s->path, d[0], d[1], d[2], d[3], (long long)bytes, what,
                   (long long)s->header->offset, (long long)s->bytes);
  if (rest > 0)
    md_notes_departure(s->notes, "the %s end %lld byte%s before the file", what, (long long)rest,
                       md_plural(rest));
  md_record sites = {.offset = s->header->offset, .bytes = bytes};
  snprintf(sites.type, sizeof sites.type, "%s", what);
  md_notes_record(s->notes, &(md_record){.type = "header", .bytes = s->header->offset});
  md_notes_record(s->notes, &sites);
  return MD_OK;
}

/* Grows an array to hold one more entry whenever the count is a power of two; NULL on failure,
 * and the entry is then dropped: notes never keep a file from being read. */
static void *grown(void *array, int count, size_t entry) {
  if (count & (count - 1)) return array;
  return realloc(array, (count ? 2 * (size_t)count : 1) * entry);
}

void md_notes_record(md_notes *notes, const md_record *record) {
  md_record *records = grown(notes->records, notes->record_count, sizeof *records);
  if (!records) return;
  notes->records = records;
  records[notes->record_count++] = *record;
}

md_status md_notes_run(md_context *context, md_notes *notes, const md_vector_run *run) {
  md_vector_run *runs = grown(notes->runs, notes->run_count, sizeof *runs);
  if (!runs) return md_fail_memory(context, 2 * (size_t)notes->run_count * sizeof *runs, "notes");
  notes->runs = runs;
  runs[notes->run_count++] = *run;
  return MD_OK;
}

void md_notes_departure(md_notes *notes, const char *format, ...) {
  char(*texts)[200] = grown(notes->departures, notes->departure_count, sizeof *texts);
  if (!texts) return;
  notes->departures = texts;
  va_list arguments;
  va_start(arguments, format);
  char text[sizeof *texts];
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  md_printable(text, false, texts[notes->departure_count++], sizeof *texts);
}

static size_t without_end(const char *text, size_t length) {
  while (length > 0 && (text[length - 1] == 0 || strchr(" \t\r\n", text[length - 1]))) length--;
  return length;
}

md_status md_file_texts_add(md_context *context, md_file_texts *texts, const char *name,
                            const char *text, size_t length) {
  const size_t name_bytes = strlen(name) + 1, text_bytes = without_end(text, length) + 1;
  if (text_bytes == 1 || md_file_texts_find(texts, name)) return MD_OK;
  if (name_bytes > MD_FILE_TEXT_NAME || name_bytes == 1 || text_bytes > MD_FILE_TEXT_MOST ||
      texts->used + name_bytes + text_bytes > MD_FILE_TEXTS_MOST ||
      memchr(text, 0, text_bytes - 1)) {
    texts->lost++;
    return MD_OK;
  }
  if (!texts->bytes) texts->bytes = malloc(MD_FILE_TEXTS_MOST);
  if (!texts->bytes) return md_fail_memory(context, MD_FILE_TEXTS_MOST, "texts of a file");
  memcpy(texts->bytes + texts->used, name, name_bytes);
  memcpy(texts->bytes + texts->used + name_bytes, text, text_bytes - 1);
  texts->used += name_bytes + text_bytes;
  texts->bytes[texts->used - 1] = 0;
  texts->count++;
  return MD_OK;
}

bool md_file_texts_next(const md_file_texts *texts, size_t *at, const char **name,
                        const char **text) {
  if (!texts || *at >= texts->used) return false;
  *name = texts->bytes + *at;
  *text = *name + strlen(*name) + 1;
  *at = (size_t)(*text - texts->bytes) + strlen(*text) + 1;
  return true;
}

const char *md_file_texts_find(const md_file_texts *texts, const char *name) {
  const char *found, *text;
  for (size_t at = 0; md_file_texts_next(texts, &at, &found, &text);)
    if (strcmp(found, name) == 0) return text;
  return NULL;
}

md_status md_file_texts_take(md_context *context, md_file_texts *texts, const char *bytes,
                             size_t used) {
  for (const char *name = bytes, *end = bytes + used; name < end;) {
    const char *text = memchr(name, 0, (size_t)(end - name));
    const char *last = text && ++text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    if (!last) break;
    MD_TRY(md_file_texts_add(context, texts, name, text, (size_t)(last - text)));
    name = last + 1;
  }
  return MD_OK;
}

void md_file_texts_free(md_file_texts *texts) {
  free(texts->bytes);
  *texts = (md_file_texts){0};
}
