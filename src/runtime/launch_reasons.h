// Reasons why a launch of a rewritten parent runs the original. This is the one documented list, as
// analysis/facts/reasons.def is for launch sites.
//
// The names are stable: they appear in the log at level debug, in KLAP_STATS and in tests. A reason is passed
// around as a pointer to its entry, null meaning that there is none. So a text that is not on the list does
// not compile.
#pragma once

#include <span>

namespace klap::runtime {

// X(identifier, "name", "what it means")
#define KLAP_LAUNCH_REASONS(X)                                                                               \
  X(kCooperativeLaunch, "cooperative launch", "the parent is launched cooperatively")                        \
  X(kClusterLaunch, "cluster launch", "the parent is launched in clusters")                                  \
  X(kLaunchAttribute, "launch attribute",                                                                    \
    "the launch has an attribute that may mean something else for other kernels")                            \
  X(kEmptyGrid, "empty grid", "an extent of the grid or block is 0; the driver refuses the launch itself")   \
  X(kTooManyThreads, "too many threads",                                                                     \
    "the grid has more than 16,777,215 threads and is launched as a whole")                                  \
  X(kStreamCapture, "stream capture", "the stream is being captured into a graph")                           \
  X(kCaptured, "captured",                                                                                   \
    "the launch becomes a node of a graph, which is rewritten when it is instantiated")                      \
  X(kParentsInGraphs, "parents in graphs", "a graph of this context launches a parent as it is")             \
  X(kGraphNotCopied, "graph cannot be copied",                                                               \
    "the driver refuses to copy, change or instantiate it, as with nodes of some kinds")                     \
  X(kGraphForDevice, "graph for the device", "the graph is instantiated to be launched by kernels")          \
  X(kGraphEdge, "programmatic edge", "the node begins before another one ends, or lets one begin early")     \
  X(kLaunchesInGraph, "children launched by the device",                                                     \
    "the variant launches kernels itself, which graphs are not known to replay rightly")                     \
  X(kSlicesInGraph, "slices in a graph", "the queue has no room for all that the node may record")           \
  X(kNoCurrentContext, "no current context", "the calling thread has no CUDA context")                       \
  X(kUnknownStream, "unknown stream", "the driver does not know the stream")                                 \
  X(kHandleOfAnotherContext, "handle of another context", "the kernel handle belongs to another context")    \
  X(kStreamOfAnotherContext, "stream of another context", "the stream belongs to another context")           \
  X(kQueueOverPoolBytes, "queue over pool_bytes",                                                            \
    "the records could need more memory than pool_bytes, and the grid is not cut further")                   \
  X(kQueuesOverTotalBytes, "queues over total_bytes",                                                        \
    "all queues together would take more than total_bytes, and the grid is not cut further")                 \
  X(kQueuesOverShare, "queues over their share",                                                             \
    "all queues together would take more than an eighth of the device's free memory")                        \
  X(kFewerBlocksResident, "fewer blocks resident",                                                           \
    "the parent may wait for other blocks, and not as many of its variant's run at a time")                  \
  X(kQueueUnderLimit, "queue under the pending limit",                                                       \
    "launches that keep their order need a queue of at least as many as CUDA lets wait")                     \
  X(kNoDeviceMemory, "no device memory", "the device has no memory for the record queue")                    \
  X(kTooManyInFlight, "too many launches under way",                                                         \
    "behind work that does not end, the driver's queue is kept free for the program's own launches")         \
  X(kQueueNotWritable, "queue not writable", "the head of the record queue could not be written")            \
  X(kEventNotRecorded, "event not recorded", "an earlier use of this stream's queue could not be recorded")  \
  X(kMissingHandle, "missing handle", "the loaded image does not give out a kernel of the variant")          \
  X(kChildBlock, "child block over the child's limit", "the child cannot run in blocks of its size")         \
  X(kSharedLimit, "other limit of shared memory",                                                            \
    "the program allows a child more dynamic shared memory than the variant knows of, or less")              \
  X(kNotTheConsumersBlock, "not the consumer's block",                                                       \
    "children with barriers have blocks like the parent's, which is not of full warps or is too small")      \
  X(kOrderMatters, "order matters here",                                                                     \
    "in this block or grid, or with these pointers, the order of launches may matter that the variant does " \
    "not keep")                                                                                              \
  X(kConsumerBlock, "consumer block over its limit", "the consumer cannot run in blocks of its size")        \
  X(kConsumerDoesNotFit, "consumer does not fit the device", "not one block of the consumer fits")           \
  X(kConsumerDoesNotLaunch, "consumer does not launch", "the consumer failed on an empty queue")             \
  X(kConsumerFailed, "consumer failed earlier in this stream", "recorded children were lost with an error")  \
  X(kNotTheChainsForm, "not the chain's form",                                                               \
    "the chain was promoted for one block of another size, or with other shared memory")                     \
  X(kChainDoesNotFit, "chain does not fit the device", "not one block of the promoted chain fits")           \
  X(kParentBlock, "block over the variant's limit", "the launch's block is too large for the variant")       \
  X(kOriginalIsFaster, "original is faster", "the original was found to be faster (KLAP_GUARD)")             \
  X(kOriginalIsTried, "original is tried", "the original is measured, to compare it (KLAP_GUARD)")           \
  X(kOriginalIsAskedFor, "original is asked for", "KLAP_GUARD=original runs every parent as it is")          \
  X(kBothParameterForms, "both parameter forms", "parameters were given both as an array and as a buffer")   \
  X(kParametersMissing, "parameters missing", "fewer parameters were given than the parent has")             \
  X(kUnknownLaunchOption, "unknown launch option", "the launch has an extra option that is not known")       \
  X(kVariantDoesNotLaunch, "variant does not launch", "the driver refused the variant")                      \
  X(kContextFailed, "context failed", "an earlier kernel ended with an error, which every call returns")

struct LaunchReason {
  const char* name;
  const char* meaning;
};

// A reason, or null if there is none.
using MaybeReason = const LaunchReason*;

namespace reasons {
#define KLAP_LAUNCH_REASON(identifier, text, meaning) inline constexpr LaunchReason identifier{text, meaning};
KLAP_LAUNCH_REASONS(KLAP_LAUNCH_REASON)
#undef KLAP_LAUNCH_REASON
}  // namespace reasons

// All reasons, in the order of the list.
std::span<const LaunchReason> launch_reasons();

}  // namespace klap::runtime
