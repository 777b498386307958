// A module as the pipeline leaves it: an original parent and child, the recording variant and the consumer.
// Only names, parameters and their places count here; nothing is executed.
extern "C" __global__ void child(int*, int) {}
extern "C" __global__ void parent(int*, int) {}
extern "C" __global__ void __klap_parent(int*, int, void*) {}
extern "C" __global__ void __klap_consumer(void*) {}

// A second parent with a larger record, parameters that need padding, and its own consumer.
struct Many {
  int value[3];
};
extern "C" __global__ void other(Many, char) {}
extern "C" __global__ void __klap_other(Many, char, void*) {}
extern "C" __global__ void __klap_other_consumer(void*) {}

// One with a queue for each of two launch sites.
extern "C" __global__ void nesting(int*, int) {}
extern "C" __global__ void __klap_nesting(int*, int, void*) {}
extern "C" __global__ void grandchild(int) {}
// The same with a consumer that takes the parent's block.
struct Block {
  unsigned extents[3];
};
extern "C" __global__ void following(int*, int) {}
extern "C" __global__ void __klap_following(int*, int, void*) {}
extern "C" __global__ void __klap_following_consumer(void*, Block) {}
// One that always makes equally many launches.
extern "C" __global__ void repeated(int*, int) {}
extern "C" __global__ void __klap_repeated(int*, int, void*) {}
// One whose variant is for blocks of one row.
extern "C" __global__ void of_one_row(int*, int) {}
extern "C" __global__ void __klap_of_one_row(int*, int, void*) {}
extern "C" __global__ void several(int*, int) {}
extern "C" __global__ void __klap_several(int*, int, void*, void*) {}

// A third that launches its consumer itself.
extern "C" __global__ void launching(int*, int) {}
extern "C" __global__ void __klap_launching(int*, int, void*) {}
extern "C" __global__ void __klap_exact_consumer(Many) {}

// A fourth in which every two blocks do.
extern "C" __global__ void grouped(int*, int) {}
extern "C" __global__ void __klap_grouped(int*, int, void*) {}

// The same with launches in a loop.
extern "C" __global__ void looping_groups(int*, int) {}
extern "C" __global__ void __klap_looping_groups(int*, int, void*) {}

// A fifth that can be launched in slices of its grid, and one of two queues that launches them itself.
struct Slice {
  unsigned first[3], whole[3];
};
extern "C" __global__ void sliced(int*, int) {}
extern "C" __global__ void __klap_sliced(int*, int, void*, Slice) {}
extern "C" __global__ void sliced_groups(int*, int) {}
extern "C" __global__ void __klap_sliced_groups(int*, int, void*, void*, Slice) {}
// One of two queues that always makes equally many launches.
extern "C" __global__ void counted(int*, int) {}
extern "C" __global__ void __klap_counted(int*, int, void*, void*, Slice) {}

// The first parent as its own consumer, and the same with a larger block.
extern "C" __global__ void __klap_fused(int*, int, void*) {}
struct ProgramExtents {
  unsigned block_rows, block_layers, grid_rows, grid_layers;
};
extern "C" __global__ void __klap_fused_in_more(int*, int, void*, ProgramExtents) {}

// Chains: of links that overlap, of links that do not, and of links that launch each other.
extern "C" __global__ void chained(int*, int) {}
extern "C" __global__ void __klap_chained(int*, int, void*) {}
extern "C" __global__ void passing(int*, int) {}
extern "C" __global__ void __klap_passing(int*, int, void*) {}
extern "C" __global__ void spawning(int*, int) {}
extern "C" __global__ void __klap_spawning(int*, int, void*, unsigned long long) {}
