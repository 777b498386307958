// One site remark as JSON, for KLAP_STATS as for klap-ptx explain --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "jit/data/remark.h"
#include "support/json.h"

namespace klap::runtime {

Json remark_json(const jit::SiteRemark& remark);
nlohmann::json to_json(const jit::SiteRemark& remark);

}  // namespace klap::runtime
