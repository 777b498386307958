// This file finds the PTX in an image that a program hands to the driver.
//
// It accepts the forms that the driver accepts (PTX text, fatbins, wrappers as nvcc makes them), if there is
// PTX in them for the device. If there are several, it takes the one that the driver would compile. Machine
// code cannot be run. Images made by this driver's own linker look like machine code and hold PTX. The device
// runtime's own unit is left out: the machine has one built in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "emulator/driver/images/module.h"

namespace klap::emulator::driver {

// Fails with CUDA_ERROR_NO_BINARY_FOR_GPU if there is no PTX for the device. Throws Error(Container) for a
// damaged image, and Error(Parse) for PTX text that is for other devices.
Units read_image(const void* image, uint32_t compute_capability);
// The bytes of a file: also host object files and archives of them, as cuLinkAddFile takes.
Units read_file_image(std::string_view bytes, const std::string& name, uint32_t compute_capability);

// PTX text as a unit. Throws as read_image() does.
Machine::UnitText ptx_unit(std::string name, std::string text, uint32_t compute_capability);

// Fails with CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC if the settings ask for that, and a unit waits for children.
void refuse_waits(const Process& process, const Units& units);

// An image that holds the units: an ELF file as the driver's linker makes it. It has a section of code for
// each function and one of parameters for each kernel, so that tools find these.
std::string make_linked_image(const Units& units, const Image& image, uint32_t compute_capability);
// The units in such an image; nothing for any other ELF file.
std::optional<Units> read_linked_image(const void* image, uint64_t limit);

}  // namespace klap::emulator::driver
