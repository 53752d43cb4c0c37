#ifndef MD_LATTICE_FIELDS_COLUMNS_H
#define MD_LATTICE_FIELDS_COLUMNS_H

#include "lattice/fields/field.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Between fields of one right-hand side each and one field that has them side by side, which is
 * what an operator of many right-hand sides takes: two at least. All are MD_DOUBLE fermions of one
 * space, parity and geometry; local sites only, halos are left as they are. Numbers are copied bit
 * by bit. On a device the copy is queued only. */

/* Right-hand side r of `block` becomes columns[r] for r < count, zero for count <= r < n_rhs.
 * Local. */
md_status md_columns_join(md_context *context, int count, const md_field *columns, md_field *block);
/* columns[r] becomes right-hand side r of `block` for r < count, n_rhs at most. Local. */
md_status md_columns_split(md_context *context, const md_field *block, int count,
                           md_field *columns);

#ifdef __cplusplus
}
#endif

#endif
