// Settings that are each valid, but of which one leaves another without effect.
#pragma once

#include <optional>

#include "settings/config.h"
#include "support/error.h"

namespace klap::settings {

// The first contradiction between settings that somebody gives; a default contradicts nothing. The library
// follows one of the two. The tools refuse both, as nobody knows which one was meant.
std::optional<Error> find_contradiction(const Config& config);

}  // namespace klap::settings
