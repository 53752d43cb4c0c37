#ifndef MD_BASE_MACHINE_H
#define MD_BASE_MACHINE_H

#include "base/context.h"
#include <cjson/cJSON.h>

/* Adds `machine` to a report: rank 0's host, CPU, cores and NUMA nodes, the GPUs of all ranks,
 * compiler and flags, libraries, date, command line and commit. docs/report.schema.json says what
 * each key means; what the system does not tell is null. Bytes are as the system gave them: closing
 * the report makes them printable. Collective. */
md_status md_machine_report(md_context *context, cJSON *root);

#endif
