#include "base/random_math.h"

#include <math.h>

void md_random_normal(md_random *random, double pair[2]) {
  const double radius = sqrt(-2.0 * log(md_random_next_uniform(random)));
  const double angle = 2.0 * M_PI * md_random_next_uniform(random);
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}
