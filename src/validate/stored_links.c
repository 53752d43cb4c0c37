#include "lattice/fields/reals.h"
#include "validate/validate.h"

/* What a storage type makes of one real of a link. */
static double stored(md_precision precision, double value) {
  const double unit = precision == MD_FIXED ? MD_FIXED_STEPS : 1.0;
  return md_stored(precision, unit * value) / unit;
}

static void add_row(md_context *context, md_validate_run *run, const md_links *links, int f,
                    md_precision precision, const md_gauge_observables *exact,
                    const md_gauge_observables *o) {
  const md_action_data *data = md_action_get(links->action);
  const bool fat = data->field[f].hop == 1;
  const double plaquette_drift = o->plaquette - exact->plaquette;
  const double trace_drift = o->link_trace - exact->link_trace;
  const char *name = md_precision_name(precision);
  cJSON *row = md_rows_add(NULL, run->stored, "precision=%s", name);
  if (!data->special_unitary) cJSON_AddStringToObject(row, "field", data->field[f].name);
  if (fat) md_report_add(row, "plaquette=%g plaquette_drift=%g", o->plaquette, plaquette_drift);
  if (data->special_unitary) {
    md_report_real(row, "unitarity_deviation", o->unitarity_deviation);
    md_say(context, "%-8s %.12f  %10.2e  %10.2e\n", name, o->plaquette, plaquette_drift,
           o->unitarity_deviation);
    return;
  }
  md_report_add(row, "link_trace=%g link_trace_drift=%g", o->link_trace, trace_drift);
  md_say(context, "%-8s %-5s %15.12f  %10.2e", name, data->field[f].name, o->link_trace,
         trace_drift);
  if (fat) md_say(context, "  %15.12f  %10.2e", o->plaquette, plaquette_drift);
  md_say(context, "\n");
}

static md_status links_in(md_context *context, md_validate_run *run, const md_links *links, int f,
                          const md_gauge_observables *exact, md_gauge *copy,
                          md_precision precision) {
  const double scale = precision == MD_FIXED ? links->largest[f] : 1.0;
  md_gauge_observables o;
  for (int p = 0; p < MD_PARITIES; p++)
    for (int mu = 0; mu < MD_DIMS; mu++)
      for (int64_t i = 0; i < run->links.geometry->sites; i++) {
        double u[MD_LINK_REALS];
        md_gauge_get(&links->field[f], p, mu, i, u);
        for (int c = 0; c < MD_LINK_REALS; c++) u[c] = scale * stored(precision, u[c] / scale);
        md_gauge_set(copy, p, mu, i, u);
      }
  MD_TRY(md_gauge_exchange(context, copy));
  MD_TRY(md_gauge_observe(context, copy, &o));
  add_row(context, run, links, f, precision, exact, &o);
  return MD_OK;
}

md_status md_validate_links(md_context *context, md_validate_run *run) {
  const md_backend_request request = {.action = run->links.action};
  md_links links;
  MD_TRY(md_request_links(context, &request, run->links.field, &links));
  const md_action_data *data = md_action_get(links.action);
  md_gauge copy = {0};
  if (data->special_unitary)
    md_say(context, "\nlinks    plaquette       drift       unitarity deviation\n");
  else
    md_say(context, "\nlinks            link trace       drift        plaquette       drift\n");
  md_status status = md_agree(context, md_gauge_create(context, run->links.geometry, &copy));
  for (int f = 0; f < data->fields && status == MD_OK; f++) {
    md_gauge_observables exact;
    status = md_gauge_observe(context, &links.field[f], &exact);
    for (int p = 0; p < MD_PRECISIONS && status == MD_OK; p++)
      status = links_in(context, run, &links, f, &exact, &copy, (md_precision)p);
  }
  md_gauge_destroy(&copy);
  return status;
}
