// A profiler for tests. NVTX opens it where a program makes its first range, and takes the functions that it
// puts into the table. It writes a line to standard error for each begin and end of a range.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <string>

namespace {

// A domain's handle is its name.
struct Domain {
  std::string name;
};

nvtxDomainHandle_t NVTX_API create(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new Domain{name});
}

const char* name_of(nvtxDomainHandle_t domain) { return reinterpret_cast<Domain*>(domain)->name.c_str(); }

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  std::fprintf(stderr, "nvtx: %s: begin %s\n", name_of(domain), range->message.ascii);
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t domain) {
  std::fprintf(stderr, "nvtx: %s: end\n", name_of(domain));
  return 0;
}

template <class Function>
void put(NvtxFunctionTable table, unsigned place, Function* function) {
  *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const tables = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (tables == nullptr || tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count) == 0 ||
      count <= NVTX_CBID_CORE2_DomainRangePop || count <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  put(functions, NVTX_CBID_CORE2_DomainCreateA, create);
  put(functions, NVTX_CBID_CORE2_DomainRangePushEx, push);
  put(functions, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
