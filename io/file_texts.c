#include "io/file_texts.h"

#include <stdlib.h>
#include <string.h>

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
