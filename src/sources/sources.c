#include "sources/sources.h"
#include "base/random_math.h"
#include "base/text.h"
#include "io/propagator.h"
#include "io/vectors.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PURPOSE_POINTS = 0x706f696e, PURPOSE_RESEED = 0x72657365 };

/* Lists of `width` integers each, "x,y,z;x,y,z;...", at most `most` of them, into n[][width]. */
static md_number read_lists(const char *text, int width, long long low, long long high, int most,
                            int *n, int *count) {
  for (*count = 0; *count < most;) {
    char copy[64]; /* of a list that others follow */
    long long values[MD_DIMS];
    const size_t length = strcspn(text, ";");
    const bool last = text[length] == '\0';
    if (!last && length >= sizeof copy) return MD_NUMBER_MALFORMED;
    if (!last) snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    const md_number found = md_number_integers(last ? text : copy, ',', width, low, high, values);
    if (found != MD_NUMBER_OK) return found;
    for (int d = 0; d < width; d++) n[*count * width + d] = (int)values[d];
    ++*count;
    if (last) return MD_NUMBER_OK;
    text += length + 1;
  }
  return MD_NUMBER_OUTSIDE;
}

/* An integer and a seed. */
static md_number read_seeded(const char *text, long long low, long long high, int *first,
                             uint64_t *seed) {
  long long n[2];
  const md_number found = md_number_integers(text, ',', 2, INT_MIN, LLONG_MAX, n);
  if (found != MD_NUMBER_OK) return found;
  if (n[0] < low || n[0] > high || n[1] < 0) return MD_NUMBER_OUTSIDE;
  *first = (int)n[0];
  *seed = (uint64_t)n[1];
  return MD_NUMBER_OK;
}

/* The numbers behind the colon by kind; seeds below 2^63. */
static md_number read_numbers(const char *text, md_source *source) {
  long long n = 0;
  md_number found;
  switch (source->word) {
  case MD_WORD_POINT:
  case MD_WORD_POINTS:
    return read_lists(text, MD_DIMS, INT_MIN, INT_MAX,
                      source->word == MD_WORD_POINT ? 1 : MD_SOURCE_POINTS_MOST, source->point[0],
                      &source->points);
  case MD_WORD_SEEDED:
    return read_seeded(text, 1, MD_SOURCE_POINTS_MOST, &source->points, &source->seed);
  case MD_WORD_COLOUR:
    return read_seeded(text, INT_MIN, INT_MAX, &source->t, &source->seed);
  case MD_WORD_RANDOM:
  case MD_WORD_U1:
    found = md_number_integer(text, 0, LLONG_MAX, &n);
    source->seed = (uint64_t)n;
    return found;
  case MD_WORD_FILE:
    return MD_NUMBER_MALFORMED; /* without a path */
  default:
    found = md_number_integer(text, INT_MIN, INT_MAX, &n);
    source->t = (int)n;
    return found;
  }
}

md_status md_source_parse(md_context *context, const char *label, const char *text, void *target) {
  md_source *source = target;
  const size_t length = strcspn(text, ":");
  char word[16];
  snprintf(word, sizeof word, "%.*s", (int)length, text);
  const int which = md_choice_of(MD_SOURCE_WORDS, word);
  if (which < 0) return md_fail_choice(context, label, MD_SOURCE_WORDS, word);
  *source = (md_source){.word = (md_source_word)which};
  const bool of_file = source->word == MD_WORD_FILE && text[length] == ':' && text[length + 1];
  if (!of_file && read_numbers(text + length + (text[length] == ':'), source) != MD_NUMBER_OK)
    return md_fail(
        context, MD_INPUT,
        "%s must be point:x,y,z,t, points:x,y,z,t;..., seeded:N,SEED, wall:t, corner:t, "
        "evenwall:t, oddwall:t, colour:t,SEED, random:SEED, u1:SEED or file:PATH with integers "
        "below 2^31, seeds below 2^63 and 1 to %d points, got '%.200s'",
        label, MD_SOURCE_POINTS_MOST, text);
  source->text = strdup(text);
  return source->text ? MD_OK : md_fail_memory(context, strlen(text), "source");
}

md_status md_source_describe(md_context *context, md_source *source) {
  md_lattice_info info;
  if (source->word != MD_WORD_FILE) return MD_OK;
  md_status status = md_lattice_describe(context, md_source_path(source), &info);
  if (status == MD_OK) {
    source->points =
        strcmp(info.header.content, "solution") ? md_vectors_count(&info, true) : info.header.count;
    if (source->points < 1)
      status = md_fail(context, MD_INPUT, "%s must hold colour vectors, its content is: %s",
                       md_source_path(source), info.header.content);
  }
  md_lattice_info_destroy(&info);
  return status;
}

