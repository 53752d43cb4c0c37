#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copies `text`, which may come from a file or a file name and hold any bytes, so that it can be
 * printed on a terminal and put into JSON: valid UTF-8 without control characters. Bytes that are
 * no UTF-8 and control characters (C0, DEL, C1) become \xNN, line separators and marks that turn
 * the direction of writing \uNNNN. A newline stays as it is with keep_newlines. The result is
 * closed by a zero byte and cut before the first character that does not fit; `bytes` >= 1.
 * Returns its length. text and printable do not overlap. */
size_t md_printable(const char *text, bool keep_newlines, char *printable, size_t bytes);

/* The last part of a path, behind its last slash. */
const char *md_base_of(const char *path);

/* What ends the name of things that are counted: "" for one, "s" for any other number. */
const char *md_plural(long long count);

/* Writes behind the text that is there, which is closed by a zero byte within `bytes`, as far as
 * there is room; false when something was cut. */
bool md_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Texts as numbers: whole (nothing before, behind or between) and within a range, so that no digit
 * is cut off and nothing wraps around. Local; no messages, which are the caller's. */
typedef enum md_number {
  MD_NUMBER_OK,
  MD_NUMBER_MALFORMED, /* the text is no such number, or an infinite one */
  MD_NUMBER_OUTSIDE    /* it is one, but outside [low, high] */
} md_number;

/* One decimal integer, "-" allowed in front. *value is assigned with MD_NUMBER_OK only. */
md_number md_number_integer(const char *text, long long low, long long high, long long *value);
/* `count` of them with `separator` between: "4x4x4x8". values[count] is assigned as far as read. */
md_number md_number_integers(const char *text, char separator, int count, long long low,
                             long long high, long long *values);
/* One finite decimal real number, with or without exponent, "-" allowed in front. */
md_number md_number_real(const char *text, double low, double high, double *value);

/* A value with its error as people write it, 0.58119(31): the error rounded to two digits, the
 * value to the place of the second of them, and the two digits in parentheses count in that place;
 * where the value has one decimal they have a point, 3.4(1.2). Numbers whose last place is left of
 * the point, or that are below 1e-4, share an exponent: 1.50(12)e+05, 0.4(1.2)e+02. An error of 0
 * or infinity stands behind 12 digits of the value, 0.5(0); NaN is an error that is not known, the
 * value alone; where the value would have more than 17 digits, the two stand apart: 1 +- 1.0e-20.
 * Returns text. Local. */
enum { MD_ERROR_TEXT = 64 };
const char *md_format_error(double value, double error, char text[MD_ERROR_TEXT]);

/* The known name nearest to a word that is not known: at most two letters wrong, missing, too many
 * or swapped with their neighbour (F. Damerau, Commun. ACM 7 (1964) 171; V. Levenshtein, 1966), and
 * fewer than the word has, capitals being as good as small letters. Of equal ones the first that
 * was offered. Words that others use for a name of ours (gpu, float) are as near as can be, and all
 * names that they stand for are told. Local. */
enum { MD_SUGGEST_BYTES = 96 };
typedef struct md_suggestion {
  const char *word;            /* the caller's */
  int distance;                /* of the text's name; 3: none yet */
  char text[MD_SUGGEST_BYTES]; /* "; did you mean 'NAME'?", maybe with a second one, to end a
                                  message with, or "" */
} md_suggestion;

md_suggestion md_suggest(const char *word);
/* Offers a name of `length` bytes. */
void md_suggest_name(md_suggestion *suggestion, const char *name, size_t length);
/* Offers each word of "a|b|c". */
void md_suggest_choices(md_suggestion *suggestion, const char *choices);

/* Letters to change, insert, remove or swap with their neighbour, no letter twice (optimal string
 * alignment), to make one of the other, whatever their case; 3 when it is more than 2. */
int md_letters_apart(const char *a, size_t a_length, const char *b, size_t b_length);
