#pragma once

#include "base/instruction_set.h"
#include "dirac/wilson/wilson.h"

/* md_wall_apply of host fields, for each precision and instruction set. */
typedef struct md_wall_kernels {
  void (*apply)(const md_wall_matrix *m, const md_wall_way *way, const md_field *in, md_field *out);
} md_wall_kernels;
MD_DECLARE_EVERY_PRECISION(const md_wall_kernels, md_wall_host);
