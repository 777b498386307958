// The pipeline, as one call: program image in, linked image with originals and variants out.
//
// rewrite_module() is a list of passes: take the image apart, parse the units that launch kernels, find the
// launch sites, decide, build the variants from templates, link them with the program's own machine code, and
// check what came out. klap-ptx, the tests and the shim all call it; none of them knows more than this
// header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/granularity.h"
#include "container/image.h"
#include "jit/generate/linker.h"
#include "jit/generate/stage.h"

namespace klap::jit {

class DiskCache;

using analysis::Granularity;
using analysis::Launcher;
using analysis::Ordering;
using analysis::to_string;

// One translation unit as it comes out of the container, with everything decompressed that may be needed.
struct Unit {
  std::string name;          // for messages: "unit 0", or the file's name
  std::string ptx;           // for this target or, where the unit carries none, for another; may be empty
  std::string options;       // ptxas options of the PTX entry
  std::string cubin;         // relocatable machine code for the target, empty when there is none
  char cubin_suffix = '\0';  // 'a' or 'f' of the machine code's target, as in sm_90a
  bool is_device_runtime = false;
  bool launches = false;  // container::mentions_device_launch
};

struct Program {
  std::vector<Unit> units;
  // Set when the image carries no device runtime of its own (a bare PTX module): where to find
  // libcudadevrt.a.
  std::string device_runtime_archive;
  // The driver has the device runtime built in (it takes no machine code, in which that comes): none is
  // linked.
  bool built_in_runtime = false;
};

// Where the memory of a launch's queues is from: kept in the stream for its next launches, or allocated for
// the launch alone.
enum class Buffer : uint8_t { Pool, Malloc };

// Blocks that launch as one at granularity multiblock where nobody says how many.
inline constexpr uint32_t kMultiBlock = 16;

// A value that the caller's settings give, and who gives it: "environment", "config file".
struct GivenValue {
  std::string text, place;
};

// What the caller wants to have done. `granularity` is asked once per parent kernel with its mangled name.
struct Request {
  uint32_t sm = 90;  // compute capability of the device, 90 for 9.0
  // The value of a key (granularity, launcher, multiblock, consumer_threads, buffer, pack_records, flatten,
  // threshold, promotion, assume) for launches of `child`, empty where it is not known, by `parent`. Nothing
  // where the settings do not give it: then the program's own annotation holds, else `auto`. Where one of the
  // three below is set it decides alone.
  std::function<std::optional<GivenValue>(std::string_view key, const std::string& parent,
                                          const std::string& child)>
      setting;
  std::function<Granularity(const std::string& parent)> granularity;
  std::function<Launcher(const std::string& parent)> launcher;  // the same; Auto when not set
  // Blocks of a group at granularity multiblock, 2 or more; kMultiBlock when not set.
  std::function<uint32_t(const std::string& parent)> multiblock;
  std::function<Ordering(const std::string& parent)> ordering;  // the same; Auto when not set
  // Whether the caller can run variants whose queue has a size of its own (ChildQueue::feeds).
  bool feeding = true;
  // Whether queues may have two heads.
  bool two_heads = true;
  // Whether the caller can run variants of granularity warp. If not, that counts as none.
  bool sharing = true;
  // Whether the caller can run variants that take a slice (Variant::in_slices).
  bool slicing = true;
  // Whether the caller can run variants made for some blocks and grids only (Variant::block).
  bool blocks = true;
  // Whether the caller can run promoted chains (Variant::promoted).
  bool promoting = true;
  // Whether the image may have CUDA's device runtime. If not, a launch that is left ends its kernel with an
  // error (transform/aggregate/no_runtime.h).
  bool device_runtime = true;
  bool debug_units = false;  // rewrite units that were compiled for debugging (-G), too
  // Receives every stage of every pass. When set, the disk cache is not used: it has only the last stage.
  Dump dump{};
  const Linker* linker = nullptr;  // null: nvJitLink
  // Where finished modules are kept between processes; null for nowhere.
  DiskCache* cache = nullptr;
  // With `cache`: all settings that the functions above follow, as text, for the cache's key.
  std::string configuration;
};

// What became of one launch site.
struct SiteRemark {
  std::string unit, parent, child;  // child empty when the callee is not known
  int line = 0, column = 0;         // of the launch's first call in the unit's PTX
  bool rewritten = false;
  std::string granularity;         // rewritten: "grid", "block", "multiblock", "warp", "promotion"
  std::string launcher;            // rewritten: "host" or "device"
  uint32_t group_blocks = 0;       // rewritten: as in analysis::Way
  std::string reason;              // left: stable short name of the reason, from analysis/facts/reasons.def
  std::string detail;              // one sentence: the deciding facts, or why the reason applies
  std::vector<std::string> notes;  // relaxations and the like
};

// A kernel that a consumer runs, and the threads of its blocks there.
struct ChildKernel {
  std::string name;
  uint32_t block_threads = 0;
};

// A kernel of a consumer some of whose blocks follow the one that the parent is launched with.
struct FollowingBlock {
  std::string kernel;
  std::array<uint32_t, 3> block{};  // an extent of 0 is that of the parent's block
  // What must hold of a launch: the consumer has no more threads than this kernel, whose threads meet; its
  // warps are full.
  bool fills = false, full_warps = false;
};

// What one launch site of a rewritten parent records into; all its sites where the queue has a size of its
// own.
struct ChildQueue {
  std::string child;
  // Runs all recorded children. Launcher host: its one 8-byte parameter is the queue. Launcher device: the
  // parent's variant launches it, nobody else may.
  std::string consumer;
  uint32_t record_bytes = 0;  // one record: header, arguments, padding
  uint32_t consumer_block_threads = 0;
  uint32_t child_block_threads = 0;
  uint32_t child_shared_bytes = 0;  // dynamic shared memory of each child
  // How many children there will be is not known, because they launch again or because their launch stands in
  // a loop: the queue is a KlapFeed (templates/worklist/feed.h), of a size of its own, whatever the parent's
  // grid.
  bool feeds = false;
  bool two_heads = false;  // the consumer empties the queue's other head, which is the next parent's
  std::vector<ChildKernel> others{};  // beside `child`, where one consumer runs several
  // One part of so many of the device is enough for the consumer, says the program's annotation; 0: it says
  // nothing. Settings win over it.
  uint32_t concurrency = 0;
  // All kernels that the consumer runs, where blocks follow the parent's; else empty. Then the consumer takes
  // the parent's block as a second parameter of 12 bytes, `consumer_block_threads` are the most that it may
  // have, and what is said above of the kernels' blocks does not hold.
  std::vector<FollowingBlock> following{};
};

// A kernel whose launches of itself became a resident chain (analysis/promotion/promotion.h).
struct PromotedChain {
  std::string mode;                 // "P", "PA", "PO", "PAO", "lookback"
  std::array<uint32_t, 3> block{};  // what the program must launch it with: other launches run the original
  uint32_t shared_bytes = 0;        // dynamic; the same
  uint32_t slot_bytes = 0;          // of the ring of links (templates/promote/promote.h), per link
  bool two_heads = false;           // each launch makes the other ring ready, which is the next one's

