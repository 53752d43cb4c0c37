/* The GPUs of a report: each one once, in the order of ranks, with the ranks that share it; null
 * where no rank opened one. The device is made up, so that this needs none. */
#define md_machine_report report_of_made_up_device
#include "base/report.c"

#include "support.h"

static bool every_second; /* only odd ranks open one; else all do, two neighbours the same */
static bool none;

static void make_up_device(md_context *context) {
  md_device_facts *facts = &context->gpu;
  *facts = (md_device_facts){.open = !none && (!every_second || context->rank % 2 == 1)};
  if (!facts->open) return;
  facts->uuid[15] = (unsigned char)(context->rank / 2 + 1);
  snprintf(facts->name, sizeof facts->name, "GPU %d", context->rank / 2);
  facts->memory_bytes = 150000000000;
  facts->driver_cuda = 13010;
  facts->ecc = true;
}

static cJSON *gpus_of(md_context *context, cJSON **root) {
  *root = cJSON_CreateObject();
  make_up_device(context);
  assert_int_equal(md_machine_report(context, *root), MD_OK);
  return cJSON_GetObjectItem(cJSON_GetObjectItem(*root, "machine"), "gpu");
}

static void each_gpu_once(void **state) {
  md_context *context = *state;
  cJSON *root;
  none = every_second = false;
  const cJSON *gpus = gpus_of(context, &root);
  assert_int_equal(cJSON_GetArraySize(gpus), (context->ranks + 1) / 2);
  for (int g = 0; g < cJSON_GetArraySize(gpus); g++) {
    const cJSON *gpu = cJSON_GetArrayItem(gpus, g);
    char name[16];
    snprintf(name, sizeof name, "GPU %d", g);
    assert_string_equal(cJSON_GetObjectItem(gpu, "name")->valuestring, name);
    assert_int_equal(cJSON_GetObjectItem(gpu, "ranks")->valueint,
                     2 * g + 1 < context->ranks ? 2 : 1);
    assert_true(cJSON_GetObjectItem(gpu, "memory_bytes")->valuedouble == 150000000000.0);
    assert_string_equal(cJSON_GetObjectItem(gpu, "driver_cuda")->valuestring, "13.1");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(gpu, "ecc")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(gpu, "clock_mhz"))); /* not told */
  }
  cJSON_Delete(root);
}

static void ranks_without_one_do_not_count(void **state) {
  md_context *context = *state;
  cJSON *root;
  none = false;
  every_second = true;
  const cJSON *gpus = gpus_of(context, &root);
  assert_int_equal(cJSON_GetArraySize(gpus), context->ranks / 2);
  assert_int_equal(cJSON_IsNull(gpus), context->ranks < 2);
  if (context->ranks > 1)
    assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(gpus, 0), "ranks")->valueint, 1);
  cJSON_Delete(root);
}

static void no_gpu_is_null(void **state) {
  cJSON *root;
  none = true;
  assert_true(cJSON_IsNull(gpus_of(*state, &root)));
  cJSON_Delete(root);
}

static struct CMUnitTest tests[] = {
    cmocka_unit_test(each_gpu_once),
    cmocka_unit_test(ranks_without_one_do_not_count),
    cmocka_unit_test(no_gpu_is_null),
};
MD_RUN_TESTS(tests)
