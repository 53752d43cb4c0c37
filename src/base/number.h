#ifndef MD_BASE_NUMBER_H
#define MD_BASE_NUMBER_H

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
/* One finite real number in any of C's forms. */
md_number md_number_real(const char *text, double low, double high, double *value);

#endif
