#include "base/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>

md_status md_shared_library_load(md_context *context, const char *name, const char *folder,
                                 int count, const md_library_function *functions) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library)
    return md_fail(context, MD_ENVIRONMENT,
                   "%s cannot be loaded: %s; install it, or name its folder in LD_LIBRARY_PATH",
                   name, dlerror());
  for (int i = 0; i < count; i++) {
    *functions[i].address = dlsym(library, functions[i].name);
    if (!*functions[i].address)
      return md_fail(context, MD_ENVIRONMENT,
                     "%s has no function %s; another version of it is needed", name,
                     functions[i].name);
  }
  return MD_OK;
}
