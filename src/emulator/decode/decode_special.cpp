// One table for both directions.
#include "emulator/decode/decode_special.h"

#include <array>

namespace klap::emulator {

namespace {

struct Row {
  std::string_view name;
  Special first;
  bool has_components = false;
};

constexpr std::array kRows = std::to_array<Row>({
    {"%tid", Special::TidX, true},
    {"%ntid", Special::NtidX, true},
    {"%ctaid", Special::CtaidX, true},
    {"%nctaid", Special::NctaidX, true},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NwarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NsmId},
    {"%gridid", Special::GridId},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_ge", Special::LanemaskGe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%clock", Special::Clock},
    {"%clock_hi", Special::ClockHi},
    {"%clock64", Special::Clock64},
    {"%globaltimer", Special::GlobalTimer},
    {"%globaltimer_lo", Special::GlobalTimerLo},
    {"%globaltimer_hi", Special::GlobalTimerHi},
    {"%dynamic_smem_size", Special::DynamicSmemSize},
    {"%total_smem_size", Special::TotalSmemSize},
    {"%aggr_smem_size", Special::AggrSmemSize},
    {"%is_explicit_cluster", Special::IsExplicitCluster},
    {"%clusterid", Special::ClusterIdX, true},
    {"%nclusterid", Special::NclusterIdX, true},
    {"%cluster_ctaid", Special::ClusterCtaidX, true},
    {"%cluster_nctaid", Special::ClusterNctaidX, true},
    {"%cluster_ctarank", Special::ClusterCtarank},
    {"%cluster_nctarank", Special::ClusterNctarank},
    {"%current_graph_exec", Special::CurrentGraphExec},
});

}  // namespace

std::optional<Special> find_special(std::string_view name, std::string_view component) {
  for (const Row& row : kRows) {
    if (row.name != name || row.has_components == component.empty()) continue;
    if (component.empty()) return row.first;
    const bool known = component == ".x" || component == ".y" || component == ".z";
    if (!known) return std::nullopt;
    return static_cast<Special>(static_cast<int>(row.first) + (component[1] - 'x'));
  }
  return std::nullopt;
}

std::string special_name(Special special) {
  for (const Row& row : kRows) {
    const int component = static_cast<int>(special) - static_cast<int>(row.first);
    if (component < 0 || component > (row.has_components ? 2 : 0)) continue;
    std::string out(row.name);
    if (row.has_components) out += {'.', static_cast<char>('x' + component)};
    return out;
  }
  return "?";
}

}  // namespace klap::emulator
