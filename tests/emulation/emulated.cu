#include "emulated.h"

#include <ucontext.h>

#include <vector>

/* One block at a time; the fibres of its threads take turns. */

emulated_place threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr int WARP = 32, STACK = 128 * 1024;
enum meeting { NONE, WARP_BARRIER, PRODUCT, SHUFFLE };

struct fibre {
  ucontext_t context;
  std::vector<char> stack;
  bool ended;
  long warp_meetings, block_meetings; /* that it has come to */
  meeting last;
  double given[2][6]; /* at even and odd meetings of the warp */
};

struct block {
  std::vector<fibre> fibres;
  ucontext_t scheduler;
  const std::function<void()> *body;
  int current;
  bool in_step;
};
block now; /* what a fibre's entry, which takes no pointer, and the kernel's functions find */

fibre &own() {
  return now.fibres[now.current];
}

void take_turns() {
  fibre &f = own();
  swapcontext(&f.context, &now.scheduler);
}

void enter() {
  (*now.body)();
  own().ended = true;
}

/* The lane comes to a meeting of its warp and leaves it with all others. */
void meet(meeting what) {
  fibre &f = own();
  const int first = now.current / WARP * WARP;
  const long turn = ++f.warp_meetings;
  f.last = what;
  for (int lane = first; lane < first + WARP; lane++)
    while (now.fibres[lane].warp_meetings < turn && !now.fibres[lane].ended) take_turns();
  for (int lane = first; lane < first + WARP; lane++) {
    const fibre &other = now.fibres[lane];
    if (other.warp_meetings < turn || (other.warp_meetings == turn && other.last != what))
      now.in_step = false;
  }
}

/* What lane `lane` of the warp gave at the meeting that just was. */
const double *given(int lane) {
  return now.fibres[now.current / WARP * WARP + lane].given[own().warp_meetings % 2];
}

} // namespace

void emulated_wait_warp() {
  meet(WARP_BARRIER);
}

void emulated_wait_block() {
  const long turn = ++own().block_meetings;
  for (const fibre &other : now.fibres)
    while (other.block_meetings < turn && !other.ended) take_turns();
}

void emulated_mma(const double (&operands)[6], double (&d)[4]) {
  memcpy(own().given[(own().warp_meetings + 1) % 2], operands, sizeof operands);
  meet(PRODUCT);
  const int g = now.current % WARP / 4, t = now.current % 4;
  for (int c = 0; c < 4; c++) {
    const int half = c / 2, column = 2 * t + c % 2;
    d[c] = 0.0;
    for (int k = 0; k < 8; k++)
      d[c] += given(4 * g + k % 4)[half + 2 * (k / 4)] * given(4 * column + k % 4)[4 + k / 4];
  }
}

float __shfl_xor_sync(unsigned lanes, float value, int mask) {
  (void)lanes;
  own().given[(own().warp_meetings + 1) % 2][0] = value;
  meet(SHUFFLE);
  return (float)given(now.current % WARP ^ mask)[0];
}

bool emulate_block(int threads, int blocks, int x, int y, const std::function<void()> &body) {
  gridDim = {(unsigned)blocks, 1, 1};
  blockDim = {(unsigned)threads, 1, 1};
  blockIdx = {(unsigned)x, (unsigned)y, 0};
  now.fibres.resize(threads);
  now.body = &body;
  now.in_step = true;
  for (fibre &f : now.fibres) {
    f.stack.resize(STACK);
    f.ended = false;
    f.warp_meetings = f.block_meetings = 0;
    f.last = NONE;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = &now.scheduler;
    makecontext(&f.context, enter, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (int i = 0; i < threads; i++) {
      if (now.fibres[i].ended) continue;
      any = true;
      now.current = i;
      threadIdx = {(unsigned)i, 0, 0};
      swapcontext(&now.scheduler, &now.fibres[i].context);
    }
  }
  return now.in_step;
}
