#pragma once

#include "base/context.h"

#include <stddef.h>
#include <stdint.h>

/* What the targets of libFuzzer share. A target is a function fuzz_one that reads one input and
 * judges by itself: a signal, a report of a sanitizer or fuzz_require that fails is a find. */

/* The target. `context` is of one rank, quiet. What takes long is done before the first input, so
 * that no input is blamed for it. */
void fuzz_prepare(md_context *context);
void fuzz_one(md_context *context, const uint8_t *data, size_t bytes);

/* Puts the bytes into the file in memory that the process has for this; returns its name. */
const char *fuzz_file(const void *data, size_t bytes);
/* The bytes of a valid file of the kind (kinds.h), released with free(). */
unsigned char *fuzz_made(md_context *context, int kind, size_t *bytes);
/* Those of the file of that name, the same. */
unsigned char *fuzz_contents(const char *path, size_t *bytes);
/* Ends the process with the text unless `holds`. */
void fuzz_require(bool holds, const char *text);
/* The status is MD_OK, or MD_INPUT with one printable line. */
void fuzz_require_refusal(const md_context *context, md_status status);
