#include "klap_ptx/tune/counter_metrics.h"

#include "settings/values.h"

namespace klap::tool {

const std::vector<std::string>& default_metrics() {
  static const std::vector<std::string> all = {"smsp__inst_executed.sum",
                                               "smsp__thread_inst_executed_per_inst_executed.ratio",
                                               "smsp__issue_active.avg.pct_of_peak_sustained_active",
                                               "sm__warps_active.avg.pct_of_peak_sustained_active",
                                               "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
                                               "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                               "dram__bytes.sum",
                                               "l1tex__t_sector_hit_rate.pct",
                                               "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                               "lts__t_sectors.sum",
                                               "lts__t_sectors_op_atom.sum",
                                               "lts__t_sectors_op_red.sum"};
  return all;
}

std::optional<std::vector<std::string>> parse_counters(const std::string& text) {
  if (text == "none") return std::vector<std::string>();
  std::vector<std::string> metrics = settings::parse_metrics(text);
  return metrics.empty() ? std::nullopt : std::optional(std::move(metrics));
}

}  // namespace klap::tool
