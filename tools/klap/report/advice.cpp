#include "klap/report/advice.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "analysis/facts/rejection.h"
#include "runtime/launch_reasons.h"

namespace klap::tool {

namespace {

using analysis::Reason;
using runtime::LaunchReason;
namespace launch = runtime::reasons;

constexpr const char* kNothing = "Nothing: CUDA alone can run this launch.";
constexpr const char* kSend =
    "klap_jit does not know this code. An issue with the output of klap explain helps to teach it.";

// A reason without advice does not compile.
constexpr const char* help_of(Reason reason) {
  switch (reason) {
    case Reason::ConfigNone:
      return "Remove granularity none from the settings, the config file or the hints in the source.";
    case Reason::CalleeUnknown:
      return "Launch the kernel by its name, or choose between launches by an if, instead of calling it "
             "through a pointer.";
    case Reason::OldRuntime:
      return "Compile with CUDA 12 or newer, whose dynamic parallelism is version 2.";
    case Reason::ChildNotFound:
      return "Build the unit that defines the child with PTX, as nvcc does unless -gencode says otherwise.";
    case Reason::DebugBuild:
      return "Compile without -G; -lineinfo keeps the source lines.";
    case Reason::TargetTooNew:
      return "Compile PTX for the oldest GPU that the program is for, such as -gencode "
             "arch=compute_80,code=compute_80.";
    case Reason::TargetTooOld:
      return "Compile for compute_70 or newer.";
    case Reason::LaunchInFunction:
      return "Launch in the kernel itself, or call the function by its name and without recursion.";
    case Reason::NeverCalled:
      return "Nothing: this launch never happens.";
    case Reason::SeveralSites:
      return "See the other launch sites of this kernel: once they can be rewritten, so can this one.";
    case Reason::SiteInLoop:
      return "Define the kernel and all that it launches in one unit, or launch from more threads instead of "
             "in a loop.";
    case Reason::RuntimeCall:
      return "Move the other call of the CUDA runtime out of the kernel, for example to the host.";
    case Reason::ParentCallsUnknown:
    case Reason::ChildCallsUnknown:
      return "Call functions by their names, and give their units PTX.";
    case Reason::StreamUnsupported:
      return "Launch into the NULL stream, cudaStreamFireAndForget, or a stream that the thread creates and "
             "destroys.";
    case Reason::ParentWaits:
      return "Do not wait for a child in its parent: launch what follows from the host, or as a tail launch.";
    case Reason::OrderKept:
      return "If children never conflict in memory, say so: ordering = \"relaxed\".";
    case Reason::ParentFrees:
      return "Free the memory before the launch, or from the host.";
    case Reason::ParentCluster:
    case Reason::ChildCluster:
      return "Launch without clusters, if the kernel does not need them.";
    case Reason::ParentExits:
      return "Use launcher host, or let all threads of the parent reach the end of the kernel.";
    case Reason::ParameterSpace:
      return "Pass a pointer to a structure instead of the structure.";
    case Reason::DynamicSharedMemory:
      return "Launch with a constant amount of dynamic shared memory, or less of it.";
    case Reason::BlockNotConstant:
      return "Launch with a block size that is a constant.";
    case Reason::BlockRefused:
      return "Launch with a block of at most 1,024 threads: natively this launch fails.";
    case Reason::ArgumentMismatch:
      return "Pass arguments of the child's own parameter types.";
    case Reason::ChildLaunches:
      return "Use launcher host, which takes children that launch kernels of their own unit.";
    case Reason::ChildBarrier:
    case Reason::ChildWarpSync:
      return "Let all threads of the child reach its barriers and warp operations, without an early return "
             "before them.";
    case Reason::ChildTexture:
      return "Read through pointers, with __ldg() where that helps, instead of textures and surfaces.";
    case Reason::ChildSharedMemory:
      return "Declare the shared memory in the unit of the child.";
    case Reason::ChildSpecialRegister:
      return "Do not read registers such as the clock, the multiprocessor's number or the grid's id in the "
             "child.";
    case Reason::ChildParameterUse:
      return "Do not take the address of parameters in the child.";
    case Reason::ChildWaits:
      return "Do not wait for other blocks in the child.";
    case Reason::ChainForm:
      return "Launch the next link once, at the end of the kernel, and from one thread.";
    case Reason::UnitOptions:
      return "Compile the unit with the options of the others.";
    case Reason::BuildFailed:
      return "Run klap doctor. KLAP_LOG=info says what failed.";
    case Reason::NotUnderstood:
    case Reason::ChildInstruction:
      return kSend;
  }
  return kSend;
}

constexpr const char* kMorePool =
    "Give the queues more memory: pool_bytes for one of them, total_bytes for all.";
constexpr const char* kLessMemory = "Leave more of the device's memory free, or lower pool_bytes.";
constexpr const char* kNoGraph =
    "Launch into a stream that is not being captured, or see the log (KLAP_LOG=info) for what the driver "
    "refuses.";
constexpr const char* kSmaller = "Launch the parent in smaller blocks.";
constexpr const char* kOptions = "Launch without this option or attribute, if the kernel does not need it.";
constexpr const char* kSameContext = "Launch in the CUDA context in which the kernel was loaded.";
constexpr const char* kFaulty =
    "Look for the first error of the program, for example with compute-sanitizer.";
constexpr const char* kWrongCall = "Correct the launch: natively it fails, too.";

constexpr std::pair<const LaunchReason*, const char*> kLaunchHelp[] = {
    {&launch::kCooperativeLaunch, kNothing},
    {&launch::kClusterLaunch, kOptions},
    {&launch::kLaunchAttribute, kOptions},
    {&launch::kEmptyGrid, kWrongCall},
    {&launch::kTooManyThreads, "Launch the parent in several smaller grids."},
    {&launch::kStreamCapture, kNoGraph},
    {&launch::kCaptured, "Nothing: its graph is rewritten as a whole."},
    {&launch::kParentsInGraphs, kNoGraph},
    {&launch::kGraphNotCopied, kNoGraph},
    {&launch::kGraphForDevice, kNoGraph},
    {&launch::kGraphEdge, kNoGraph},
    {&launch::kLaunchesInGraph, "Use launcher host for this kernel."},
    {&launch::kSlicesInGraph, kMorePool},
    {&launch::kNoCurrentContext, kWrongCall},
    {&launch::kUnknownStream, kWrongCall},
    {&launch::kHandleOfAnotherContext, kSameContext},
    {&launch::kStreamOfAnotherContext, kSameContext},
    {&launch::kQueueOverPoolBytes, kMorePool},
    {&launch::kQueuesOverTotalBytes, kMorePool},
    {&launch::kQueuesOverShare, kLessMemory},
    {&launch::kFewerBlocksResident,
     "Do not wait for other blocks in the parent, or launch it in fewer blocks."},
    {&launch::kQueueUnderLimit, kMorePool},
    {&launch::kNoDeviceMemory, kLessMemory},
    {&launch::kTooManyInFlight, "Synchronise now and then, or do not let kernels wait for the host."},
    {&launch::kQueueNotWritable, kFaulty},
    {&launch::kEventNotRecorded, kFaulty},
    {&launch::kMissingHandle, kSend},
    {&launch::kChildBlock, "Launch the child in smaller blocks, or give it __launch_bounds__."},
    {&launch::kSharedLimit, "Set the child's limit of dynamic shared memory to what its launches ask for."},
    {&launch::kNotTheConsumersBlock,
     "Launch the parent in blocks of full warps that are as large as its children's."},
    {&launch::kOrderMatters, "If children never conflict in memory, say so: ordering = \"relaxed\"."},
    {&launch::kConsumerBlock, "Launch the child in smaller blocks, or give it __launch_bounds__."},
    {&launch::kConsumerDoesNotFit, "Launch the child in smaller blocks, or with less shared memory."},
    {&launch::kConsumerDoesNotLaunch, kFaulty},
    {&launch::kConsumerFailed, kFaulty},
    {&launch::kNotTheChainsForm,
     "Launch the chain always in the same block and with the same shared memory."},
    {&launch::kChainDoesNotFit, "Launch the chain in smaller blocks, or with less shared memory."},
    {&launch::kParentBlock, kSmaller},
    {&launch::kOriginalIsFaster,
     "Nothing: this is the faster way. klap tune may find a setting that is faster."},
    {&launch::kOriginalIsTried, "Nothing: a few launches are measured so that the faster way runs later."},
    {&launch::kOriginalIsAskedFor, "Nothing: a native run (klap run --native) is to measure just this."},
    {&launch::kBothParameterForms, kWrongCall},
    {&launch::kParametersMissing, kWrongCall},
    {&launch::kUnknownLaunchOption, kOptions},
    {&launch::kVariantDoesNotLaunch,
     "Launch the parent in smaller blocks. KLAP_LOG=info has the driver's error."},
    {&launch::kContextFailed, kFaulty}};

constexpr bool has_help(const LaunchReason* reason) {
  return std::ranges::any_of(kLaunchHelp, [=](const auto& row) { return row.first == reason; });
}
#define KLAP_LAUNCH_REASON(identifier, text, meaning) \
  static_assert(has_help(&launch::identifier), text " needs advice");
KLAP_LAUNCH_REASONS(KLAP_LAUNCH_REASON)
#undef KLAP_LAUNCH_REASON

Advice unknown_advice(std::string_view reason) {
  return {std::string(reason),
          "Use the klap that belongs to the library: this reason is of another version."};
}

}  // namespace

Advice site_advice(std::string_view reason) {
#define KLAP_REASON(name, text, meaning) \
  if (reason == text) return {meaning, help_of(Reason::name)};
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  return unknown_advice(reason);
}

Advice launch_advice(std::string_view reason) {
  for (const auto& [known, help] : kLaunchHelp)
    if (reason == known->name) return {known->meaning, help};
  return unknown_advice(reason);
}

}  // namespace klap::tool
