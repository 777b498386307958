// Why a launch site is left as it is: the one documented list of reasons.
//
// The short names are stable: they appear in the log, in `klap-ptx explain`, in KLAP_STATS and in tests.
#pragma once

namespace klap::analysis {

// X(enumerator, "short-name", "what it means")
#define KLAP_REASONS(X)                                                                                      \
  X(ConfigNone, "config-none", "the configuration asks for granularity none")                                \
  X(NotUnderstood, "not-understood", "the launch sequence has a form that is not known")                     \
  X(CalleeUnknown, "callee-unknown", "which kernel is launched cannot be told from the code")                \
  X(OldRuntime, "old-runtime", "the launch is one of dynamic parallelism version 1")                         \
  X(ChildNotFound, "child-not-found", "the child's PTX is not part of the program")                          \
  X(DebugBuild, "debug-build", "the unit was compiled for debugging (-G)")                                   \
  X(TargetTooNew, "target-too-new",                                                                          \
    "the PTX is for a newer target, and needs it or may mean other code than the program has for this "      \
    "device")                                                                                                \
  X(TargetTooOld, "target-too-old",                                                                          \
    "the PTX is for a target before sm_70, where the threads of a warp run in lockstep")                     \
  X(LaunchInFunction, "launch-in-function", "the launch stands in a called function")                        \
  X(NeverCalled, "never-called", "the launch stands in a function that nothing calls")                       \
  X(SeveralSites, "several-sites", "the parent has other launch sites that this one depends on")             \
  X(SiteInLoop, "site-in-loop", "the launch stands in a loop")                                               \
  X(RuntimeCall, "runtime-call", "the parent makes another device-runtime call")                             \
  X(ParentCallsUnknown, "parent-calls-unknown", "the parent calls code that cannot be seen")                 \
  X(StreamUnsupported, "stream-unsupported",                                                                 \
    "the launch uses a stream other than NULL, per-thread, fire-and-forget")                                 \
  X(ParentWaits, "parent-waits", "the parent may wait for its children")                                     \
  X(OrderKept, "order-kept",                                                                                 \
    "launches of a block's threads run one after another in its NULL stream, and the rewrite that the site " \
    "would need cannot keep that order")                                                                     \
  X(ParentFrees, "parent-frees", "the parent may free memory after the launch")                              \
  X(ParentCluster, "parent-cluster", "the parent is launched in clusters")                                   \
  X(ParentExits, "parent-exits",                                                                             \
    "launcher device: a thread of the parent may end without being counted, or while others wait for it")    \
  X(ParameterSpace, "parameter-space",                                                                       \
    "the parent's parameters leave no room for one more, or (warp) not two children's fit into one launch")  \
  X(DynamicSharedMemory, "dynamic-shared-memory",                                                            \
    "the launch passes dynamic shared memory whose size is not constant, or too much of it")                 \
  X(BlockNotConstant, "block-not-constant", "the child's block size is not constant")                        \
  X(BlockRefused, "block-refused", "CUDA refuses the child's block size")                                    \
  X(ArgumentMismatch, "argument-mismatch", "the stored arguments do not fit the child's parameters")         \
  X(ChildLaunches, "child-launches", "the child calls the device runtime")                                   \
  X(ChildBarrier, "child-barrier",                                                                           \
    "the child has a barrier of a cluster, or one that blocks which run one after another cannot keep")      \
  X(ChildWarpSync, "child-warp-sync",                                                                        \
    "the child has warp operations that blocks which run one after another cannot keep")                     \
  X(ChildTexture, "child-texture", "the child reads or writes textures or surfaces")                         \
  X(ChildSharedMemory, "child-shared-memory", "the child uses shared memory of another unit")                \
  X(ChildSpecialRegister, "child-special-register",                                                          \
    "the child reads a special register that cannot be replaced")                                            \
  X(ChildCallsUnknown, "child-calls-unknown",                                                                \
    "the child calls code that cannot be seen or that depends on its place")                                 \
  X(ChildInstruction, "child-instruction",                                                                   \
    "the child has an instruction that is not on the list of safe ones")                                     \
  X(ChildParameterUse, "child-parameter-use",                                                                \
    "the child uses its parameters or its place in a way that cannot be redirected")                         \
  X(ChildCluster, "child-cluster", "the child is launched in clusters")                                      \
  X(ChildWaits, "child-waits", "the child may wait for other blocks")                                        \
  X(ChainForm, "chain-form",                                                                                 \
    "the kernel launches itself, but not as a chain of links that could stay resident")                      \
  X(UnitOptions, "unit-options", "the unit's build options cannot be kept in the link")                      \
  X(BuildFailed, "build-failed", "the rewritten code could not be built")

enum class Reason {
#define KLAP_REASON(name, text, meaning) name,
  KLAP_REASONS(KLAP_REASON)
#undef KLAP_REASON
};

const char* to_string(Reason reason);
const char* meaning(Reason reason);

}  // namespace klap::analysis
