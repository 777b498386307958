// A rewritten parent of one loaded image, and all that is needed to launch its variant in a given CUDA
// context.
//
// Function handles belong to a context, so variant, consumer and child are looked up once per context, on the
// first launch there. This also settles whether the variant may be used at all. The handles must exist, and
// the kernels must accept their block sizes. A consumer that the host enqueues must have run once, on the
// empty queue. Otherwise a consumer could turn out to be unlaunchable after a parent has recorded its
// children, and would lose them. A consumer that the parent launches cannot be tried in this way, and needs
// it less. The parent's variant refers to it, as the original parent refers to the child. If children have
// blocks like the parent's, all of that is done for each size in which the program launches the parent.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/forms/child_forms.h"
#include "runtime/forms/few_children.h"
#include "runtime/parents/launch_guard.h"
#include "runtime/parents/pointers_apart.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// Stands for a context's id and means every context.
inline constexpr uint64_t kEveryContext = ~uint64_t{0};

// Where an image was loaded: a library, which is good for every context, or a module of one context.
struct LoadedImage {
  // The program's handle, of which one is set.
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  uint64_t context_id = kEveryContext;  // of the module
  // The image that holds the variants, if it is another one (later_images.h).
  CUlibrary second_library = nullptr;
  CUmodule second_module = nullptr;
  std::vector<jit::Variant> variants;
  std::string key;  // of the rewritten module (jit::RewrittenModule)
  // The most memory a queue of each parent may take, by parent; the default where it has no entry.
  std::map<std::string, uint64_t> pool_bytes;
  // For each queue of each parent, the number n with which its consumer takes one n-th of the device. It
  // takes all of it if there is no entry.
  std::map<std::string, std::vector<uint32_t>> concurrency;
  // For promoted chains: the settings and the program's annotations, by parent.
  struct ChainBlocks {
    uint32_t pool = 0;         // 0: as many as the mode needs
    uint32_t concurrency = 1;  // of how many parts of the device it takes one, where `pool` is 0
  };
  std::map<std::string, ChainBlocks> chains;
  // Parents whose consumers are launched to start when the parent is complete, and not before.
  std::set<std::string> no_dependent_launch;
  // Parents whose records the host reads back after them (readback.h).
  std::set<std::string> readback;
  // As the function of that name says.
  bool uses_sized_memory = false;
  // The image itself where the driver was told that it stays readable (CU_LIBRARY_BINARY_IS_PRESERVED).
  std::shared_ptr<const std::string> preserved_cubin;

  [[nodiscard]] CUlibrary code_library() const { return second_library ? second_library : library; }
  [[nodiscard]] CUmodule code_module() const { return second_module ? second_module : module; }
};

// Whether linked code uses the device's heap or the buffer of printf(). The program may set their sizes until
// it launches a kernel that does, and the driver may fix them when it loads one.
bool uses_sized_memory(std::string_view cubin);

// The block of a launch if the variant's consumers depend on it; otherwise it is always the same.
using DecidingBlock = std::array<uint32_t, 3>;

// The variant in one context, for launches in blocks of one size if that matters. It never changes once made.
struct PreparedVariant {
  uint64_t context_id = 0;
  DecidingBlock block{};
  CUfunction parent = nullptr;
  struct Consumer {
    CUfunction function = nullptr;
    unsigned threads = 0;  // of a block
    unsigned grid = 0;     // if the host launches it
  };
  std::vector<Consumer> consumers;  // one for each queue of the variant; empty ones where it needs none
  // As in jit::SharedLimit. The program may change limits between launches.
  struct SharedLimit {
    CUfunction kernel = nullptr;
    unsigned bytes = 0;
    bool is_limit = false;
  };
  std::vector<SharedLimit> shared_limits;
  // The consumers are launched before the kernels in front of them are complete, and wait for these
  // themselves.
  bool dependent = false;
  unsigned max_parent_threads = 0;  // in a block
  unsigned chain_blocks = 0;       // of a promoted chain at a time: launched, or allowed to launch each other
  MaybeReason unusable = nullptr;  // the reason why the original is always used here
};

class ParentKernel {
 public:
  // A place where accesses through a pointer parameter begin, as the values of a launch tell. It is at the
  // pointer itself if the distance is empty.
  struct Place {
    uint32_t pointer = 0;
    jit::Distance distance;
    auto operator<=>(const Place&) const = default;
  };

  // `otherwise` is launched if the variant is not made for a launch; null for the original.
  ParentKernel(std::shared_ptr<const LoadedImage> image, const jit::Variant& variant,
               std::shared_ptr<ParentKernel> otherwise = nullptr);

  [[nodiscard]] const std::string& name() const { return variant_.parent; }
  [[nodiscard]] const jit::Variant& variant() const { return variant_; }
  [[nodiscard]] const std::shared_ptr<ParentKernel>& otherwise() const { return otherwise_; }
  // A variable of the module in the current context: its address, 0 where it is not found, and its size.
  [[nodiscard]] std::pair<CUdeviceptr, size_t> variable(const std::string& variable_name) const;
  // Remembers places of its launches that were found to lie apart, and which places these are.
  PointersFoundApart& pointers_apart() { return pointers_apart_; }
  // The name of its launches for profilers (launch/launch_range.h); empty if they are told nothing.
  [[nodiscard]] const std::string& range_name() const { return range_name_; }
  [[nodiscard]] std::span<const Place> places_apart() const { return places_apart_; }
  // Decides whether the original runs because it is faster; null if that may not be tried.
  [[nodiscard]] LaunchGuard* guard() { return guard_.get(); }
  // Chooses between the variant and the one behind it, whose children run in blocks; null if there is none.
  [[nodiscard]] ChildForms* forms() { return forms_.get(); }
  // The variant behind it whose own kernel runs the children; null if there is none.
  [[nodiscard]] ParentKernel* fused() const;
  // Chooses between the variant and that one; null if that needs no choice.
  [[nodiscard]] FewChildren* few_children() { return few_children_.get(); }
  // The number by which its rings are found if it is a promoted chain.
  [[nodiscard]] uint64_t chain() const { return chain_; }
  // Counts one launch of the program that ran the variant, or one behind it that keeps the order of the
  // children.
  void launch_redirected(bool in_order = false) {
    redirections_.fetch_add(1, std::memory_order_relaxed);
    if (in_order) in_order_.fetch_add(1, std::memory_order_relaxed);
  }
  // True if the settings ask for reading back and it can be done.
  [[nodiscard]] bool reads_back() const;
  [[nodiscard]] uint64_t pool_bytes() const { return pool_bytes_; }

