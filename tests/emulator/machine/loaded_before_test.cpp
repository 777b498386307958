// Modules that one machine after another loads: linked once, and as new each time.
#include "emulator/machine/loaded_before.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emulator/machine/machine.h"

namespace klap::emulator {
namespace {

// What it says is different in each test, which must not find what another one has loaded.
Machine::UnitText unit(const std::string& test, int first = 7) {
  return {"unit", ".version 8.0\n.target sm_90\n.address_size 64\n// " + test +
                      "\n.visible .global .align 4 .u32 values[3] = {" + std::to_string(first) +
                      ", 8, 9};\n.visible .global .align 64 .u32 nothing[4];\n"
                      ".visible .entry kernel() {\n  .reg .u32 %r<2>;\n  mov.u32 %r1, values;\n  ret;\n}\n"};
}

uint32_t value(const Image& image, size_t variable, size_t element) {
  uint32_t read = 0;
  std::memcpy(&read, pointer_to(image.variables.at(variable).address) + 4 * element, 4);
  return read;
}

void write(const Image& image, size_t variable, size_t element, uint32_t value) {
  std::memcpy(pointer_to(image.variables.at(variable).address) + 4 * element, &value, 4);
}

uint64_t found() { return LoadedBefore::images().found(); }

TEST(LoadedBefore, IsAsNewForTheNextMachine) {
  const uint64_t before = found();
  for (int i = 0; i < 3; ++i) {
    Machine machine({});
    const auto image = machine.load({unit("as new")});
    EXPECT_EQ(before + static_cast<uint64_t>(i), found());
    EXPECT_EQ(7U, value(*image, 0, 0));
    EXPECT_EQ(9U, value(*image, 0, 2));
    EXPECT_EQ(0U, value(*image, 1, 3));
    EXPECT_NE(nullptr, machine.memory().find(image->variables[0].address, 12));
    write(*image, 0, 0, 1);
    write(*image, 0, 2, 1);
    write(*image, 1, 3, 1);
  }
}

TEST(LoadedBefore, IsNotTheSameTextWithAnotherValueOrName) {
  const uint64_t before = found();
  for (const int first : {1, 2}) {
    Machine machine({});
    EXPECT_EQ(static_cast<uint32_t>(first), value(*machine.load({unit("another", first)}), 0, 0));
  }
  Machine machine({});
  Machine::UnitText renamed = unit("another", 2);
  renamed.name = "other";
  EXPECT_EQ("other", machine.load({renamed})->functions.at(0)->unit);
  EXPECT_EQ(before, found());
}

// Functions are told apart by their addresses: what a machine remembers of one must not be said of another.
TEST(LoadedBefore, IsNotGivenToOneMachineTwice) {
  const uint64_t before = found();
  Machine machine({});
  const auto first = machine.load({unit("twice")}), second = machine.load({unit("twice")});
  EXPECT_NE(first, second);
  EXPECT_NE(first->variables[0].address, second->variables[0].address);
  machine.unload(first);
  machine.load({unit("twice")});
  EXPECT_EQ(before, found());
}

TEST(LoadedBefore, IsNotGivenToTwoMachinesAtATime) {
  const uint64_t before = found();
  Machine one({}), other({});
  const auto first = one.load({unit("at a time")}), second = other.load({unit("at a time")});
  EXPECT_NE(first, second);
  EXPECT_EQ(before, found());
}

// Where something else has its place, it is linked for another one, and nothing of the attempt is left.
TEST(LoadedBefore, IsLinkedWhereItCannotLieAsBefore) {
  uint64_t used = 0, address = 0;
  {
    Machine machine({});
    address = machine.load({unit("elsewhere")})->variables[0].address;
    used = machine.memory().used();
  }
  const uint64_t before = found();
  Machine machine({});
  ASSERT_TRUE(machine.memory().allocate(256, Owner::Pinned));
  const auto image = machine.load({unit("elsewhere")});
  EXPECT_EQ(before, found());
  EXPECT_NE(address, image->variables[0].address);
  EXPECT_EQ(used, machine.memory().used());
  EXPECT_EQ(7U, value(*image, 0, 0));
}

}  // namespace
}  // namespace klap::emulator
