#include "commands.h"
md_status md_command_solve(md_context *context, int argc, char **argv) {
  (void)argc;
  (void)argv;
  return md_fail(context, MD_INPUT, "x");
}
