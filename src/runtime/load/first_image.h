// The steps that klap_jit takes once in a process, before it examines the first image.
#pragma once

namespace klap::runtime {

// Called before the first image is examined: guards against forks and, with KLAP_STATS, arranges for the
// statistics to be written at exit. Profiles of launches
// (parents/guard_profiles.h) are written then, too, if any are kept.
void first_image_loaded();

}  // namespace klap::runtime
