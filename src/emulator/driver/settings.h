// The user's settings for the emulated device and for how it runs work: the environment variables
// KLAP_EMULATOR_*, all of them in the table in settings.cpp.
#pragma once

#include <string>
#include <string_view>

#include "emulator/machine/machine.h"

namespace klap::emulator::driver {

struct Settings {
  MachineOptions machine;  // without the receivers of text
  uint32_t devices = 1;
  bool refuses_waits = false;      // code of dynamic parallelism version 1 that waits for children
  bool quiet = false;              // no line at the first use
  bool findings_are_fatal = true;  // a finding makes the context fail as a crashed kernel would
};

// All throw Error(Config) that names the variable and its possible values.
Settings settings_from_environment();
// `changes`: "SEED=3 SCHEDULE=random", separated by blanks, commas or semicolons; names as in the table.
void change_settings(Settings& settings, std::string_view changes);

// The table for people: one line a variable.
std::string describe_settings();

}  // namespace klap::emulator::driver
