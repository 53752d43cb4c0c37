#pragma once

#include "base/options.h"
#include "lattice/fields/observables.h"
#include "lattice/fields/source.h"

#include <string.h>

/* What --source names, for every command that solves: one word that stands for one right-hand side
 * or several. */

/* In the order of the words. */
typedef enum md_source_word {
  MD_WORD_POINT,  /* point:x,y,z,t: three colours at a site */
  MD_WORD_WALL,   /* wall:t, corner:t, evenwall:t, oddwall:t: three colours on a time slice */
  MD_WORD_RANDOM, /* random:SEED: Z2 x Z2 noise vectors */
  MD_WORD_POINTS, /* points:x,y,z,t;x,y,z,t;...: three colours at each site */
  MD_WORD_SEEDED, /* seeded:N,SEED: the same at N different sites that the seed draws */
  MD_WORD_CORNER,
  MD_WORD_EVEN_WALL,
  MD_WORD_ODD_WALL,
  MD_WORD_COLOUR, /* colour:t,SEED: random-colour vectors on a time slice */
  MD_WORD_U1,     /* u1:SEED: U(1) noise vectors */
  MD_WORD_FILE    /* file:PATH: those of a file of colour vectors or a solution */
} md_source_word;

#define MD_SOURCE_WORDS "point|wall|random|points|seeded|corner|evenwall|oddwall|colour|u1|file"
#define MD_SOURCE_HELP "KIND:NUMBERS, see below [point:0,0,0,0]"
/* Further lines of --help. */
#define MD_SOURCE_DETAILS                                                                          \
  "SOURCE is one of\n"                                                                             \
  "  point:x,y,z,t  points:x,y,z,t;x,y,z,t;...  seeded:N,SEED  all colours at a site or at "       \
  "each\n"                                                                                         \
  "  wall:t  corner:t  evenwall:t  oddwall:t                   all colours on a time slice\n"      \
  "  colour:t,SEED                                             random colours on a time slice\n"   \
  "  random:SEED  u1:SEED                                      Z2 x Z2 or U(1) noise everywhere\n"
/* Of a command that takes a file too. */
#define MD_SOURCE_FILE_DETAILS                                                                     \
  "  file:PATH                                                 sources of a file, or its "         \
  "vectors\n"

enum { MD_SOURCE_POINTS_MOST = 128 };

typedef struct md_source {
  md_source_word word;
  int points;                                /* of point, points, seeded; of a file its vectors */
  int point[MD_SOURCE_POINTS_MOST][MD_DIMS]; /* of point and points */
  int t;                                     /* of sources on a time slice */
  uint64_t seed;                             /* of seeded and random ones */
  int spins;                                 /* of the quark: 1 or 4; set by the command, 0: 1 */
  const char *text;                          /* as given; lives as long as the process */
} md_source;

/* The parser of an option (md_option.parse); the target is a md_source. MD_INPUT. Local. */
md_status md_source_parse(md_context *context, const char *label, const char *text, void *target);
/* The file of a source file:PATH. */
static inline const char *md_source_path(const md_source *source) {
  return strchr(source->text, ':') + 1;
}
/* Of a file: finds out how many vectors it has, which the functions below need, and reads them;
 * MD_INPUT: no such file, or none in it, another lattice, damage. Of other sources: nothing to
 * find out, and not to be read. Collective. */
md_status md_source_describe(md_context *context, md_source *source);
md_status md_source_read(md_context *context, const md_source *source, md_field b[MD_PARITIES]);
/* MD_INPUT for a file, where `command` takes none; `instead` does. Local. */
md_status md_source_refuse_file(md_context *context, const md_source *source, const char *command,
                                const char *instead);
/* MD_INPUT when the source lies outside the lattice, has more points than it, or one twice. Local,
 * same on all ranks. */
md_status md_source_check(md_context *context, const md_source *source, const int dims[MD_DIMS]);

/* Random vectors, as many as are asked for: noise over the whole lattice, from which comes the
 * chiral condensate, or random colours on a time slice. */
static inline bool md_source_is_noise(const md_source *source) {
  return source->word == MD_WORD_RANDOM || source->word == MD_WORD_U1;
}
static inline bool md_source_is_random(const md_source *source) {
  return md_source_is_noise(source) || source->word == MD_WORD_COLOUR;
}
/* Points: their correlators have momenta. */
static inline bool md_source_is_points(const md_source *source) {
  return source->word == MD_WORD_POINT || source->word == MD_WORD_POINTS ||
         source->word == MD_WORD_SEEDED;
}

/* True when all of it lies on even sites of a lattice on which it was checked; dims is looked at
 * for MD_WORD_SEEDED alone. Local. */
bool md_source_is_even(const md_source *source, const int dims[MD_DIMS]);
/* MD_INPUT for points of which one is not even, with that one. Local, same on all ranks. */
md_status md_source_require_even(md_context *context, const md_source *source,
                                 const int dims[MD_DIMS]);

/* Right-hand sides of a copy, whose correlators are added: the three colours, with spin of each
 * spin (colour + 3 spin), one random vector, or all of a file. */
static inline int md_source_width(const md_source *source) {
  if (source->word == MD_WORD_FILE) return source->points > 0 ? source->points : 1;
  return md_source_is_random(source) ? 1 : source->spins == 4 ? 12 : 3;
}
/* Right-hand sides in all: those of every copy; `vectors` is how many random ones are wanted. */
int md_source_count(const md_source *source, int vectors);
/* Describes them, vector[md_source_count]; for a lattice on which the source was checked. Local. */
void md_source_expand(const md_source *source, const int dims[MD_DIMS], int vectors,
                      md_source_vector *vector);
/* The same source with random numbers of its own for each `key`: seeds are below 2^63. */
md_source md_source_reseeded(const md_source *source, uint64_t key);

/* What --momenta names: integers n of p = 2 pi n / L along x, y, z. */
enum { MD_MOMENTA_MOST = 64 };
typedef struct md_momentum_list {
  int count; /* 0: not given */
  int n[MD_MOMENTA_MOST][3];
} md_momentum_list;
/* The parser of that option: "0,0,0;1,0,0", or "upto:N" for all with n^2 at most N, one of p and
 * -p, by rising n^2. The target is a md_momentum_list. MD_INPUT. Local. */
md_status md_momenta_parse(md_context *context, const char *label, const char *text, void *target);
#define MD_MOMENTA_HELP "of correlators of points: n in 2 pi n / L, or upto:N for n^2 <= N [0,0,0]"
/* As md_pion_correlators takes them; momentum zero where none were given. Points into the list. */
md_momenta md_momenta_of(const md_momentum_list *list);

/* Means over the copies of a source. correlators[r * stride + i], i < length <= stride, of each of
 * its `count` right-hand sides r; mean[i]: of the sums over the right-hand sides of a copy;
 * error[i]: its standard error over the copies, 0 where there is one. Local. */
void md_source_mean(const md_source *source, int count, const double *correlators, int stride,
                    int length, double *mean, double *error);
