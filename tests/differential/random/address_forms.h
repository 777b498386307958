// The questions about addresses that random programs ask, one for each program: what makes two addresses the
// same although they look different, or keeps them apart.
#pragma once

#include <array>
#include <cstdint>

namespace klap::differential::random {

enum class AddressForm : uint8_t {
  Loaded,       // each thread adds what it loads to its number
  Argument,     // each thread passes something more, which the child adds
  Plane,        // the number in two dimensions, of blocks of three
  NumberWraps,  // a large multiple of the number, in 32 bits
  StepWraps,    // the same of the offset, in 64 bits
  FarSteps,     // the same of both: the number in 32 bits is scaled once more in 64
  FarRows,      // the same of rows whose length is a parameter
  Function,     // a function of the number that gives some values twice
  Factor,       // the number times a parameter, which may be 0
  WideFactor,   // the same in 64 bits
  TwoNumbers,   // the number is added and subtracted
  Steps,        // two accesses, one twice as far from the begin as the other one
  NarrowSteps,  // the same in 32 bits
  Bases,        // two accesses, one by a parameter further on
  NarrowBases,  // the same in 32 bits
  Shifts,       // two accesses, one by a constant further on
  Offsets,      // two accesses for all children: at a constant, and at a parameter
  Rows,         // a row of words for each child, whose length is a constant
  LongRows,     // the same, whose length is a parameter
  Iterations,   // each iteration of a loop adds something else; in no order only
  // In no order, below parents of several blocks:
  ParentTable,  // children find their word in what the parent has written
  ChildTable,   // children find their word in the array that they change
  OwnArrays,    // children find their word in the input, in an array of their block's own
  LoneBlock,    // children find their word in the input, and one block launches
};
// The forms of programs whose launches have an order, and of those with parents of several blocks. Forms with
// more to vary come more often.
inline constexpr std::array kOrderedForms = {
    AddressForm::FarSteps,    AddressForm::FarRows,     AddressForm::Loaded,     AddressForm::Argument,
    AddressForm::Plane,       AddressForm::NumberWraps, AddressForm::StepWraps,  AddressForm::Function,
    AddressForm::Factor,      AddressForm::Factor,      AddressForm::WideFactor, AddressForm::TwoNumbers,
    AddressForm::Steps,       AddressForm::NarrowSteps, AddressForm::Bases,      AddressForm::Bases,
    AddressForm::NarrowBases, AddressForm::Shifts,      AddressForm::Offsets,    AddressForm::Offsets,
    AddressForm::Rows,        AddressForm::Rows,        AddressForm::Rows,       AddressForm::Rows,
    AddressForm::LongRows,    AddressForm::LongRows,    AddressForm::LongRows};
inline constexpr std::array kFormsOfBlocks = {AddressForm::ParentTable, AddressForm::ChildTable,
                                              AddressForm::OwnArrays, AddressForm::LoneBlock,
                                              AddressForm::LoneBlock};

}  // namespace klap::differential::random
