#pragma once

#include "base/context.h"

/* A large library that few runs call, loaded by those alone instead of at every start of a program:
 * its functions are found by their names. */
MD_C_BEGIN

typedef struct md_library_function {
  const char *name; /* the symbol */
  void **address;   /* where its address goes: a pointer to a function, seen as void * */
} md_library_function;

/* Loads `name` ("libcublas.so.13") from where the system looks, else from `folder`, and sets the
 * address of each of the `count` functions. It stays loaded until the process ends; a later call
 * finds it there. MD_ENVIRONMENT, naming the library or the function, where one is missing. Local.
 */
md_status md_shared_library_load(md_context *context, const char *name, const char *folder,
                                 int count, const md_library_function *functions);

MD_C_END
