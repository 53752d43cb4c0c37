#ifndef MD_BASE_SUGGEST_H
#define MD_BASE_SUGGEST_H

#include <stddef.h>

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

#endif
