#include "base/device.h"
#include "base/options.h"
#include "base/text.h"
#include "dirac/backend.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

extern const md_backend md_backend_cpu_ref, md_backend_cpu_simd, md_backend_cuda;
extern const md_backend md_backend_tensor, md_backend_tensor_emu;

const md_backend *const *md_backends(void) {
  static const md_backend *const table[] = {&md_backend_cpu_ref,    &md_backend_cpu_simd,
                                            &md_backend_cuda,       &md_backend_tensor,
                                            &md_backend_tensor_emu, NULL};
  return table;
}

#define MD_ROW(id, name) name,
static const char *const reconstruct_names[] = {MD_RECONSTRUCT_TABLE(MD_ROW)};
static const char *const packing_names[] = {MD_PACKING_TABLE(MD_ROW) "auto"};
#undef MD_ROW

const char *md_reconstruct_name(md_reconstruct reconstruct) {
  return reconstruct_names[reconstruct];
}
const char *md_packing_name(md_packing packing) {
  return packing_names[packing];
}
int md_reconstruct_of(const char *name) {
  return md_choice_of(&(MD_RECONSTRUCT_WORDS)[1], name);
}
int md_packing_of(const char *name) {
  return md_choice_of(&(MD_PACKING_WORDS "|auto")[1], name);
}

const char *md_backend_words(const char *first, char text[MD_BACKEND_WORDS_BYTES]) {
  snprintf(text, MD_BACKEND_WORDS_BYTES, "%s", first);
  for (const md_backend *const *b = md_backends(); *b; b++)
    md_append(text, MD_BACKEND_WORDS_BYTES, "|%s", (*b)->name);
  return text;
}

/* With the packings that it does serve. */
static md_status fail_packing(md_context *context, const md_backend *b,
                              const md_backend_request *r) {
  char served[64] = "";
  for (int p = 0; p < MD_PACKINGS; p++)
    if (b->packings & 1u << p)
      md_append(served, sizeof served, "%s%s", *served ? ", " : "", packing_names[p]);
  return md_fail(context, MD_INPUT, "backend %s serves the packings %s, got %s; take one of them",
                 b->name, served, md_packing_name(r->packing));
}

static bool has_flag(const md_backend *b, size_t flags, int bit) {
  return *(const unsigned *)((const char *)b + flags) & 1u << bit;
}

/* MD_INPUT with the backends that do where `b` does not serve `what` in words, of which `bit` of
 * the flags at that offset tells. */
static md_status check_flag(md_context *context, const md_backend *b, size_t flags, int bit,
                            const char *const what[3]) {
  char served[MD_BACKEND_WORDS_BYTES] = "";
  if (has_flag(b, flags, bit)) return MD_OK;
  for (const md_backend *const *other = md_backends(); *other; other++)
    if (has_flag(*other, flags, bit) && !(*other)->unavailable)
      md_append(served, sizeof served, "%s%s", *served ? ", " : "", (*other)->name);
  return md_fail(context, MD_INPUT,
                 "backend %s does not serve %s%s%s; those of this build that do: %s", b->name,
                 what[0], what[1], what[2], *served ? served : "none");
}

/* Whether the links of the action and the twist can be stored as asked, on any backend. */
static md_status check_reconstruct(md_context *context, const md_backend_request *r) {
  const md_action_data *action = md_action_get(r->action);
  const char *reals = md_reconstruct_name(r->reconstruct);
  if (r->reconstruct == MD_RECONSTRUCT_18) return MD_OK;
  if (md_reconstruct_has_phase(r->reconstruct) && action->fields < 2)
    return md_fail(context, MD_INPUT,
                   "links of %s reals are the long ones of asqtad and hisq, action %s has none; "
                   "use 18, 12 or 8",
                   reals, action->name);
  if (!md_reconstruct_has_phase(r->reconstruct) && !action->special_unitary)
    return md_fail(context, MD_INPUT,
                   "links of %s reals must be in SU(3), those of action %s are not; use 18, or 13 "
                   "or 9 where a backend serves them",
                   reals, action->name);
  if (md_links_twisted(&r->twist))
    return md_fail(context, MD_INPUT,
                   "links of %s reals must be %s, which --imaginary-mu and --magnetic end; use 18",
                   reals, action->special_unitary ? "in SU(3)" : "without phases");
  return MD_OK;
}

static md_status check_walls(md_context *context, const md_backend_request *r) {
  const int slices = md_request_slices(r);
  if (!md_action_get(r->action)->walls || (slices >= MD_LEAST_SLICES && slices <= MD_MOST_SLICES))
    return MD_OK;
  return md_fail(context, MD_INPUT, "action %s needs %d to %d slices, got %d",
                 md_action_name(r->action), MD_LEAST_SLICES, MD_MOST_SLICES, slices);
}

/* MD_OK when the backend's flags and its own check allow the request. */
static md_status serves(md_context *context, const md_backend *b, const md_backend_request *r) {
  const char *const action[] = {"action ", md_action_name(r->action), ""};
  const char *const precision[] = {"precision ", md_precision_name(r->precision), ""};
  const char *const links[] = {"links of ", md_reconstruct_name(r->reconstruct), " reals"};
  MD_TRY(check_flag(context, b, offsetof(md_backend, actions), r->action, action));
  MD_TRY(check_walls(context, r));
  MD_TRY(check_reconstruct(context, r));
  MD_TRY(check_flag(context, b, offsetof(md_backend, precisions), r->precision, precision));
  MD_TRY(check_flag(context, b, offsetof(md_backend, reconstructs), r->reconstruct, links));
  if (!(b->packings & 1u << r->packing)) return fail_packing(context, b, r);
  return b->check ? b->check(context, r) : MD_OK;
}

