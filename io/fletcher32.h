#ifndef MD_IO_FLETCHER32_H
#define MD_IO_FLETCHER32_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of HDF5's filter Fletcher32 over `bytes` (even) bytes: J. Fletcher, IEEE Trans.
 * Commun. 30 (1982) 247, of big-endian 16-bit words modulo 65535, a sum of zero that is not of
 * zeros alone written as 65535. Vectorises. */
uint32_t md_fletcher32(const void *data, size_t bytes);

#endif
