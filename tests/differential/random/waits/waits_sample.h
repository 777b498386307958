// Random programs that wait, as samples for a campaign.
#pragma once

#include <memory>

#include "random/sample.h"
#include "random/waits/program.h"

namespace klap::differential::waits {

Case to_case(const Program& program);

std::unique_ptr<random::Sample> make_sample(Program program);

}  // namespace klap::differential::waits