  // Has the driver load the variant's kernels in the current context, and the kernels that they launch. With
  // lazy loading it would do so at a kernel's first use, and wait for all running kernels then. False if this
  // has been done. Kernels of code that uses_sized_memory() are left to load_kernels_for_launch().
  bool load_kernels(uint64_t context_id);
  // Loads what load_kernels() has left. Called before each launch.
  void load_kernels_for_launch();
  // The sizes of the queues that a first launch of few threads takes from its context's pool.
  [[nodiscard]] std::vector<uint64_t> first_queues() const;

  // The argument of prepare() for a launch in blocks of that size.
  [[nodiscard]] DecidingBlock deciding(const unsigned (&block)[3]) const;
  // The result of prepare() in that context; null if it was not called there yet.
  std::shared_ptr<const PreparedVariant> prepared(uint64_t context_id, const DecidingBlock& block) const;
  // Prepares the variant in `launch`'s context. The caller holds its mutex, and its queues are allocated and
  // empty.
  std::shared_ptr<const PreparedVariant> prepare(LaunchContext& launch, const DecidingBlock& block = {});

  // Prepares a variant that needs no launch context, on the first call in a CUDA context.
  std::shared_ptr<const PreparedVariant> prepare_alone(uint64_t context_id);

  // The reason why the variant cannot run a launch of so many threads a block, and of so much dynamic shared
  // memory. It is too large for the variant, or children's limits are others than those it was made for. Or
  // blocks wait for blocks that might not be resident then, as
  // natively they are.
  MaybeReason check_block(const PreparedVariant& prepared, uint64_t threads, unsigned shared_bytes) const;

  // Forgets what belongs to a CUDA context that has ended.
  void end_context(uint64_t context_id);

  // The variant's handles, to mirror what the program sets on the original; null when not found.
  [[nodiscard]] CUfunction variant_function() const { return function(variant_.parent_variant); }
  [[nodiscard]] CUkernel variant_kernel() const { return kernel(variant_.parent_variant); }

  // Logs a failure at level warn, each distinct one once.
  void warn_once(const std::string& what);
  // Logs something that is no failure at level info, and more about it at level debug.
  void info_once(const std::string& about, const std::string& what);

 private:
  [[nodiscard]] std::unique_ptr<LaunchGuard> make_guard() const;
  [[nodiscard]] CUkernel kernel(const std::string& kernel_name) const;
  [[nodiscard]] CUfunction function(const std::string& kernel_name) const;
  std::shared_ptr<const PreparedVariant> find_prepared(uint64_t context_id, const DecidingBlock& block) const;
  MaybeReason resolve(PreparedVariant& prepared, unsigned multiprocessors) const;
  MaybeReason resolve_consumer(PreparedVariant& prepared, const jit::ChildQueue& queue,
                               unsigned multiprocessors) const;
  MaybeReason add_shared_limits(PreparedVariant& prepared, const jit::ChildQueue& queue) const;
  MaybeReason resolve_following(PreparedVariant& prepared, const jit::ChildQueue& queue) const;
  [[nodiscard]] bool may_be_dependent() const;
  void try_dependent(PreparedVariant& prepared, const LaunchContext& launch) const;
  MaybeReason resolve_chain(PreparedVariant& prepared, unsigned multiprocessors) const;
  [[nodiscard]] unsigned concurrency(size_t queue) const;

  const std::shared_ptr<const LoadedImage> image_;
  const jit::Variant variant_;
  const std::shared_ptr<ParentKernel> otherwise_;
  const uint64_t pool_bytes_;
  const uint64_t chain_;
  const std::string range_name_;
  const std::vector<Place> places_apart_;
  std::atomic<uint64_t>&redirections_, &in_order_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const PreparedVariant>> prepared_;
  bool is_new(const std::string& what);  // for the two above
  void load_all_kernels() const;
  std::set<std::string> said_;
  std::set<uint64_t> loaded_in_, loaded_for_launch_in_;  // contexts
  PointersFoundApart pointers_apart_;
  const std::unique_ptr<LaunchGuard> guard_;
  const std::unique_ptr<ChildForms> forms_;
  const std::unique_ptr<FewChildren> few_children_;
};

// True if the host can read back how much a parent recorded (readback.h). A queue of a fixed size does not
// tell how much will be in it.
bool can_read_back(const jit::Variant& variant);

// The most attributes of the program's launch that its consumers have, too.
inline constexpr size_t kMostConsumerAttributes = 3;

// Launches `prepared`'s consumers on the queues of `launch`, one behind the other, without those of no
// blocks. If they empty the queues' other heads, the next parent gets these. If the driver refuses to launch
// one as a dependent of the kernel before it, it is launched in the ordinary way.
CUresult launch_consumers(const PreparedVariant& prepared, const jit::Variant& variant, LaunchContext& launch,
                          std::span<const CUlaunchAttribute> attributes);

}  // namespace klap::runtime
