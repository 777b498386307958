// The driver's linker, as the program uses it (runtime/load/link_calls.h).
#include "runtime/load/link_calls.h"
#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using shim::after;
using shim::before;
using shim::in_place_or_after;

namespace {

using runtime::JitOptions;

auto created(const CUlinkState* link, const JitOptions& options) {
  return [=] { runtime::link_created(*link, options); };
}

auto data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                const JitOptions& options) {
  return [=] { runtime::link_data_added(link, type, data, bytes, name, options); };
}

auto file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options) {
  return [=] { runtime::link_file_added(link, type, path, options); };
}

// Code that waits for its children is added by klap_jit.
auto waiting_data(const char* entry_point, CUlinkState link, CUjitInputType type, const void* data,
                  size_t bytes, const char* name, const JitOptions& options) {
  return [=] { return runtime::add_waiting_data(entry_point, link, type, data, bytes, name, options); };
}

auto waiting_file(const char* entry_point, CUlinkState link, CUjitInputType type, const char* path,
                  const JitOptions& options) {
  return [=] { return runtime::add_waiting_file(entry_point, link, type, path, options); };
}

}  // namespace

extern "C" {

// The first versions differ from the second ones in nothing that a caller sees. Programs that look functions
// up by their plain names get them.
KLAP_EXPORT CUresult CUDAAPI cuLinkCreate(unsigned count, CUjit_option* options, void** values,
                                          CUlinkState* link) {
  return after<&Driver::link_create_v1>("cuLinkCreate", created(link, {options, values, count}), count,
                                        options, values, link);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values,
                                             CUlinkState* link) {
  return after<&Driver::link_create>("cuLinkCreate_v2", created(link, {options, values, count}), count,
                                     options, values, link);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkAddData(CUlinkState link, CUjitInputType type, void* data, size_t bytes,
                                           const char* name, unsigned count, CUjit_option* options,
                                           void** values) {
  return in_place_or_after<&Driver::link_add_data_v1>(
      "cuLinkAddData", waiting_data("cuLinkAddData", link, type, data, bytes, name, {options, values, count}),
      data_added(link, type, data, bytes, name, {options, values, count}), link, type, data, bytes, name,
      count, options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkAddData_v2(CUlinkState link, CUjitInputType type, void* data, size_t bytes,
                                              const char* name, unsigned count, CUjit_option* options,
                                              void** values) {
  return in_place_or_after<&Driver::link_add_data>(
      "cuLinkAddData_v2",
      waiting_data("cuLinkAddData_v2", link, type, data, bytes, name, {options, values, count}),
      data_added(link, type, data, bytes, name, {options, values, count}), link, type, data, bytes, name,
      count, options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkAddFile(CUlinkState link, CUjitInputType type, const char* path,
                                           unsigned count, CUjit_option* options, void** values) {
  return in_place_or_after<&Driver::link_add_file_v1>(
      "cuLinkAddFile", waiting_file("cuLinkAddFile", link, type, path, {options, values, count}),
      file_added(link, type, path, {options, values, count}), link, type, path, count, options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState link, CUjitInputType type, const char* path,
                                              unsigned count, CUjit_option* options, void** values) {
  return in_place_or_after<&Driver::link_add_file>(
      "cuLinkAddFile_v2", waiting_file("cuLinkAddFile_v2", link, type, path, {options, values, count}),
      file_added(link, type, path, {options, values, count}), link, type, path, count, options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuLinkComplete(CUlinkState link, void** image, size_t* bytes) {
  const auto complete = [&] { runtime::link_completed(link, *image, bytes != nullptr ? *bytes : SIZE_MAX); };
  return after<&Driver::link_complete>("cuLinkComplete", complete, link, image, bytes);
}

// Its handle may be another link's as soon as it is destroyed.
KLAP_EXPORT CUresult CUDAAPI cuLinkDestroy(CUlinkState link) {
  return before<&Driver::link_destroy>(
      "cuLinkDestroy", [&] { runtime::link_about_to_end(link); }, link);
}

}  // extern "C"
