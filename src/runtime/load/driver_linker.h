// The driver's own linker (cuLink*), for machines without nvJitLink and for drivers that take no machine
// code.
//
// nvJitLink is part of the toolkit, and its version may be older than the driver. Every driver has a linker
// too, with fewer options: units that were built with one that it cannot express are left.
//
// A driver that takes no machine code (one that interprets PTX) says so when it is given some. From then on
// it is given PTX only.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "jit/data/linker.h"
#include "settings/config.h"

namespace klap::runtime {

class DriverLinker : public jit::Linker {
 public:
  // Throws Error(Link) with the driver's log, Error(Unsupported) for an option that the driver does not have.
  [[nodiscard]] std::string link(const std::vector<jit::LinkInput>& inputs,
                                 const std::vector<std::string>& options) const override;
  [[nodiscard]] std::string_view name() const override { return "driver"; }
};

// nvJitLink where it can be opened, else the driver.
class AvailableLinker : public jit::Linker {
 public:
  [[nodiscard]] std::string link(const std::vector<jit::LinkInput>& inputs,
                                 const std::vector<std::string>& options) const override;
  // Which one it is can be told only by opening nvJitLink, and stays as it is in the whole process.
  [[nodiscard]] std::string_view name() const override { return jit::kNvJitLink; }
};

// The linker of the settings, null for nvJitLink alone. Lives as long as the process.
const jit::Linker* chosen_linker(settings::LinkerChoice choice);

// Whether the driver takes machine code, as far as this process knows.
bool takes_machine_code();
// Notes the answer of a driver that was given machine code.
void note_machine_code_result(CUresult result);

}  // namespace klap::runtime
