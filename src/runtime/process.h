// State of the whole process: settings, whether klap_jit is active at all, and the steps at exit.
//
// Nothing here runs before the program first touches CUDA through a hooked function. Objects are leaked on
// purpose. CUDA programs unload modules from exit handlers, after static destructors of this library would
// have run. The hooks must still find their tables then.
#pragma once

#include <string>

#include "settings/config.h"

namespace klap::runtime {

// The settings, read on first use; sets the log level and logs what is wrong with them.
const settings::Config& config();

// False when every hook must only forward. Either KLAP_DISABLE is set, or this is a forked child of a process
// that had already loaded device code. CUDA does not work in such a child, and locks of the parent's other
// threads would stay taken for ever.
bool active() noexcept;

// Called before the first image is examined: guards against forks and, with KLAP_STATS, arranges for the
// statistics to be written at exit.
void first_image_loaded();

// A page of host memory that the device writes to, counted into the statistics at exit. The page is mapped
// for this alone: pinned memory may not be inherited across fork, so it must not share a page with anything.
// Null when there is no memory, or statistics of children are not asked for.
void* new_report_page();
size_t report_page_bytes();
// Places of KLAP_REPORT_WORDS words in a page, one for each stream (templates/common/report.h).
size_t report_slots();

}  // namespace klap::runtime
