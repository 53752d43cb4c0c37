#pragma once

#include "io/lattice_format.h"

#include <stdio.h>

/* Inside of io: the records of LIME files, which ILDG and SciDAC (QIO) share, and their XML. */

enum { MD_LIME_HEAD = 144, MD_LIME_DATE = 40 };
#define MD_XML "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

bool md_lime_recognises(const unsigned char *head, size_t bytes);
/* Reads the record header at *at (record->offset: its data) and moves *at to the next record.
 * `previous` is the record before, NULL at the start of the file: flags that do not fit it, an
 * unknown version and padding that is not zero are noted. MD_INPUT when there is no record or it
 * does not end within the file. */
md_status md_lime_next(const md_header_input *source, const md_record *previous, int64_t *at,
                       md_record *record);

/* Text between <tag ...> and the next '<', without leading blanks; NULL when there is none. */
const char *md_xml_tag(const char *text, const char *tag);
/* False when there are not as many numbers in it; values that were read stay. */
bool md_xml_integers(const char *text, const char *tag, long long *values, int count);
/* Of a scidac-checksum; false, and a departure, when it holds no two 32-bit numbers. */
bool md_lime_checksum(const char *text, md_checksum *sum, md_notes *notes);

/* Colour vectors (io/vectors.h). Whether a scidac-private-record-xml is of them; then *run becomes
 * what it says. */
bool md_scidac_vectors(const char *text, md_vector_run *run);
/* What scidac-record-xml, or with run NULL scidac-file-xml, say in words: lines NAME = VALUE in
 * their <info> become texts of that name. Local. */
md_status md_scidac_said(md_context *context, const char *text, md_file_texts *texts,
                         md_vector_run *run);

/* Appends the header of a record; a record with a text and its closing zero byte; the record that
 * begins a SciDAC file, with its extents; one with the checksum, which ends its message. */
void md_lime_put_head(FILE *out, const char *type, uint64_t bytes, bool begin, bool end);
void md_lime_put_text(FILE *out, const char *type, bool begin, bool end, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void md_lime_put_dims(FILE *out, const int dims[MD_DIMS]);
void md_lime_put_checksum(FILE *out, const md_checksum *sum);
/* Now, as QIO writes it. */
void md_lime_date(char text[MD_LIME_DATE]);
