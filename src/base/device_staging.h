#pragma once

#include "base/context.h"

/* Large copies between pageable host memory and the device: all threads carry pieces through
 * page-locked buffers of the context while the copy engine moves the one before, which is several
 * times the speed of the driver's own way. For device_cuda.cu. Local. */
#ifdef __cplusplus
extern "C" {
#endif

/* Both after the work so far; they return when all is there. */
md_status md_device_staged_upload(md_context *context, void *device, const void *host,
                                  size_t bytes);
md_status md_device_staged_download(md_context *context, void *host, const void *device,
                                    size_t bytes);
void md_device_staging_close(md_context *context);

#ifdef __cplusplus
}
#endif
