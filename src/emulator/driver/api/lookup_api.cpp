// Finding the driver's functions, and the names of its errors.
#include <algorithm>
#include <cstring>
#include <span>

#include "emulator/device_runtime/device_attributes.h"
#include "emulator/driver/api.h"
#include "emulator/driver/functions.h"

using namespace klap::emulator::driver;

namespace {

struct Found {
  const ApiFunction* function = nullptr;
  bool too_new = false;  // there is one of that name, for later versions
};

// The newest that a program of that version can call; of the wanted form, where there is one.
Found find(const char* name, int version, bool per_thread) {
  Found found;
  for (const ApiFunction& f : std::span(api_functions, static_cast<size_t>(api_function_count))) {
    if (std::strcmp(f.name, name) != 0 || (f.per_thread && !per_thread)) continue;
    if (f.since <= version) {
      found.function = &f;
    } else {
      found.too_new = true;
    }
  }
  return found;
}

// Names that carry their version are taken as they are.
const ApiFunction* find_symbol(const char* symbol) {
  for (const ApiFunction& f : std::span(api_functions, static_cast<size_t>(api_function_count))) {
    if (std::strcmp(f.symbol, symbol) == 0) return &f;
  }
  return nullptr;
}

CUresult get_proc_address(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || function == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Found found = find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  const ApiFunction* const chosen =
      found.function == nullptr && !found.too_new ? find_symbol(symbol) : found.function;
  *function = chosen != nullptr ? chosen->address : nullptr;
  if (status != nullptr) {
    *status = chosen != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : found.too_new   ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return chosen != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

struct ErrorName {
  CUresult code;
  const char* name;
};

constexpr ErrorName kErrors[] = {
#define X(name) {name, #name},
#include "emulator/driver/errors.def"
#undef X
};

const ErrorName* find_error(CUresult code) {
  const auto* const found = std::ranges::find(kErrors, code, &ErrorName::code);
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

KLAP_DRIVER_API cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  return get_proc_address(symbol, function, version, flags, status);
}

KLAP_DRIVER_API cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return get_proc_address(symbol, function, version, flags, nullptr);
}

// It finds the forms for a default stream of each thread if no flags are given.
KLAP_DRIVER_API cuGetProcAddress_v2_ptsz(const char* symbol, void** function, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return get_proc_address(symbol, function, version, flags == 0 ? kPerThread : flags, status);
}

// Tables of functions that no header describes: there are none here. The CUDA runtime needs them, so programs
// that use it cannot run on this driver.
KLAP_DRIVER_API cuGetExportTable(const void** table, const CUuuid*) {
  if (table == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

KLAP_DRIVER_API cuGetErrorName(CUresult code, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* const found = find_error(code);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

KLAP_DRIVER_API cuGetErrorString(CUresult code, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool is_known = find_error(code) != nullptr;
  // The texts are literals, hence ended by a NUL.
  *text = is_known ? klap::emulator::runtime_error_name(static_cast<int>(code)).data() : nullptr;
  return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