/* What has been found so far, with the request as it would be served. */
typedef struct choice {
  const md_backend *backend;
  md_backend_request request;
  int speed;
  const char *reason; /* NULL: no backend had one */
} choice;

/* Takes a backend with a packing in place of what was found where it is faster. */
static md_status consider(md_context *context, const md_backend *b, md_packing packing,
                          const int *local, const md_backend_request *asked, choice *best) {
  md_backend_request request = *asked;
  const char *reason = NULL;
  request.packing = packing;
  if (request.pads && b->columns) request.n_rhs = b->columns(context, &request, local);
  MD_TRY(serves(context, b, &request));
  const int speed =
      b->speed_of ? b->speed_of(context, &request, asked->n_rhs, local, &reason) : b->speed;
  if (!best->backend || speed > best->speed) {
    best->backend = b;
    best->request = request;
    best->speed = speed;
  }
  if (reason) best->reason = reason;
  return MD_OK;
}

/* With the request's packing, or with each of the backend's; a status of the last that it does not
 * serve where it serves none. */
static md_status consider_packings(md_context *context, const md_backend *b, const int *local,
                                   const md_backend_request *request, choice *best) {
  if (request->packing != MD_PACKING_AUTO)
    return consider(context, b, request->packing, local, request, best);
  md_status status = MD_OK;
  bool any = false;
  for (int p = 0; p < MD_PACKINGS; p++) {
    if (!(b->packings & 1u << p)) continue;
    const md_status one = consider(context, b, (md_packing)p, local, request, best);
    if (one == MD_OK) any = true;
    if (one != MD_OK) status = one;
  }
  return any ? MD_OK : status;
}

/* Device backends count only when every rank has a device: what is chosen must run here. */
static md_status find_fastest(md_context *context, const int *local,
                              const md_backend_request *request, choice *best) {
  MD_TRY(check_reconstruct(context, request));
  char before[sizeof context->message];
  memcpy(before, context->message, sizeof before);
  const bool device = md_agree(context, md_device_open(context)) == MD_OK;
  for (const md_backend *const *b = md_backends(); *b; b++)
    if (!(*b)->unavailable && ((*b)->space == MD_HOST || device))
      (void)consider_packings(context, *b, local, request, best);
  memcpy(context->message, before, sizeof before); /* what was tried in vain is no failure */
  if (best->backend) return MD_OK;
  return md_fail(context, MD_INPUT,
                 "no backend of this build and machine serves action %s, precision %s, %s reals, "
                 "packing %s, %d rhs%s%s",
                 md_action_name(request->action), md_precision_name(request->precision),
                 md_reconstruct_name(request->reconstruct), md_packing_name(request->packing),
                 request->n_rhs, md_links_twisted(&request->twist) ? ", twisted links" : "",
                 device ? "" : "; a GPU may, see docs/backends.md");
}

/* By its name. */
static md_status find_named(md_context *context, const char *name, const int *local,
                            const md_backend_request *request, choice *best) {
  md_suggestion nearest = md_suggest(name);
  char known[MD_BACKEND_WORDS_BYTES];
  for (const md_backend *const *b = md_backends(); *b; b++) {
    if (strcmp((*b)->name, name) != 0) continue;
    if ((*b)->unavailable)
      return md_fail(context, MD_ENVIRONMENT, "backend %s is not available: %s", name,
                     (*b)->unavailable);
    best->backend = *b;
    best->request = *request;
    best->speed = INT_MIN;
    return consider_packings(context, *b, local, request, best);
  }
  md_suggest_choices(&nearest, md_backend_words("auto", known));
  return md_fail(context, MD_INPUT, "backend must be one of %s, got '%s'%s", known, name,
                 nearest.text);
}

/* Why packing auto became that of the choice. */
static const char *reason_of(const choice *best, bool named) {
  if (!named) return best->reason ? best->reason : "no backend here serves or gains by another one";
  const md_backend *b = best->backend;
  return b && b->packing_reason ? b->packing_reason(best->request.packing)
                                : "the backend has no other one";
}

md_status md_backend_choose(md_context *context, const char *name, const int *local,
                            md_backend_request *request, const md_backend **backend,
                            const char **reason) {
  choice best = {0};
  const bool named = strcmp(name, "auto") != 0;
  const md_status status = named ? find_named(context, name, local, request, &best)
                                 : find_fastest(context, local, request, &best);
  *backend = best.backend;
  *reason = request->packing != MD_PACKING_AUTO ? "asked for" : reason_of(&best, named);
  if (status == MD_OK) *request = best.request;
  return status;
}

md_status md_backend_find(md_context *context, const char *name, const md_backend_request *request,
                          const md_backend **backend) {
  md_backend_request open = *request;
  const char *reason;
  return md_backend_choose(context, name, NULL, &open, backend, &reason);
}
