#include "base/text.h"
#include "io/child.h"
#include "io/hdf5_lattice.h"

#include <string.h>

/* What miniDirac's lattice files say of themselves, as a child process found it out
 * (io/reader/describe.c). */

static void take_notes(md_h5_described *d, md_notes *notes) {
  for (int i = 0; i < d->record_count && i < MD_H5_RECORDS_MOST; i++) {
    md_record *r = &d->records[i], shown = *r;
    r->type[sizeof r->type - 1] = r->detail[sizeof r->detail - 1] = 0;
    md_printable(r->type, false, shown.type, sizeof shown.type);
    md_printable(r->detail, false, shown.detail, sizeof shown.detail);
    md_notes_record(notes, &shown);
  }
  for (int i = 0; i < d->departure_count && i < MD_H5_DEPARTURES_MOST; i++) {
    d->departures[i][sizeof *d->departures - 1] = 0;
    md_notes_departure(notes, "%s", d->departures[i]);
  }
}

/* The header as far as later steps rely on it: whatever went wrong in the child, sizes are those
 * that a file may have. */
static md_status take_header(md_context *context, const md_source *source, const md_h5_described *d,
                             md_lattice_header *header) {
  long long dims[MD_DIMS];
  *header = d->header;
  header->texts = NULL;
  header->provenance = NULL;
  for (int i = 0; i < MD_DIMS; i++) dims[i] = header->dims[i];
  MD_TRY(md_source_check_dims(context, source, dims, header));
  const int bytes = header->precision == MD_DOUBLE ? 8 : 4;
  if (header->site.rows != 3 || header->site.real_bytes != bytes || header->planes < 1)
    return md_fail(context, MD_INPUT, "%s is damaged: reading its header went astray",
                   source->path);
  md_h5_label_words words = d->label;
  words.links[sizeof words.links - 1] = words.phases[sizeof words.phases - 1] = 0;
  words.made[sizeof words.made - 1] = 0;
  return md_h5_take_label(context, source->path, &words, &header->label);
}

static md_status take_texts(md_context *context, const md_h5_described *d, md_file_texts *texts) {
  texts->lost = d->texts_lost;
  return md_file_texts_take(context, texts, d->texts,
                            d->texts_used < sizeof d->texts ? d->texts_used : sizeof d->texts);
}

md_status md_h5_lattice_describe(md_context *context, const md_source *source,
                                 md_lattice_header *header, md_notes *notes) {
  const md_child_request request = {.what = MD_CHILD_DESCRIBE_LINKS};
  md_child child;
  md_status status = md_child_start(context, source->path, sizeof(md_h5_described), &child);
  if (status == MD_OK) status = md_child_ask(context, &child, &request);
  if (child.shared) take_notes(child.shared, notes);
  if (status == MD_OK) status = take_header(context, source, child.shared, header);
  if (status == MD_OK) status = take_texts(context, child.shared, &notes->texts);
  md_child_stop(&child);
  return status;
}