md_status md_source_read(md_context *context, const md_source *source, md_field b[MD_PARITIES]) {
  md_lattice_info info;
  md_status status = md_lattice_describe(context, md_source_path(source), &info);
  if (status == MD_OK && info.notes.run_count > 0 && info.notes.runs[0].part)
    md_warn(context,
            "%s: its sources are on a part of the lattice and are not read, its solutions are "
            "taken",
            md_source_path(source));
  if (status == MD_OK)
    status = strcmp(info.header.content, "solution")
                 ? md_vectors_read(context, md_source_path(source), &info, true, b)
                 : md_propagator_read(context, md_source_path(source), b, NULL, 0);
  md_lattice_info_destroy(&info);
  return status;
}

md_status md_source_refuse_file(md_context *context, const md_source *source, const char *command,
                                const char *instead) {
  if (source->word != MD_WORD_FILE) return MD_OK;
  return md_fail(context, MD_INPUT, "%s takes no source of a file, got '%.200s'; use %s", command,
                 source->text, instead);
}

static md_status check_place(md_context *context, const md_source *source, int d, int place,
                             int extent) {
  if (place >= 0 && place < extent) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "the source must lie on the lattice, 0 to %d in direction %c, got %d in '%.200s'",
                 extent - 1, "xyzt"[d], place, source -> text);
}

md_status md_source_check(md_context *context, const md_source *source, const int dims[MD_DIMS]) {
  const double volume = (double)dims[0] * dims[1] * dims[2] * dims[3];
  if (md_source_is_noise(source) || source->word == MD_WORD_FILE) return MD_OK;
  if (!md_source_is_points(source))
    return check_place(context, source, MD_T, source->t, dims[MD_T]);
  if (source->word == MD_WORD_SEEDED && source->points > volume)
    return md_fail(context, MD_INPUT,
                   "a source has at most as many points as the lattice has sites, %.0f, got '%s'",
                   volume, source->text);
  for (int k = 0; k < source->points && source->word != MD_WORD_SEEDED; k++) {
    for (int d = 0; d < MD_DIMS; d++)
      MD_TRY(check_place(context, source, d, source->point[k][d], dims[d]));
    for (int i = 0; i < k; i++)
      if (memcmp(source->point[i], source->point[k], sizeof source->point[k]) == 0)
        return md_fail(context, MD_INPUT,
                       "points of a source must differ, %d,%d,%d,%d is there twice in '%.200s'",
                       source->point[k][0], source->point[k][1], source->point[k][2],
                       source->point[k][3], source->text);
  }
  return MD_OK;
}

/* Different sites, uniform over the lattice. */
static void draw_points(const md_source *source, const int dims[MD_DIMS],
                        int point[MD_SOURCE_POINTS_MOST][MD_DIMS]) {
  md_random random = md_random_begin(source->seed, PURPOSE_POINTS, 0);
  for (int k = 0; k < source->points;) {
    bool taken = false;
    for (int d = 0; d < MD_DIMS; d++)
      point[k][d] = (int)(md_random_next_uniform(&random) * dims[d]);
    for (int i = 0; i < k && !taken; i++) taken = memcmp(point[i], point[k], sizeof point[k]) == 0;
    if (!taken) k++;
  }
}

/* The points of a source of them; `drawn` has room for those of a seed. */
static const int (*points_of(const md_source *source, const int dims[MD_DIMS],
                             int drawn[MD_SOURCE_POINTS_MOST][MD_DIMS]))[MD_DIMS] {
  if (source->word != MD_WORD_SEEDED) return source->point;
  draw_points(source, dims, drawn);
  return (const int(*)[MD_DIMS])drawn;
}

/* The first odd one of its points; they are even: -1. */
static int first_odd(const md_source *source, const int (*point)[MD_DIMS]) {
  for (int k = 0; k < source->points; k++)
    if (md_parity(point[k]) != 0) return k;
  return -1;
}

bool md_source_is_even(const md_source *source, const int dims[MD_DIMS]) {
  int drawn[MD_SOURCE_POINTS_MOST][MD_DIMS];
  switch (source->word) {
  case MD_WORD_POINT:
  case MD_WORD_POINTS:
  case MD_WORD_SEEDED:
    return first_odd(source, points_of(source, dims, drawn)) < 0;
  case MD_WORD_CORNER:
  case MD_WORD_EVEN_WALL:
    return source->t % 2 == 0;
  case MD_WORD_ODD_WALL:
    return source->t % 2 != 0;
  default:
    return false;
  }
}

md_status md_source_require_even(md_context *context, const md_source *source,
                                 const int dims[MD_DIMS]) {
  int drawn[MD_SOURCE_POINTS_MOST][MD_DIMS];
  if (!md_source_is_points(source)) return MD_OK;
  const int(*point)[MD_DIMS] = points_of(source, dims, drawn);
  const int k = first_odd(source, point);
  if (k < 0) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "multishift solves on even sites: x+y+z+t of the point must be even, got "
                 "%d,%d,%d,%d of '%.200s'; give another %s",
                 point[k][0], point[k][1], point[k][2], point[k][3], source->text,
                 source->word == MD_WORD_SEEDED ? "seed" : "point");
}

int md_source_count(const md_source *source, int vectors) {
  if (md_source_is_random(source)) return vectors;
  if (source->word == MD_WORD_FILE) return source->points;
  return md_source_width(source) * (md_source_is_points(source) ? source->points : 1);
}

