#pragma once

#include "base/device.h"
#include "support.h"

#include <stdio.h>

/* As MD_RUN_TESTS, but skipped (exit 77) where no GPU can be opened. */
#define MD_RUN_GPU_TESTS(tests)                                                                    \
  int main(int argc, char **argv) {                                                                \
    md_context *context = md_test_begin(&argc, &argv);                                             \
    if (md_agree(context, md_device_open(context)) != MD_OK) {                                     \
      if (context->rank == 0) printf("skipped: %s\n", context->message);                           \
      md_test_end(context, 0);                                                                     \
      return 77;                                                                                   \
    }                                                                                              \
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests)[0]; i++)                                  \
      (tests)[i].initial_state = context;                                                          \
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);                                  \
    return md_test_end(context, failed);                                                           \
  }
