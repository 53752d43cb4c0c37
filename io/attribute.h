#ifndef MD_IO_ATTRIBUTE_H
#define MD_IO_ATTRIBUTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A named value in an HDF5 file: `count` doubles or 64-bit integers, or a text. Written from
 * data, or read into it. */
typedef enum md_attribute_type {
  MD_ATTRIBUTE_REAL,    /* double[count] */
  MD_ATTRIBUTE_INTEGER, /* int64_t[count] */
  MD_ATTRIBUTE_TEXT     /* char[count], closed by a zero byte; on writing count is not used */
} md_attribute_type;

typedef struct md_attribute {
  const char *name;
  md_attribute_type type;
  int count;
  void *data;
} md_attribute;

#ifdef __cplusplus
}
#endif

#endif