void md_source_expand(const md_source *source, const int dims[MD_DIMS], int vectors,
                      md_source_vector *vector) {
  static const md_source_kind kinds[] = {
      [MD_WORD_POINT] = MD_SOURCE_POINT,       [MD_WORD_POINTS] = MD_SOURCE_POINT,
      [MD_WORD_SEEDED] = MD_SOURCE_POINT,      [MD_WORD_WALL] = MD_SOURCE_WALL,
      [MD_WORD_CORNER] = MD_SOURCE_CORNER,     [MD_WORD_EVEN_WALL] = MD_SOURCE_EVEN_WALL,
      [MD_WORD_ODD_WALL] = MD_SOURCE_ODD_WALL, [MD_WORD_COLOUR] = MD_SOURCE_COLOUR_WALL,
      [MD_WORD_RANDOM] = MD_SOURCE_Z2,         [MD_WORD_U1] = MD_SOURCE_U1,
      [MD_WORD_FILE] = MD_SOURCE_POINT}; /* says nothing: the vectors are read */
  int drawn[MD_SOURCE_POINTS_MOST][MD_DIMS];
  const int(*point)[MD_DIMS] = points_of(source, dims, drawn);
  const int width = md_source_width(source);
  for (int r = 0; r < md_source_count(source, vectors); r++) {
    vector[r] = (md_source_vector){.kind = kinds[source->word],
                                   .at = {[MD_T] = source->t},
                                   .colour = r % width,
                                   .seed = source->seed,
                                   .number = r};
    if (md_source_is_points(source)) memcpy(vector[r].at, point[r / width], sizeof vector[r].at);
  }
}

md_source md_source_reseeded(const md_source *source, uint64_t key) {
  md_source other = *source;
  md_random random = md_random_begin(source->seed, PURPOSE_RESEED, key);
  if (md_source_is_random(source) || source->word == MD_WORD_SEEDED)
    other.seed = md_random_next_bits(&random) >> 1;
  return other;
}

/* C at place i of copy k: the sum over its right-hand sides. */
static double copy_at(const double *correlators, int stride, int width, int k, int i) {
  double sum = 0.0;
  for (int c = 0; c < width; c++)
    sum += correlators[(size_t)(k * width + c) * (size_t)stride + (size_t)i];
  return sum;
}

void md_source_mean(const md_source *source, int count, const double *correlators, int stride,
                    int length, double *mean, double *error) {
  const int width = md_source_width(source), copies = count / width;
  for (int i = 0; i < length; i++) {
    double sum = 0.0, squares = 0.0;
    for (int k = 0; k < copies; k++) sum += copy_at(correlators, stride, width, k, i);
    mean[i] = sum / copies;
    for (int k = 0; k < copies; k++) {
      const double off = copy_at(correlators, stride, width, k, i) - mean[i];
      squares += off * off;
    }
    error[i] = copies > 1 ? sqrt(squares / copies / (copies - 1)) : 0.0;
  }
}

enum { LARGEST = 1000 }; /* component of a momentum */

/* All n with n^2 at most `most` and the first component that is not zero positive. */
static bool fill_up_to(int most, md_momentum_list *list) {
  for (int square = 0; square <= most; square++)
    for (int i = 0; i <= square; i++)
      for (int j = -square; j <= square; j++)
        for (int k = -square; k <= square; k++) {
          const bool first = i > 0 || (i == 0 && (j > 0 || (j == 0 && k >= 0)));
          if (!first || i * i + j * j + k * k != square) continue;
          if (list->count == MD_MOMENTA_MOST) return false;
          memcpy(list->n[list->count++], (const int[]){i, j, k}, sizeof list->n[0]);
        }
  return true;
}

md_status md_momenta_parse(md_context *context, const char *label, const char *text, void *target) {
  static const char upto[] = "upto:";
  md_momentum_list *list = target;
  long long most;
  *list = (md_momentum_list){0};
  const bool all = strncmp(text, upto, sizeof upto - 1) == 0;
  const bool read =
      all ? md_number_integer(text + sizeof upto - 1, 0, LARGEST, &most) == MD_NUMBER_OK &&
                fill_up_to((int)most, list)
          : read_lists(text, 3, -LARGEST, LARGEST, MD_MOMENTA_MOST, list->n[0], &list->count) ==
                MD_NUMBER_OK;
  for (int q = 0; read && q < list->count; q++)
    for (int k = 0; k < q; k++)
      if (memcmp(list->n[q], list->n[k], sizeof list->n[q]) == 0)
        return md_fail(context, MD_INPUT, "%s must differ, %d,%d,%d is there twice", label,
                       list->n[q][0], list->n[q][1], list->n[q][2]);
  if (read) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "%s must be a list X,Y,Z;X,Y,Z;... of 1 to %d momenta, integers from %d to %d, or "
                 "upto:N with as many, got '%.200s'",
                 label, MD_MOMENTA_MOST, -LARGEST, LARGEST, text);
}

md_momenta md_momenta_of(const md_momentum_list *list) {
  return (md_momenta){.count = list->count ? list->count : 1, .n = list->n};
}
