// This file generates the recording parents of grid aggregation. Two kernels replace a launch site: a
// recording parent and a consumer (consumer.h).
//
// The recording parent is the parent with its launch replaced by an append to a record queue. The program's
// own argument stores go into the record instead of the device runtime's buffer. The launch call only reports
// the error code it would have returned. (In the documented form of a launch the grid is known only at the
// launch call, so the record is made and filled there.) The consumer is a template that runs all recorded
// children. The host enqueues it behind the parent (launcher "host"). Or the last thread of the parent
// launches it, as a grid of exactly the children's blocks ("device"). Both come out as PTX text of one kernel
// each, to be placed in a unit by unit.h. (KLAP paper, section III.B: kernel-granularity aggregation; here
// without its read-back of totals to the host and without a device launch.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/legality/loop_launches.h"
#include "ptx/tree.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/aggregate/fused.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// `name` is the variant's name. `lines` are the line tables of the unit that the kernel is for, here and
// below. Code of the templates is counted to the source line of the launch, and in a consumer to the line of
// the child's head. `in_slices`: the parent can be launched in slices, and has the parameter of slices.h
// behind the queues.
Generated recording_parent(const analysis::FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                           const std::string& name, LineTables& lines, bool in_slices);

// The recording parent that is its own consumer: one kernel. It has the parameter of fused.h, if any, behind
// all others.
Generated fused_parent(const analysis::FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                       const FusedParts& parts, const std::string& name, LineTables& lines);

// The recording parent for launcher "device", with one of `launches` for each site. `leave` is
// templates/aggregate/launch_consumer.cu compiled for the child's block and layout. `consumer` is the kernel
// that the last thread launches. It launches them in the order of the sites.
Generated launching_parent(const analysis::FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                           const std::vector<DeviceLaunch>& launches, const std::string& name,
                           LineTables& lines, bool in_slices);

// The recording parent if the children launch again. `record` is templates/worklist/worklist_record.cu,
// `targets` are the kernels that the sites launch. A child that does not fit the queue is
// launched as the program does. `launch` is null for launcher "host". Its `leave` is
// templates/worklist/launch_consumer.cu, which launches one consumer for all sites.
Generated worklist_parent(const analysis::FunctionFacts& parent, const std::vector<LaunchTarget>& targets,
                          const ptx::Module& record, const std::string& name, LineTables& lines,
                          const DeviceLaunch* launch);

// The recording parent for launches in one queue if some keep an order: `record` is
// templates/loop_launches/loop_record.cu. If none keeps an order, it is a parent with a worklist.
Generated loop_launches_parent(const analysis::FunctionFacts& parent,
                               const analysis::LoopLaunches& loop_launches, const ptx::Module& record,
                               const std::string& name, LineTables& lines, const DeviceLaunch* launch);

// The recording parent if the executor runs all launches. `record` is templates/executor/executor_record.cu.
Generated executed_parent(const analysis::FunctionFacts& parent, const std::vector<LaunchTarget>& targets,
                          const ptx::Module& record, const std::string& name, LineTables& lines);

// Offset of the first parameter that is added to a recording parent; the others follow, 8 bytes each.
uint32_t queue_parameter_offset(const ptx::Function& parent);

}  // namespace klap::transform
