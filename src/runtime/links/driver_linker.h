// The driver's own linker (cuLink*), for machines without nvJitLink and for drivers that take no machine
// code.
//
// nvJitLink is part of the toolkit, and its version may be older than the driver. Every driver has a linker
// too, with fewer options. Units that were built with an option that it cannot express are rejected.
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
  // Only opening nvJitLink tells which one it is. The answer stays the same in the whole process.
  [[nodiscard]] std::string_view name() const override { return jit::kNvJitLink; }
};

// The linker of the settings, null for nvJitLink alone. Lives as long as the process.
const jit::Linker* chosen_linker(settings::LinkerChoice choice);

// False for an emulated driver, which runs PTX.
bool takes_machine_code();

}  // namespace klap::runtime
