/* A library that is loaded when it is needed: its functions work, and what is missing is named. */
#include "base/shared_library.h"
#include "support.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef double (*of_one_number)(double);

static void functions_of_the_system(void **state) {
  of_one_number cosine = NULL, root = NULL;
  const md_library_function functions[] = {{"cos", (void **)&cosine}, {"sqrt", (void **)&root}};
  assert_int_equal(md_shared_library_load(*state, "libm.so.6", "/nowhere", 2, functions), MD_OK);
  assert_true(cosine(0.0) == 1.0);
  assert_true(root(4.0) == 2.0);
}

/* The system does not look in the folder of the test, where a link to its library lies. */
static void library_in_the_folder(void **state) {
  char folder[] = "/tmp/md_library_XXXXXX", link[64];
  of_one_number cosine = NULL, other = NULL;
  const md_library_function function = {"cos", (void **)&cosine};
  Dl_info found;
  assert_int_equal(md_shared_library_load(*state, "libm.so.6", "/nowhere", 1, &function), MD_OK);
  assert_true(dladdr((void *)cosine, &found) != 0);
  assert_non_null(mkdtemp(folder));
  snprintf(link, sizeof link, "%s/libmd_other.so.1", folder);
  assert_int_equal(symlink(found.dli_fname, link), 0);
  const md_library_function again = {"cos", (void **)&other};
  const md_status status = md_shared_library_load(*state, "libmd_other.so.1", folder, 1, &again);
  unlink(link);
  rmdir(folder);
  assert_int_equal(status, MD_OK);
  assert_true(other(0.0) == 1.0);
}

static void what_is_missing_is_named(void **state) {
  md_context *context = *state;
  of_one_number none = NULL;
  const md_library_function function = {"md_no_such_function", (void **)&none};
  assert_int_equal(md_shared_library_load(context, "libmd_none.so.1", "/nowhere", 1, &function),
                   MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "libmd_none.so.1 cannot be loaded: "));
  assert_int_equal(md_shared_library_load(context, "libm.so.6", "/nowhere", 1, &function),
                   MD_ENVIRONMENT);
  assert_non_null(strstr(context->message, "libm.so.6 has no function md_no_such_function"));
}

static struct CMUnitTest tests[] = {cmocka_unit_test(functions_of_the_system),
                                    cmocka_unit_test(library_in_the_folder),
                                    cmocka_unit_test(what_is_missing_is_named)};
MD_RUN_TESTS(tests)
