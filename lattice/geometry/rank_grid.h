#ifndef MD_LATTICE_GEOMETRY_RANK_GRID_H
#define MD_LATTICE_GEOMETRY_RANK_GRID_H

#include "lattice/geometry/geometry.h"

/* Chooses the rank grid for request->global: the asked one if it is valid, else the one whose faces
 * cost a rank least in an exchange (ties: fewest cuts in x, then y, z). Sets grid, grid_asked and
 * grid_reason. A grid is valid when it has as many places as there are ranks and leaves even local
 * extents. MD_INPUT with the valid grids when there is none or the asked one is not. Local. */
md_status md_rank_grid_choose(md_context *context, const md_layout_request *request,
                              md_geometry *geometry);

/* Sets place from grid: ranks are numbered with x fastest. Local. */
void md_rank_grid_place(const md_context *context, md_geometry *geometry);
/* The rank `steps` places (of any sign) from this one along dimension d, around the grid. Local. */
int md_rank_grid_at(const md_geometry *geometry, int d, int steps);

#endif
