#pragma once

#include "base/options.h"
#include "base/precision.h"
#include "io/lattice_file.h"

/* The parts of `minidirac generate`. */

typedef struct md_generate_request {
  md_common_options common;
  int dims[MD_DIMS]; /* all 0: those of the lattice file */
  const char *start, *from, *output, *checkpoint, *format_name, *precision_name;
  const char *on; /* where the sweeps are done: "cpu" or "gpu" */
  md_space space; /* the same */
  double beta;
  long long sweeps, overrelax, discard, seed;
  long long save_every; /* 0: the last links alone */
  bool force, ignore_checksum;
  bool has_beta, has_overrelax, has_seed; /* given, so that a file does not say them */
  const md_lattice_format *format, *checkpoint_format;
  md_precision precision;
} md_generate_request;

/* Of the options, and of what a file says in their place. */
enum { MD_OVERRELAX_MOST = 1000 };
#define MD_SEED_MOST (1LL << 53) /* a report has it as a double */

/* What a lattice file says of the chain that made it, in the text "minidirac chain": beta=B seed=S
 * sweeps=N overrelax=O. A chain draws by (seed, sweep), and one that goes on counts its sweeps from
 * N: it is the chain that never stopped, bit for bit. */
typedef struct md_chain_record {
  bool found;
  double beta;
  long long seed, sweeps, overrelax; /* sweeps is 0 where nothing was found */
  double *plaquettes; /* the newest of them, as the text "chain plaquettes" has them */
  int count;
} md_chain_record;

typedef struct md_chain {
  md_chain_record from;
  double *plaquettes; /* after each sweep of this run; NULL: no chain was run */
  long long done;     /* sweeps */
  double mean, error; /* over the sweeps that were not discarded */
  double sweep_s;     /* median time of a sweep, its overrelaxation included */
  md_status unsaved;  /* of a numbered file, which ended the chain */
  char message[sizeof((md_context *)NULL)->message]; /* of that */
} md_chain;

/* Local, same on all ranks. The plaquettes are released with free(). */
md_status md_chain_find(md_context *context, const md_file_texts *texts, md_chain_record *record);
/* Runs the sweeps of the request, prints a line for each, and writes the numbered files that are
 * due; MD_OK also where one cannot be written, see `unsaved`. Collective. */
md_status md_chain_run(md_context *context, const md_generate_request *r, md_gauge *gauge,
                       md_chain *c);
/* Whether a chain goes on from such a file with the same bits. Local. */
bool md_chain_fits(const md_lattice_format *format);
/* Writes the links with the chain's record and its newest plaquettes, where the format has a place
 * for them; without --force every file but the checkpoint, which is in double, is to be new.
 * Collective. */
md_status md_chain_save(md_context *context, const char *path, const md_lattice_format *format,
                        const md_generate_request *r, const md_chain *c, const md_gauge *gauge);
/* The name of the links after that sweep of the chain: out.h5, 120: out.000120.h5. */
void md_chain_numbered(const char *output, long long sweep, char *name, size_t bytes);
