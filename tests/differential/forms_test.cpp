// The table of the forms in which kernels are written against the granularities, forms.md, is what the cases
// by hand say and show: each form names its cases, and each cell is what every run of the first of them must
// find. So a cell cannot say "works" without a test that fails if it does not.
//
// KLAP_REBASE=1 writes the file anew.
#include "forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "case.h"
#include "runs.h"
#include "support/file.h"

namespace klap::differential {
namespace {

struct Form {
  const char* about;
  std::vector<const char*> cases;  // the first stands in the table's cells
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"one launch per thread, grids of one dimension, constant block",
       {"simple", "simple_empty_between", "some_lanes", "uneven", "atomics"}},
      {"children that begin with a comparison of their index, or of few threads",
       {"flat", "flat_place", "flat_bounds", "flat_long_bounds", "flat_widened_bounds", "flat_late_bound",
        "flat_two_sites", "flat_small_blocks", "flat_few_warps", "flat_big", "flat_blocks"}},
      {"the same, small in some launches and large in others",
       {"changing_sizes", "changing_sizes_without_waits", "changing_sizes_of_two_children"}},
      {"few children in some launches and many in others",
       {"changing_counts", "changing_counts_without_waits", "changing_counts_of_two_children",
        "changing_counts_in_blocks"}},
      {"children with atomic operations and fences of block scope",
       {"block_scope", "block_scope_in_blocks_that_differ", "block_scope_fence", "block_scope_of_siblings"}},
      {"children in grid-stride loops, whose rounds are given to more threads",
       {"rounds_apart", "rounds_unrolled", "rounds_in_place", "rounds_big", "rounds_bins", "rounds_counted",
        "rounds_of_two_cells", "rounds_up_to_the_last", "rounds_of_long_index", "rounds_in_row",
        "rounds_in_row_unrolled", "rounds_once_in_row", "rounds_in_rows"}},
      {"the same, whose rounds stay with their threads",
       {"rounds_chained", "rounds_counted_inside", "rounds_kept", "rounds_covered", "rounds_unrolled_chained",
        "rounds_in_row_chained"}},
      {"children that sum up a range of elements, cut into parts",
       {"ranges_by_shuffles", "ranges_of_reals", "ranges_of_doubles", "ranges_rolled", "ranges_by_tree",
        "ranges_of_threads", "ranges_extrema", "ranges_of_two_sums", "ranges_below_zero", "ranges_from_zero",
        "ranges_by_element", "ranges_unsigned", "ranges_unsigned_counted", "ranges_above_half",
        "ranges_around", "ranges_around_signed", "ranges_around_wider", "ranges_long", "ranges_fresh"}},
      {"the same, which stay one block",
       {"ranges_for_one_size", "ranges_by_place", "ranges_squared", "ranges_to_threads", "ranges_counted",
        "ranges_in_one_array"}},
      {"children that sum up a range and store what they find, whose parts are joined with split_ranges=all",
       {"ranges_stored", "ranges_of_reals_stored", "ranges_of_small_reals", "ranges_weighed",
        "ranges_of_extrema_stored", "ranges_scaled", "ranges_of_means", "ranges_of_means_counted",
        "ranges_stored_by_warps", "ranges_stored_and_marked", "ranges_stored_around", "ranges_replaced",
        "ranges_stored_for_one_size"}},
      {"children written by hand, with names of their own", {"names_of_registers", "ranges_of_one_name"}},
      {"children that somebody may see at work", {"looked_at_by_parent", "looked_at_by_child"}},
      {"children that reach one array from two pointers",
       {"distance_from_below", "distance_by_address", "distance_in_words"}},
      {"children whose rows overlap where a register wraps around",
       {"order_wraps_in_guard", "order_wraps_in_step", "order_wraps_below_zero"}},
      {"children in loops that only load and compute, several rounds in a row",
       {"straight_gathered", "straight_folded", "straight_to_place", "straight_list"}},
      {"children of few threads, run by the thread that launches them, or of none",
       {"threshold", "threshold_none", "threshold_off", "threshold_leaves", "threshold_reads",
        "threshold_writes", "threshold_two_sites", "threshold_refused", "threshold_unguarded",
        "threshold_loops"}},
      {"children of up to a thousand threads, run by the lanes that launch them together",
       {"threshold_shared", "threshold_shared_leaves", "threshold_shared_gathers", "threshold_shared_apart"}},
      {"grids and blocks of three dimensions", {"three_dimensions"}},
      {"blocks whose size differs between launches",
       {"shared_blocks", "refused_blocks", "sizes_cubes", "sizes_rows", "sizes_refused", "sizes_big",
        "sizes_one_after_another"}},
      {"the same, children with barriers, shared memory or warp operations", {"sizes_meet", "sizes_warps"}},
      {"the same beside other launch sites", {"sizes_two_sites"}},
      {"a constant block in a template", {"sizes_in_template"}},
      {"launches under divergent control flow", {"divergent", "groups_early_returns"}},
      {"launches that do not test whether there is a buffer",
       {"untested_buffer", "untested_buffer_of_some_lanes", "untested_buffer_of_no_arguments"}},
      {"arguments of every width, structures by value", {"argument_widths", "shared_many_bytes"}},
      {"structures by value of more than 128 bytes",
       {"structure_copied", "structure_changed", "structure_read", "structure_of_letters",
        "structures_together", "structures_of_two_sites", "structure_in_function"}},
      {"the same, launched in a loop", {"structure_in_loop"}},
      {"arguments that are the same for the whole grid, or that no child reads",
       {"arguments_all_the_same", "arguments_same_in_block", "arguments_found_by_block", "arguments_not_read",
        "fields_not_read", "arguments_in_vectors", "argument_indexed", "argument_too_large",
        "arguments_of_big_children"}},
      {"grids some of whose extents are constants", {"extents_constant"}},
      {"children that call functions", {"device_functions"}},
      {"children whose called functions read special registers", {"child_function_reads_place"}},
      {"the same, functions that call themselves", {"child_recursive_function_reads_place"}},
      {"the same, functions called through pointers", {"child_pointed_function_reads_place"}},
      {"children with local arrays and early returns", {"local_arrays"}},
      {"uniform loads (`ldu`)", {"uniform_loads"}},
      {"children that copy to shared memory asynchronously (`cp.async`)", {"asynchronous_copies"}},
      {"children with barriers and static shared memory",
       {"child_barrier", "child_shared_reuse", "child_sums_in_shared"}},
      {"children with dynamic shared memory of a constant size",
       {"child_dynamic_shared", "child_static_and_dynamic_shared"}},
      {"children with dynamic shared memory of any size",
       {"child_dynamic_shared_of_any_size", "sizes_shared", "sizes_shared_only"}},
      {"blocks that leave as a whole before a barrier", {"child_blocks_exit_before_barrier"}},
      {"blocks that leave as a whole by what they load",
       {"blocks_leave_by_memory", "blocks_leave_by_shared_memory", "last_block_stays"}},
      {"warps that leave before a barrier", {"warps_leave_between_barriers", "warps_leave_by_their_number"}},
      {"threads that leave before a barrier",
       {"child_exits_before_barrier", "child_threads_exit_in_every_second_block",
        "threads_leave_between_barriers"}},
      {"barriers with a count", {"child_barriers_of_warps", "shared_meeting"}},
      {"barriers in functions that the child calls", {"child_barrier_in_function", "child_function_meets"}},
      {"warp operations of full warps",
       {"child_shuffle", "child_blocks_exit_before_shuffle", "warps_vote_by_a_mask_that_goes"}},
      {"warp operations of some of a block's warps", {"warps_add_up", "warps_agree_by_two_conditions"}},
      {"warp operations of the active lanes", {"child_active_lanes"}},
      {"warp operations after lanes have left", {"child_exits_before_vote"}},
      {"warp operations in blocks that are no multiple of a warp", {"child_votes_in_odd_block"}},
      {"module variables that host, parent and child share", {"module_variables"}},
      {"launches behind a reduction of the block", {"reduction", "reduction_chooses"}},
      {"arguments that take a branch, a loop or a call to compute",
       {"computed_by_branch", "computed_by_call", "computed_by_loop", "computed_in_recursion"}},
      {"the same, in launches that are refused", {"computed_and_refused"}},
      {"arguments that count, in launches that are refused", {"counted_and_refused"}},
      {"several launch sites in one kernel",
       {"three_sites_in_order", "two_sites", "sites_ordered_by_barrier", "sites_unlike",
        "groups_of_several_sites", "descendants"}},
      {"one child of several parents", {"two_parents", "arguments_differ_by_site"}},
      {"children that update plainly what others read, launched by one thread of a block",
       {"one_thread_of_row", "one_thread_of_row_marks", "one_thread_of_all", "one_thread_by_bounds"}},
      {"the same in blocks of one thread, by every thread", {"one_thread_alone"}},
      {"the same, recursion", {"one_thread_recursive", "one_thread_of_row_recursive"}},
      {"launches in called functions", {"function_launches", "function_of_two_parents"}},
      {"launches in called functions, several calls",
       {"function_in_function_launches", "function_launches_twice"}},
      {"launches in called functions, called in a loop", {"function_launches_in_loop"}},
      {"launches in functions that call themselves", {"function_launches_and_calls_itself"}},
      {"a kernel that host and device launch", {"both_sides"}},
      {"a site in a loop, NULL stream",
       {"loop_order", "loop_refused", "loop_repeated", "loop_retry", "loop_retry_never", "loop_tickets",
        "loop_two_streams", "groups_of_loops", "shared_rounds", "sunk_computations"}},
      {"a site in a loop, fire-and-forget stream", {"loop_forget"}},
      {"a site in a loop, per-thread stream", {"loop_own_stream"}},
      {"a site in a loop, grids of several dimensions", {"loop_grids", "large_in_loop", "loop_cubes"}},
      {"a site in a loop, children with barriers and shared memory", {"loop_in_tiles"}},
      {"a loop that the compiler unrolled", {"loop_unrolled", "loop_unrolled_inner", "loop_unrolled_wholly"}},
      {"several sites in and beside a loop",
       {"loop_branches", "loop_refused_sites", "loop_retry_sites", "loop_mixed_streams",
        "loop_unordered_sites"}},
      {"the same into streams that the thread creates", {"loop_own_streams", "loop_streams_anew"}},
      {"the same with one into the per-thread stream", {"loop_two_orders"}},
      {"the same with several children or blocks", {"loop_two_children", "loop_two_blocks"}},
      {"the same with a barrier between them", {"loop_barrier_sites"}},
      {"the same, children that update plainly what others read", {"loop_updating_sites"}},
      {"a site in a loop, children that update plainly what others read",
       {"site_in_loop", "shared_meeting_rounds"}},
      {"a barrier between a loop's launches", {"barrier_between_launches", "shared_barrier_rounds"}},
      {"children that launch others",
       {"nested", "nest_three_levels", "nest_two_grandchildren", "nest_blocks", "nest_errors"}},
      {"children that launch others, with barriers and shared memory",
       {"nest_barrier", "nest_shared_memory"}},
      {"barriers in a kernel with fewer threads than what runs beside it", {"nest_barrier_in_less"}},
      {"one of several nested kernels updates plainly", {"nest_one_updates"}},
      {"several nested kernels update plainly", {"nest_two_update"}},
      {"recursion",
       {"recursion", "recursive_tree", "recursion_deep", "recursion_at_once", "recursion_spread",
        "recursion_rabbits", "recursion_from_another", "recursion_cubes", "recursion_relay",
        "recursion_errors", "recursion_repeated", "recursion_two_streams", "recursion_in_tiles",
        "recursion_of_siblings"}},
      {"recursion in blocks like the launching one's own",
       {"following_barrier", "following_plain", "following_areas", "following_a_constant",
        "following_one_extent"}},
      {"the same, a kernel launched in two blocks", {"following_two_blocks"}},
      {"chains: a block that launches one block of its kernel",
       {"chain_of_25", "chain_of_1", "chain_of_2", "chain_of_1000", "chain_downwards", "chain_downwards_1000",
        "chain_to_largest_number", "chain_to_smallest_number", "chain_twice", "chain_in_two_streams",
        "chain_of_another_form", "chain_with_more_memory"}},
      {"chains whose arguments stay, step, are computed or follow from what a link read",
       {"chain_arguments", "chain_swapped"}},
      {"chains whose links carry sums, extrema or bits on",
       {"chain_operations", "chain_compaction", "chain_maximum"}},
      {"chains whose links read what the one before wrote",
       {"chain_hands_on", "chain_counting", "chain_shifted"}},
      {"chains that end by what a link reads", {"chain_ended_by_data"}},
      {"chains that end by a sequence of their own", {"chain_ended_by_a_sequence"}},
      {"chains with barriers and shared memory", {"chain_of_dynamic_memory", "chain_in_three_dimensions"}},
      {"chains that another thread than the first continues", {"chain_by_last_thread"}},
      {"chains from whose links threads leave", {"chain_left_by_threads"}},
      {"chains that look at the result of their launch", {"chain_result_used"}},
      {"chains that a kernel begins", {"chain_from_the_device"}},
      {"recursion whose blocks leave before barriers, by what they load", {"leaves_of_a_tree"}},
      {"recursion at several sites, fire-and-forget stream", {"nest_quicksort"}},
      {"recursion at several sites of which a thread takes one", {"nest_exclusive_sites"}},
      {"recursion with several launches of a thread into an ordered stream", {"nest_launches_twice"}},
      {"recursion at several sites that a barrier orders", {"nest_branches_that_meet"}},
      {"recursion into streams that the threads create",
       {"recursion_in_own_streams", "recursion_in_two_own_streams", "recursion_in_array_of_streams"}},
      {"the same, several launches of a thread into one of them", {"recursion_twice_in_own_stream"}},
      {"mutual recursion", {"mutual_recursion", "nest_mutual"}},
      {"several recursive launches of a thread into an ordered stream",
       {"executed_halves", "executed_sort", "executed_thread_streams", "executed_nodes"}},
      {"tail launches in recursion",
       {"executed_steps", "executed_ends", "executed_sums", "executed_streams"}},
      {"blocks that differ in recursion", {"executed_sizes", "executed_halved_blocks"}},
      {"dynamic shared memory that differs in recursion and between tail launches",
       {"executed_shared_sizes", "executed_shared_kernels", "executed_shared_of_blocks",
        "executed_shared_constants", "executed_shared_tails"}},
      {"a sequence of kernels with barriers in blocks of different sizes", {"executed_other_blocks"}},
      {"a sequence of kernels whose warps work together in blocks of different sizes",
       {"executed_full_warps"}},
      {"the same, where some blocks' warps need not be full", {"executed_some_lanes"}},
      {"recursion in blocks no larger than the launching one", {"executed_in_bounds"}},
      {"recursion in blocks that grow", {"executed_across_axes"}},
      {"a sequence of kernels whose shared memory is too much for one block", {"executed_shared_of_all"}},
      {"wide grids in the order of a stream", {"executed_wide"}},
      {"graphs of launches, streams that are created and handed on",
       {"graph_of_streams", "graph_of_tails", "graph_of_blocks", "graph_of_counts"}},
      {"queries of the device, and the last error after any mix of calls",
       {"executed_queries", "executed_errors", "executed_errors_of_others"}},
      {"blocks that wait for blocks before them, by their number or by a ticket",
       {"turns_by_block", "turns_by_rows", "turns_by_columns", "executed_scans_by_ticket"}},
      {"blocks that wait for each other", {"blocks_that_meet", "blocks_that_send"}},
      {"blocks of which the last one adds up what all have left", {"sums_with_last_block"}},
      {"kernels with shared variables of their own", {"executed_overlaid_variables"}},
      {"the older pair of launch calls, in kernels that launch",
       {"executed_older_calls", "executed_older_sizes"}},
      {"copies and fills in the order of streams",
       {"executed_copies", "executed_copies_in_streams", "executed_copies_in_own_stream",
        "executed_copies_of_blocks", "graph_of_copies", "graph_of_copied_tails", "graph_of_copied_blocks"}},
      {"copies and fills in functions that a child without launches calls", {"copies_in_called_function"}},
      {"copies and fills of any size, and those that CUDA refuses",
       {"executed_sizes_of_copies", "executed_large_copies", "executed_codes_of_copies"}},
      {"copies and fills in three dimensions", {"executed_copies_of_slices", "executed_codes_of_slices"}},
      {"launches of many threads into the block's stream that are proven apart, a tail launch as their join",
       {"forks_apart", "forks_apart_of_blocks", "forks_apart_of_rows", "forks_of_one_row", "forks_sums",
        "forks_two_arrays", "forks_two_arrays_of_thread", "forks_beside_ordered"}},
      {"launches that are apart but for others of their thread, of their column or of their subtree",
       {"forks_in_loop", "forks_twice", "forks_twice_of_thread", "forks_of_columns", "forks_of_trees"}},
      {"launches that are apart, and something else in their stream that waits for them",
       {"forks_and_join", "forks_and_handle", "forks_and_copy", "forks_behind_copy", "forks_and_event"}},
      {"launches that are apart where pointers of the host are, as kernels pass them on",
       {"pointers_exchanged", "pointers_rotated", "pointers_both_ways"}},
      {"launches that are not, where pointers are the same or from memory",
       {"pointers_equal", "pointers_made_equal", "pointers_moved_on", "pointers_loaded",
        "pointers_handed_on"}},
      {"launches that are apart beside grids that look at what they do",
       {"forks_messages", "forks_partial_sums"}},
      {"streams that wait for events",
       {"executed_events", "executed_events_of_threads", "executed_many_events", "executed_refused_events"}},
      {"launches of dynamic parallelism version 1", {"older_launches"}},
      {"waits for children, of dynamic parallelism version 1",
       {"waits_of_each_thread", "waits_of_one_thread", "waits_of_some_threads", "waits_with_a_local_array",
        "waits_in_a_function", "waits_in_front_of_a_function", "waits_in_a_tree", "waits_of_a_merge_sort",
        "waits_with_dynamic_shared_memory", "waits_with_memory_of_its_own", "waits_for_copies",
        "waits_for_nothing"}},
      {"fire-and-forget stream", {"fire_and_forget"}},
      {"per-thread stream", {"per_thread"}},
      {"a stream that the thread creates",
       {"own_stream", "own_stream_answers", "own_streams_two", "created_stream", "shared_own_stream",
        "own_stream_beside_reference", "own_stream_beside_allocation"}},
      {"a created stream that threads share", {"own_stream_shared", "own_stream_of_another_lane"}},
      {"streams of the thread in an array", {"own_streams_array"}},
      {"created streams with events, or that only some threads create",
       {"own_streams_event", "own_streams_of_some"}},
      {"tail launches, by one thread of the grid",
       {"tail_launch", "tail_after_children", "tail_joins", "tail_first", "tail_of_one_block",
        "tail_of_several_blocks", "tail_of_small_pool", "tail_alone"}},
      {"tail launches, by many threads", {"tail_by_everyone", "tail_updates"}},
      {"several tail launches of one thread", {"tail_twice", "tail_in_loop"}},
      {"recursion by tail launches", {"tail_rounds"}},
      {"children that update plainly what others read", {"plain_counting", "child_updates_through_shared"}},
      {"other work in the stream beside the launch", {"shared_other_calls"}},
      {"memory allocated beside launches", {"device_malloc", "device_cuda_malloc", "device_free_before"}},
      {"memory freed after a launch", {"device_free_after"}},
      {"memory that the lanes of a warp take together (`KLAP_AGGREGATE_MALLOC=warp`)",
       {"memory_given_to_child", "memory_freed_by_pieces", "memory_of_runtime", "memory_of_some_lanes",
        "memory_in_loop", "memory_runs_out", "memory_of_runtime_runs_out", "memory_of_odd_sizes",
        "memory_of_no_size", "memory_given_back", "memory_handed_on", "memory_shuffled",
        "memory_by_pointers"}},
      {"memory that warps cut from chunks (`KLAP_AGGREGATE_MALLOC=chunks`)",
       {"chunks_exchanged", "chunks_in_loop", "chunks_handed_on", "chunks_in_all_ways", "chunks_kept",
        "chunks_in_nearly_full_heap", "chunks_in_full_heap"}},
      {"launches that CUDA refuses, and their codes",
       {"refused_grids", "refused_grids_explained", "shared_codes", "refused_by_host"}},
      {"the parent reads and writes beside its launches",
       {"write_then_launch", "barrier_then_launch", "launch_then_write", "launch_then_count"}},
      {"the parent asks about the device", {"ask_and_launch"}},
      {"the parent asks how much shared memory it has", {"ask_for_shared"}},
      {"parents one after another and in several streams",
       {"chained", "several_streams", "groups_two_streams"}},
      {"parents' grids of every size, some that launch nothing",
       {"groups_few_launch", "groups_many_shapes", "groups_nothing_recorded"}},
      {"children of 2^16 blocks and more", {"groups_big_children"}},
      {"parents whose records have no room at once",
       {"slices_line", "slices_blocks", "slices_rows", "slices_parts_of_rows", "slices_layers",
        "slices_two_streams", "slices_two_queues", "slices_last_block", "slices_place_in_function"}},
      {"children that no analysis shows to be apart: their order is kept", {"simple_in_order"}},
      {"the same, a site in a loop", {"loop_in_order"}},
      {"the same, blocks whose size differs between launches", {"sizes_in_order"}},
      {"the same, children that launch others", {"nested_in_order", "nest_three_levels_in_order"}},
      {"the same, recursion", {"recursive_tree_in_order", "following_in_order"}},
      {"children that meet where their input says, in blocks that do so as well",
       {"ordering_auto", "ordering_few_threads", "ordering_told_block"}},
      {"the same, order between threads asked for (`ordering = \"stream\"`)", {"ordering_stream"}},
      {"the same, one thread of a block launches", {"ordering_stream_one_thread"}},
      {"hints in the program", {"hints", "hints_in_recursion"}},
  };
  return all;
}

