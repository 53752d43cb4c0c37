#pragma once

#include "base/options.h"
#include "base/report.h"
#include "dirac/solvers/solver.h"

/* --solver, --precondition and --degree of the commands that solve: the words, and what they stand
 * for once they are read. */
typedef struct md_solver_options {
  const char *solver, *precondition;
  long long degree;       /* 0: not given */
  const md_solver *by;    /* of the table; NULL: a word that the command explains, as multishift */
  md_precondition before; /* each iteration */
} md_solver_options;
enum { MD_SOLVER_DEGREE = 8 }; /* where none is given */

/* The words of the table behind `first`, for choices: "|cg|block|...". */
#define MD_SOLVER_WORD(id, name) "|" #name
#define MD_SOLVER_WORDS MD_SOLVER_TABLE(MD_SOLVER_WORD)

/* clang-format off */
#define MD_PRECONDITION_OPTIONS(o)                                                                 \
  MD_OPTION(CHOICE, "precondition", &(o).precondition, NULL,                                       \
            "of fcg and gcr: a polynomial, or the modes of eigen [none]",                          \
            .choices = MD_PRECONDITION_WORDS, .group = MD_GROUP_SOLVER),                           \
  MD_OPTION(INTEGER, "degree", &(o).degree, "N", "of --precondition chebyshev [8]",                \
            .low = 1, .high = MD_PRECONDITION_MOST_DEGREE)
/* clang-format on */

/* Sets what is behind the words. MD_INPUT where they do not go together with each other, with an
 * --inner precision or a state to go on from, or lack the modes of --deflate. Local. */
md_status md_solver_options_read(md_context *context, md_solver_options *o, bool inner, bool states,
                                 bool modes);
/* For --help: `before`, a line for each solver of the table, then `after`. Returns text. */
enum { MD_SOLVER_HELP_BYTES = 2048 };
const char *md_solver_help(const char *before, const char *after, char text[MD_SOLVER_HELP_BYTES]);
/* Keys of a report: precondition, degree; none where the solver takes no preconditioner. */
void md_solver_options_report(cJSON *object, const md_solver_options *o);
/* The part of a request. */
void md_solver_options_apply(const md_solver_options *o, md_solver_request *request);
