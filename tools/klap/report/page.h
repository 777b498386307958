// The report as one page of HTML that needs no other file and no network.
#pragma once

#include <string>

#include "klap/report/baseline.h"
#include "klap/statistics.h"

namespace klap::tool {

std::string html_page(const Statistics& all, const Baseline& baseline);

}  // namespace klap::tool
