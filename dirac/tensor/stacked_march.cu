#include "dirac/tensor/march_one.cuh"

/* Packing `stacked` of quarks without spin and with one link field as a march along t. */
namespace stacked {

struct one_link_field {
  static constexpr int warps = MARCH_WARPS;
  static constexpr bool waits = true;
  using stage = stacked::stage;
  template <typename T, ending END, coverage COVER>
  using registers =
      std::conditional_t<COVER == coverage::waiting || (storage<T>::scaled && !leaves_norms<END>),
                         register_shares<0, 0>, register_shares<64, 104>>;
  template <typename T, coverage COVER, bool NARROW>
  using feeder = stacked::feeder<storage<T>::scaled, COVER, NARROW>;
  template <typename T, int RHS, ending END, coverage COVER>
  using computer = stacked::computer<T, worker<T, RHS, END, 1>, COVER>;
};

} // namespace stacked

md_status md_tensor_march(md_context *context, const md_tensor_call *call,
                          const md_march_plan *plan) {
  return plan->fields == 1 ? stacked::march_with<stacked::one_link_field>(context, call, plan)
                           : md_tensor_march_long(context, call, plan);
}
