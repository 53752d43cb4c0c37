#ifndef MD_IO_LIME_H
#define MD_IO_LIME_H

#include "io/lattice_format.h"
#include <stdio.h>

/* LIME records (USQCD c-lime, version 1): a header of 144 bytes (magic, version, flags of message
 * begin and end, length of the data, name of 128 bytes; big-endian), data, zeros up to a
 * multiple of 8. */
enum { MD_LIME_HEAD = 144 };

bool md_lime_recognises(const unsigned char *head, size_t bytes);

/* Reads the record header at *at (record->offset: its data) and moves *at to the next record.
 * `previous` is the record before, NULL at the start of the file: flags that do not fit it, an
 * unknown version and padding that is not zero are noted. MD_INPUT when there is no record or it
 * does not end within the file. */
md_status md_lime_next(md_context *context, const md_source *source, const md_record *previous,
                       int64_t *at, md_record *record, md_notes *notes);

/* Appends the header of a record, or the record with a text and its closing zero byte. */
void md_lime_put_head(FILE *out, const char *type, uint64_t bytes, bool begin, bool end);
void md_lime_put_text(FILE *out, const char *type, const char *text, bool begin, bool end);

#endif
