#pragma once

#include "base/context.h"

/* SIGINT, SIGTERM and SIGUSR1 (which mpirun passes on without ending the job) ask the run to end
 * after the step that is under way; one more than MD_INTERRUPT_SAME_S later ends the process at
 * once. Before that it is the same request: `timeout` and batch systems send a signal to a process
 * and to its group. The handler notes the time and sets the flag that context->signal points to. */
#define MD_INTERRUPT_SAME_S 0.5

/* From here on the signals are caught. For commands that ask below; called on every rank. Local. */
void md_interrupt_catch(md_context *context);

/* Whether a signal has reached any rank. Every rank calls it at the same steps and gets the same
 * answer at the same one; once true it stays so. For the loops of solvers and chains: on several
 * ranks they look at each other's flags (one sum over ranks) after as many calls as take about
 * MD_INTERRUPT_S, and after every one that takes longer. False without md_interrupt_catch.
 * Collective. */
bool md_interrupted(md_context *context);
/* The same, and looks at every call: between pieces of work of a second or more. Collective. */
bool md_interrupted_now(md_context *context);
#define MD_INTERRUPT_S 0.05
/* The same as a status: MD_ENVIRONMENT with "SIGTERM ended WHAT early". Collective. */
md_status md_interrupt_check(md_context *context, const char *what);

/* After that: "SIGTERM"; NULL before. Local. */
const char *md_interrupt_name(const md_context *context);
/* True for a run that ends well, and for one that a signal ends early: both write their reports.
 * Local. */
bool md_report_is_due(const md_context *context, md_status status);