constexpr std::array<const char*, 5> kColumns = {"grid-host", "grid-device", "multiblock2-device",
                                                 "block-device", "warp-device"};

std::string cell(const Case& c, const Configuration& configuration) {
  if (c.sites.empty()) return "works";
  return expected_verdict(c.sites.front(), configuration) == "rewritten"
             ? "works"
             : expected_verdict(c.sites.front(), configuration);
}

bool is_relaxed(const Case& c) {
  const auto ordering = c.settings.find("KLAP_ORDERING");
  return ordering != c.settings.end() && ordering->second == "relaxed";
}

std::string table() {
  std::string text =
      "# Forms of kernels and granularities\n\nEvery row is a form in which programs launch kernels from "
      "kernels, with the differential cases that show it (`cases/`). *works*: rewritten, and equal to the "
      "CPU "
      "reference natively and preloaded, on the emulated GPU under every seed (the same cases run on a GPU "
      "where there is one). *left*: the reason why such a launch stays as it is there. \\*: with `ordering = "
      "\"relaxed\"`, since children that never meet are not seen to be apart. Made from the cases by "
      "`forms_test.cpp`.\n\n"
      "| Form | grid, host | grid, device | multiblock | block | warp | Cases |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Form& form : forms()) {
    text += fmt::format("| {}{} |", form.about, is_relaxed(*find_case(form.cases.front())) ? " \\*" : "");
    for (const char* column : kColumns)
      text +=
          fmt::format(" {} |", cell(*find_case(form.cases.front()), chosen_configurations(column).front()));
    for (const char* name : form.cases) text += fmt::format(" `{}`", name);
    text += " |\n";
  }
  return text;
}

TEST(Forms, EachHasACase) {
  for (const Form& form : forms()) {
    for (const char* name : form.cases) EXPECT_NE(find_case(name), nullptr) << form.about << ": " << name;
  }
}

TEST(Forms, EachCaseIsInTheTable) {
  for (const Case& c : all_cases()) {
    if (c.name.starts_with("order_")) continue;     // cells of the matrix of order_cells.h
    if (c.name.starts_with("contract_")) continue;  // rows of contract.md
    EXPECT_TRUE(std::ranges::any_of(forms(), [&](const Form& f) {
      return std::ranges::find(f.cases, c.name) != f.cases.end();
    })) << c.name;
  }
}

TEST(Forms, TheTableIsWhatTheCasesSay) {
  if (std::getenv("KLAP_REBASE") != nullptr) write_file(KLAP_FORMS, table());
  EXPECT_EQ(read_file(KLAP_FORMS), table()) << "KLAP_REBASE=1 writes " << KLAP_FORMS;
}

}  // namespace

bool stands_for_a_form(const std::string& name) {
  return std::ranges::any_of(forms(), [&](const Form& form) { return form.cases.front() == name; });
}

}  // namespace klap::differential
