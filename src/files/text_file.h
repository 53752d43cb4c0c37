#pragma once

#include "base/report.h"

/* Reports (JSON) and tables (CSV) of any command: prints and reports what they are. *known is false
 * for every other file, of which nothing is said. MD_INPUT: a report that is cut short. Collective.
 */
md_status md_info_text_file(md_context *context, const char *path, md_report *report, bool *known);
