#ifndef MD_BASE_MACHINE_H
#define MD_BASE_MACHINE_H

#include "base/context.h"
#include <cjson/cJSON.h>

/* Adds `machine` to a report: rank 0's host, CPU, cores and NUMA nodes, the GPUs of all ranks,
 * compiler and flags, libraries, date, command line and commit. docs/report.schema.json says what
 * each key means; what the system does not tell is null. Bytes are as the system gave them: closing
 * the report makes them printable. Collective. */
md_status md_machine_report(md_context *context, cJSON *root);

/* The arguments of this process as a shell takes them; NULL where the system does not tell. The
 * caller frees it. Local. */
char *md_command_line(void);
/* Now, as 2026-01-31T23:59:59Z; empty where the clock does not tell. Local. */
void md_date_utc(char *date, size_t bytes);

#endif
