#pragma once

#include "base/instruction_set.h"
#include "dirac/wilson/wilson.h"

/* md_wall_apply_to of host fields, for each precision and instruction set. */
typedef struct md_wall_kernels {
  void (*apply)(const md_field *in, int count, const md_wall_output *to);
} md_wall_kernels;
MD_DECLARE_EVERY_PRECISION(const md_wall_kernels, md_wall_host);
