#pragma once

#include "dirac/solvers/solver.h"
#include "lattice/gauge/gauge.h"
#include "library/minidirac.h"
#include "links/action_links.h"

/* What stands behind the handles of minidirac.h. Each knows the context that it belongs to and
 * borrows what it was made of. */

struct md_lattice {
  md_context *context;
  md_geometry *geometry;
  md_gauge thin;       /* on the host, halos exchanged */
  md_link_label label; /* of files */
};

struct md_improved {
  md_context *context;
  const md_lattice *lattice;
  md_action action;
  md_gauge own[MD_MOST_LINK_FIELDS]; /* those that were made or read */
  const md_gauge *field;             /* of the action: its own, or the thin links */
  md_physics_options physics;        /* as the program says it of such links */
  char checksum[MD_MODES_TEXT];      /* for the label of modes, see md_action_links */
};

struct md_fermion {
  md_context *context;
  md_field of[MD_PARITIES];
};

struct md_quark {
  md_context *context;
  const md_improved *links;
  md_backend_request request; /* of the iterations */
  char transport[32];
  bool mixed;
  md_dirac dirac, exact, inner; /* as md_solver_operators makes them */
  md_modes_label label;         /* of its modes, but for a mass: md_quark_label */
};

struct md_eigenmodes {
  md_context *context;
  md_modes modes;
  int converged;
  double tolerance;
  md_modes_label label;
};

/* What modes of the quark belong to; the mass is read with four spins alone. Local. */
md_modes_label md_quark_label(const md_quark *quark, double mass);
/* Zeros for a handle, on all ranks or none: NULL, with a message, where memory is short on one.
 * Collective. */
void *md_handle(md_context *context, size_t bytes);
/* MD_INPUT where `word` is none of "a|b|c"; *value: its place, which is that of an enumeration.
 * Local. */
md_status md_word(md_context *context, const char *label, const char *choices, const char *word,
                  int *value);
/* MD_INPUT where a name or path that no list has is NULL. Local. */
md_status md_given(md_context *context, const char *label, const char *word);
md_status md_space_word(md_context *context, const char *word, md_space *space);
/* MD_INPUT where a result may not be written there, md_outputs_check. Collective. */
md_status md_output_path(md_context *context, const char *path, bool replace);

/* The operator in double that decides, and what a quark's modes and exact fields lie in. */
md_dirac *md_quark_exact(md_quark *quark);

/* A field of the shape on a geometry; and without its handle, which a zeroed one survives. Both
 * collective. */
md_status md_fermion_make(md_context *context, const md_geometry *geometry,
                          const md_field_shape *shape, md_fermion **field);
void md_fermion_release(md_fermion *field);
/* The fields of `f` on the host in double: its own, or those of `copy`, which is to be released
 * in any case and else empty. Collective. */
md_status md_fermion_doubles(const md_fermion *f, md_fermion *copy, md_field **fields);
/* The same without values, to be assigned; then `finish` takes them over and releases the copy.
 * Collective. */
md_status md_fermion_blank(const md_fermion *f, md_fermion *copy, md_field **fields);
md_status md_fermion_finish(md_fermion *f, md_fermion *copy);
/* MD_INPUT, told by the context of the call, unless both have one geometry and number of right-hand
 * sides, and with `shape` one precision and space. Local. */
md_status md_fermion_alike(md_context *context, const md_fermion *a, const md_fermion *b,
                           bool shape);
