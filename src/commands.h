#pragma once

#include "base/context.h"

/* The subcommands. argv[0] is the command's name. Collective: all ranks return the same status,
 * and where it is not MD_OK context->message says why. */
md_status md_command_bench(md_context *context, int argc, char **argv);
md_status md_command_convert(md_context *context, int argc, char **argv);
md_status md_command_eigen(md_context *context, int argc, char **argv);
md_status md_command_generate(md_context *context, int argc, char **argv);
md_status md_command_info(md_context *context, int argc, char **argv);
md_status md_command_measure(md_context *context, int argc, char **argv);
md_status md_command_smear(md_context *context, int argc, char **argv);
md_status md_command_solve(md_context *context, int argc, char **argv);
md_status md_command_validate(md_context *context, int argc, char **argv);