  // Its blocks launch each other: the host launches one. The variant takes one more 8-byte parameter, how
  // many links may have blocks at a time.
  [[nodiscard]] bool launches() const { return mode == "P" || mode == "PO"; }
};

// Memory that the host knows by a pointer in the parent's parameters, or as a variable of the module.
struct HostMemory {
  uint32_t offset = 0;        // of the pointer
  std::string variable;       // empty for a pointer
  bool only_upwards = false;  // no access through the pointer lies below it
};
struct MemoryPair {
  HostMemory first, second;
};

// How the runtime must launch one rewritten parent. Sizes are in bytes.
//
// Granularity warp: the parent's variant is launched in the original's place, with the same parameters, and
// that is all: there are no queues. Nor are there where it is promoted.
struct Variant {
  std::string parent;          // original kernel, as the program knows it
  std::string parent_variant;  // records instead of launching; takes one more 8-byte parameter for each queue
  Launcher launcher = Launcher::Host;
  Granularity granularity = Granularity::Grid;
  uint32_t group_blocks = 0;  // as in analysis::Way: a queue needs counters for so many groups
  uint32_t parent_param_count = 0;
  uint32_t parent_param_bytes = 0;  // end of the last original parameter
  uint32_t queue_param_offset = 0;  // of the first added parameter, in the launch buffer
  std::vector<ChildQueue> queues;   // in the order in which they are to be run
  uint64_t pool_bytes = 0;          // what the program's annotation allows a queue; likewise
  Buffer buffer = Buffer::Pool;     // of the queues
  // The variant may be launched in blocks and grids of these extents only, 0 for any: in others, several
  // threads might launch what has an order that is not kept. The same holds of a grid of one block, and where
  // two of these pieces of memory lie in one allocation (analysis/order/launch_order.h).
  std::array<uint32_t, 3> block{}, grid{};
  bool several_blocks = false;
  std::vector<MemoryPair> apart{};
  std::vector<uint32_t> parent_param_offsets{};  // of all original parameters, where `apart` names some
  // Where its queue is full, launches that keep an order are refused with CUDA's own error.
  bool may_refuse = false;
  // The variant can be launched in slices of the grid: behind the queues it takes which one (GridSlice).
  bool in_slices = false;
  // Every consumer begins with a wait for what is before it in its stream, and may be launched with
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
  bool consumers_await = false;
  // The parent may wait for other blocks of its grid: as many of the variant's must be resident at a time as
  // of its own.
  bool parent_waits = false;
  // Set: the variant is launched as a chain of resident blocks, and takes the chain in place of a queue.
  std::optional<PromotedChain> promoted{};
  // What the program's annotations say of a promoted chain, 0 for nothing: blocks, and as in ChildQueue.
  uint32_t pool = 0, concurrency = 0;
};

// A parent's variant is launched for these blocks of the program's grid: the slice's first block, and the
// whole grid. Launched as a whole: (0, 0, 0) and the launch's own grid.
struct GridSlice {
  uint32_t first[3] = {0, 0, 0};
  uint32_t whole[3] = {1, 1, 1};
};

struct Timings {  // milliseconds
  double parse = 0, analyse = 0, templates = 0, transform = 0, link = 0;
};

// What the disk cache had to do with a module. All but Hit were built by this process.
enum class CacheUse {
  Off,       // not asked
  Hit,       // read from the cache
  Miss,      // not in the cache
  Damaged,   // the entry was not what it should be, and was removed
  Outdated,  // the entry was made by other versions of NVRTC or nvJitLink, or for other decisions
  Unusable,  // the folder cannot be used
};
const char* to_string(CacheUse use);  // "off", "hit", "miss", ...

struct RewrittenModule {
  std::string cubin;  // the image to load; empty when nothing was rewritten
  std::vector<Variant> variants;
  std::vector<SiteRemark> remarks;  // one per launch site, in program order
  Timings timings;
  bool from_memory_cache = false;
  CacheUse cache = CacheUse::Off;
};

// Units of a wrapper of version 2 or of bare PTX, chosen for compute capability `sm`.
Program program_from_fatbins(const std::vector<container::Fatbin>& fatbins, uint32_t sm);
Program program_from_ptx(std::string_view ptx, std::string name);

// Sites, verdicts and reasons only: neither NVRTC nor nvJitLink is opened.
std::vector<SiteRemark> explain_module(const Program& program, const Request& request);

// The whole pipeline. Throws Error when nothing usable can be made; a single variant that fails only becomes
// a remark. When no site is rewritten `cubin` is empty and the program's own image is to be used.
RewrittenModule rewrite_module(const Program& program, const Request& request);

// ---- Reading and printing without running (klap-ptx) ----

// One value that the parent stores into the child's parameter block.
struct ArgumentInfo {
  uint32_t offset = 0, bytes = 0;  // place in the child's parameter block
  std::string source;              // "register %rd3", "immediate 5", "kernel parameter 2", "not stored"
};

// One launch site as it stands in the PTX, before any verdict. Operands are printed as in the PTX ("%r5",
// "32").
struct SiteInfo {
  std::string parent, child;  // mangled; child empty when the callee is not a direct symbol
  std::string idiom;          // name of the launch idiom in ptx-patterns/ that recognised it, "cdp2" for one,
                              // and whether local wrappers stand for its functions
  int line = 0, column = 0;   // of the launch's first call in the unit's PTX
  std::string grid, block;    // three operands, "%r5, 1, 1"
  std::string shared_bytes;   // dynamic shared memory
  std::string stream;         // "NULL", "per-thread", "tail launch", "fire-and-forget" or what it can be
  bool in_loop = false;
  std::vector<ArgumentInfo> arguments;  // by offset
};

struct UnitInfo {
  std::vector<std::string> kernels;  // mangled, in the order of the PTX
  std::vector<SiteInfo> sites;       // in the order of the PTX
};

// What a unit's PTX holds. A unit without PTX gives an empty UnitInfo. Throws Error(Parse).
UnitInfo inspect_unit(const Unit& unit);

// What one analysis says about each function of a unit that has a body, in the order of the PTX. `view` is
// the name of one of analysis::views(). Throws Error(Parse).
struct AnalysisText {
  std::string function;  // mangled
  std::string text;
};
std::vector<AnalysisText> analyse_unit(const Unit& unit, std::string_view view);

// The unit's PTX with its variants added, not linked: only sites whose parent and child stand in this unit
// are rewritten. Gives the PTX unchanged when there are none. `remarks`, if not null, receives one entry per
// site.
std::string rewrite_ptx(const Unit& unit, const Request& request, std::vector<SiteRemark>* remarks);

}  // namespace klap::jit
