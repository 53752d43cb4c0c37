#pragma once

#include <stddef.h>
#include <stdint.h>

/* Damage to HDF5 files that gets past their own checksums: blocks of metadata are found by their
 * signatures and by the checksum that follows them, bytes of them are changed, and the checksum is
 * made right again. */
enum { HDF5_BLOCKS_MOST = 64 };

typedef struct hdf5_blocks {
  int count;
  struct {
    size_t start, length; /* length 0: a block without checksum, of about 512 bytes */
  } block[HDF5_BLOCKS_MOST];
} hdf5_blocks;

/* The metadata blocks of an undamaged file. */
void hdf5_find_blocks(const unsigned char *data, size_t bytes, hdf5_blocks *blocks);
/* Changes 1 to 4 bits or bytes, mostly in metadata, or cuts the end off. *state is any number but 0
 * and is advanced. Returns the new size, at most `bytes`. */
size_t hdf5_damage(unsigned char *data, size_t bytes, const hdf5_blocks *blocks, uint64_t *state);
/* Makes the checksums of all blocks right. */
void hdf5_seal(unsigned char *data, size_t bytes, const hdf5_blocks *blocks);
