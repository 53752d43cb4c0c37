#pragma once

#include "lattice/fields/field.h"

MD_C_BEGIN

/* A field of many right-hand sides on the host, in MD_DOUBLE, handed out in parts: `count` of them
 * from `first` on, two at least or all, and the first `count` of a field of any precision in any
 * space, of the same components and geometry. Local sites only. Local, both. */
/* out's first `count` become in's from `first` on, its others zero. */
md_status md_field_take(md_context *context, md_field *out, const md_field *in, int first,
                        int count);
/* out's from `first` on become in's first `count`; its others stay. */
md_status md_field_put(md_context *context, md_field *out, int first, int count,
                       const md_field *in);

MD_C_END
