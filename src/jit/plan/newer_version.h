// Programs of dynamic parallelism version 1, made ones of version 2 before anything else is done with them.
//
// CUDA refuses version 1 for devices of compute capability 9.0 and later. So such a program has no machine
// code for these, and all of it comes from its PTX.
//
// Version 2 has no waits for children. Kernels that wait are split there
// (transform/suspension/split_kernel.h).
//
// Version 1 has room for any number of launches that wait, and version 2 loses those beyond a limit. So all
// launches of the program must be rewritten, or it stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"

namespace klap::jit {

// A wait at which a kernel is split, for a reader.
struct KernelWait {
  std::string kernel, text;
};

// Programs of version 2 may wait, too, by klap::device_synchronize() (include/klap/annotate.cuh). They are
// split in the same way, for every device.
struct NewerVersion {
  std::optional<Program> program;  // nothing if it cannot be one of version 2
  bool is_changed = false;         // it is of version 1
  std::vector<KernelWait> waits;
  bool stops_at_polls = false;  // some of its kernels poll, and stop there
  std::string problem;          // why it cannot be; empty if it is not of version 1, or can run as it is
};

// Loops that poll for what children write (analysis/suspension/polls.h) may stay, or be waits. A kernel that
// stops there may do so where it would not have had to wait.
enum class Polls : uint8_t { Stay, AreWaits };

// The program in version 2, for a device of compute capability `sm`. Throws Error(Parse).
NewerVersion in_newer_version(const Program& program, uint32_t sm, Polls polls = Polls::Stay);

// The requests by which all launches of such a program may be rewritten, the better one first. The second one
// is free to choose what launches and at what granularity, whatever the settings say: the program cannot run
// any other way.
std::vector<Request> requests_for_all_launches(const Request& request);

// True if no launch is left but those in functions that nobody calls. Says of all launches that they are of
// version 1, and where their kernels wait.
bool all_run_in_newer_version(std::vector<SiteRemark>& remarks, const NewerVersion& version);

// Says of launches that stay in version 1 why they do: because of `version`, or of a launch that would be
// left among `newer`, which are those in version 2.
void note_why_older(std::vector<SiteRemark>& remarks, const NewerVersion& version,
                    const std::vector<SiteRemark>& newer);

}  // namespace klap::jit
