// The settings that `klap-ptx tune` found for the kernels of one program, on one kind of GPU.
//
// They stand in the cache's folder as the text of a config file, so that they can be read and changed. The
// file's name is the hash of the program's code and options, of the GPU's model and of its number of
// multiprocessors. So another build of the program, and another GPU, never find it. Another build of klap_jit
// does: what settings mean does not change. They give way to all that a user says (config.h).
#pragma once

#include <memory>
#include <string>

#include "jit/data/unit.h"
#include "settings/config.h"

namespace klap::runtime {

struct TunedSettings {
  std::string file;  // its name in the cache's folder; empty where none is looked for
  // The settings of the process, and those of the file if it is there.
  std::shared_ptr<const settings::Config> config;
  bool is_found = false;
};

// Finds the settings for a program that is loaded for the current device, or for every one. Never throws for
// a file that is broken: that is one line in the log.
TunedSettings tuned_settings(const jit::Program& program, bool every_device);

}  // namespace klap::runtime
