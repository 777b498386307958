// The C API: arguments checked, exceptions turned into status codes, the pipeline's types into the public
// structs.
//
// Structs of callers may be shorter or longer than this library's, since the two are compiled apart. They are
// therefore only ever copied by the size they state, never used in place.
#include "klap/klap.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "container/image.h"
#include "jit/module.h"
#include "runtime/load/module_cache.h"
#include "runtime/queues/queue_shape.h"
#include "runtime/remark_json.h"
#include "settings/config.h"
#include "support/error.h"
#include "support/json.h"
#include "support/own_thread.h"

struct klap_module {
  klap::jit::RewrittenModule rewritten;
  std::string explanation;
};

namespace klap::api {
namespace {

// The shortest structs that there ever were: the structs of KLAP_API_VERSION 1.
constexpr size_t kFirstOptions = offsetof(klap_options, ptxas_options) + sizeof(const char*);
constexpr size_t kFirstVariant = offsetof(klap_variant, child_block_threads) + sizeof(uint32_t);
// A variant that says all that version 2 has to say.
constexpr size_t kSecondVariant = offsetof(klap_variant, child_shared_bytes) + sizeof(uint32_t);
constexpr uint32_t kKnownFlags = KLAP_EXPLAIN_ONLY | KLAP_IGNORE_ENVIRONMENT;

thread_local std::string error_text;
thread_local const char* error_shown = "";

klap_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Parse:
    case ErrorCode::Container:
      return KLAP_ERROR_IMAGE;
    case ErrorCode::Unsupported:
      return KLAP_ERROR_UNSUPPORTED;
    case ErrorCode::Config:
      return KLAP_ERROR_SETTINGS;
    case ErrorCode::Toolchain:
      return KLAP_ERROR_TOOLCHAIN;
    case ErrorCode::Link:
      return KLAP_ERROR_BUILD;
    case ErrorCode::Io:
      return KLAP_ERROR_IO;
    case ErrorCode::Driver:
    case ErrorCode::Internal:
      break;
  }
  return KLAP_ERROR_INTERNAL;
}

klap_status fail(klap_status status, const char* text) noexcept {
  try {
    error_text = text;
    error_shown = error_text.c_str();
  } catch (const std::bad_alloc&) {
    error_shown = "out of memory";
  }
  return status;
}

// A parameter of the call is wrong. This is no Error: errors are about images, and their codes are for these.
struct BadArgument {
  const char* text;
};

template <class Work>
klap_status run(const Work& work) noexcept {
  error_shown = "";
  try {
    work();
    return KLAP_OK;
  } catch (const BadArgument& bad) {
    return fail(KLAP_ERROR_ARGUMENT, bad.text);
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(KLAP_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(KLAP_ERROR_INTERNAL, error.what());
  } catch (...) {
    return fail(KLAP_ERROR_INTERNAL, "unknown exception");
  }
}

// Runs the work as above, and the thread is not cancelled in it.
template <class Work>
klap_status guarded(const Work& work) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const klap_status status = run(work);
  pthread_setcancelstate(before, nullptr);
  return status;
}

klap_options checked(const klap_options* given) {
  if (given == nullptr) throw BadArgument{"options is NULL"};
  if (given->struct_bytes < kFirstOptions)
    throw BadArgument{"options->struct_bytes is not sizeof(klap_options)"};
  klap_options options{};
  std::memcpy(&options, given, std::min(given->struct_bytes, sizeof options));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(given->struct_bytes, sizeof options), bytes + given->struct_bytes,
                  [](unsigned char byte) { return byte != 0; })) {
    throw BadArgument{"options has fields that this version of the library does not know"};
  }
  if (options.compute_capability < 50 || options.compute_capability > 999) {
    throw BadArgument{"options->compute_capability must be like 90 for 9.0"};
  }
  if ((options.flags & ~kKnownFlags) != 0) throw BadArgument{"options->flags has unknown bits"};
  return options;
}

// Settings as the preload library would have them; the caller's own must be right, as there is nobody else
// who could look at them.
settings::Config read_settings(const klap_options& options) {
  settings::Config config = settings::load_config([&](const char* name) -> const char* {
    if ((options.flags & KLAP_IGNORE_ENVIRONMENT) != 0) return nullptr;
    if (options.settings != nullptr && std::strcmp(name, "KLAP_CONFIG") == 0) return nullptr;
    return secure_getenv(name);
  });
  if (options.settings == nullptr) return config;
  const size_t before = config.problems.size();
  settings::apply_config_text(config, options.settings, "settings");
  if (config.problems.size() != before) throw Error(ErrorCode::Config, config.problems[before]);
  return config;
}

jit::Program ptx_program(const std::string& text, const klap_options& options) {
  jit::Program program = jit::program_from_ptx(text, "PTX module");
  if (options.ptxas_options != nullptr) program.units[0].options += std::string(" ") + options.ptxas_options;
  return program;
}

// `image` is readable for `bytes` bytes and ends in a NUL behind them, or its length is not known (0).
jit::Program program_of_image(const void* image, size_t bytes, const klap_options& options) {
  const auto* const text = static_cast<const char*>(image);
  const uint64_t limit = bytes == 0 ? container::kMaxImageBytes : bytes;
  switch (const auto kind = container::classify(image)) {
    case container::ImageKind::Ptx:
      return ptx_program(text, options);
    case container::ImageKind::WrapperV2:
      return jit::program_from_fatbins(container::prelinked_fatbins(image), options.compute_capability);
    case container::ImageKind::WrapperV1:
      return jit::program_from_fatbins({container::wrapper_fatbin(image)}, options.compute_capability);
    case container::ImageKind::Fatbin:
      return jit::program_from_fatbins({container::parse_fatbin(image, limit)}, options.compute_capability);
    case container::ImageKind::Cubin:
      // Linked or not, there is no PTX in it to rewrite.
      return jit::program_from_machine_code(std::string(text, bytes), "cubin");
    default:
      throw Error(ErrorCode::Container, std::string("not device code: ") + container::to_string(kind));
  }
}

jit::Program program_of_file_image(const container::FileImage& image, const klap_options& options) {
  if (image.kind == container::ImageKind::Ptx) return ptx_program(image.text, options);
  if (image.kind == container::ImageKind::Cubin) return jit::program_from_machine_code(image.text, "cubin");
  return jit::program_from_fatbins(image.units, options.compute_capability);
}

bool launches(const jit::Program& program) {
  return std::ranges::any_of(program.units, [](const jit::Unit& unit) { return unit.launches; });
}

jit::Program program_of_file(const char* path, const klap_options& options) {
  const container::File file = container::open_file(path);
  if (file.images.empty()) throw Error(ErrorCode::Container, "no CUDA device code in this file").at(path);
  for (const container::FileImage& image : file.images) {
    jit::Program program = program_of_file_image(image, options);
    if (launches(program)) return program;
  }
  return program_of_file_image(file.images[0], options);
}

std::string explanation(const jit::RewrittenModule& rewritten, const settings::Config& config) {
  Json::Array sites;
  for (const jit::SiteRemark& remark : rewritten.remarks) sites.push_back(runtime::remark_json(remark));
  return Json(Json::Object{{"sites", std::move(sites)}, {"problems", config.problems}}).text();
}

std::unique_ptr<klap_module> make_module(const jit::Program& program, const klap_options& options) {
  const settings::Config config = read_settings(options);
  auto module = std::make_unique<klap_module>();
  jit::Request request;
  request.sm = options.compute_capability;
  request.slicing = false;      // callers launch whole grids
  request.blocks = false;       // in any blocks
  request.work_queues = false;  // callers know one kind of queue, with one head
  request.double_buffered = false;
  request.promoting = false;
  request.by_sizes = false;
  request.fusing = false;
  // An embedding program launches parent and consumer itself; there is no way yet to tell it of parents that
  // need no more than to be launched.
  request.warp_aggregation = false;
  request.setting = [&config](std::string_view key, const std::string& parent, const std::string& child) {
    return config.setting_for(key, parent, child);
  };
  request.configuration = settings::canonical_text(config);
  if (!config.disabled && (options.flags & KLAP_EXPLAIN_ONLY) == 0) {
    module->rewritten = jit::rewrite_module(program, request);
  } else if (!config.disabled) {
    module->rewritten.remarks = jit::explain_module(program, request);
  }
  module->explanation = explanation(module->rewritten, config);
  return module;
}

klap_variant public_variant(const jit::Variant& variant, const jit::ChildQueue& queue) {
  return {.struct_bytes = sizeof(klap_variant),
          .parent = variant.parent.c_str(),
          .parent_variant = variant.parent_variant.c_str(),
          .child = queue.child.c_str(),
          .consumer = queue.consumer.c_str(),
          .launcher = variant.launcher == jit::Launcher::Device ? KLAP_LAUNCHER_DEVICE : KLAP_LAUNCHER_HOST,
          .parent_param_count = variant.parent_param_count,
          .parent_param_bytes = variant.parent_param_bytes,
          .queue_param_offset = variant.queue_param_offset,
          .record_bytes = queue.record_bytes,
          .consumer_block_threads = queue.consumer_block_threads,
          .child_block_threads = queue.child_block_threads,
          .granularity = jit::to_string(variant.granularity),
          .group_blocks = variant.group_blocks,
          .queue_count = static_cast<uint32_t>(variant.queues.size()),
          .child_shared_bytes = queue.child_shared_bytes};
}

// Capacity 0 when the arguments are wrong.
runtime::QueueShape queue_shape(const klap_variant* variant, uint64_t records) {
  if (variant == nullptr || variant->struct_bytes < kFirstVariant || variant->record_bytes == 0 ||
      records > KLAP_MAX_RECORDS) {
    return {};
  }
  // A caller whose struct ends before that was never given a variant that has groups.
  const uint32_t blocks = variant->struct_bytes < kSecondVariant ? 0 : variant->group_blocks;
  const uint64_t groups = blocks == 0 ? 0 : (records + blocks - 1) / blocks;  // of one thread a block
  return {records, runtime::QueueShape::aligned_record(variant->record_bytes), groups};
}

static_assert(sizeof(KlapQueue) <= KLAP_QUEUE_HEADER_BYTES);

}  // namespace
}  // namespace klap::api

using namespace klap;

extern "C" {

uint32_t klap_api_version(void) { return KLAP_API_VERSION; }
const char* klap_version(void) { return KLAP_VERSION; }

klap_status klap_rewrite(const void* image, size_t image_bytes, const klap_options* given,
                         klap_module** module) {
  if (module != nullptr) *module = nullptr;
  return api::guarded([&] {
    if (image == nullptr || module == nullptr) throw api::BadArgument{"image or module is NULL"};
    const klap_options options = api::checked(given);
    // A copy of a known length ends in a NUL, so that no text is read beyond it, whatever it holds. Payloads
    // of a fatbin point into it, and the program made from them copies those.
    const std::string copy(static_cast<const char*>(image), image_bytes);
    if (image_bytes != 0 && image_bytes < 8) throw Error(ErrorCode::Container, "not device code: too short");
    const void* const start = image_bytes == 0 ? image : copy.data();
    run_in_own_thread([&] {
      *module = api::make_module(api::program_of_image(start, image_bytes, options), options).release();
    });
  });
}

klap_status klap_rewrite_file(const char* path, const klap_options* given, klap_module** module) {
  if (module != nullptr) *module = nullptr;
  return api::guarded([&] {
    if (path == nullptr || module == nullptr) throw api::BadArgument{"path or module is NULL"};
    const klap_options options = api::checked(given);
    run_in_own_thread(
        [&] { *module = api::make_module(api::program_of_file(path, options), options).release(); });
  });
}

void klap_module_free(klap_module* module) { delete module; }

const void* klap_module_image(const klap_module* module, size_t* bytes) {
  const bool some = module != nullptr && !module->rewritten.cubin.empty();
  if (bytes != nullptr) *bytes = some ? module->rewritten.cubin.size() : 0;
  return some ? module->rewritten.cubin.data() : nullptr;
}

size_t klap_module_variant_count(const klap_module* module) {
  return module == nullptr ? 0 : module->rewritten.variants.size();
}

klap_status klap_module_variant(const klap_module* module, size_t index, klap_variant* variant) {
  return klap_module_variant_queue(module, index, 0, variant);
}

klap_status klap_module_variant_queue(const klap_module* module, size_t index, size_t queue,
                                      klap_variant* variant) {
  return api::guarded([&] {
    if (index >= klap_module_variant_count(module))
      throw api::BadArgument{"there is no variant of that index"};
    const jit::Variant& found = module->rewritten.variants[index];
    if (queue >= found.queues.size()) throw api::BadArgument{"the variant has no queue of that index"};
    if (variant == nullptr || variant->struct_bytes < api::kFirstVariant) {
      throw api::BadArgument{"variant->struct_bytes is not sizeof(klap_variant)"};
    }
    const size_t room = variant->struct_bytes;
    klap_variant made = api::public_variant(found, found.queues[queue]);
    const bool says_more = made.group_blocks != 0 || made.queue_count > 1 || made.child_shared_bytes != 0;
    if (says_more && room < api::kSecondVariant) {
      throw api::BadArgument{
          "variant->struct_bytes is of a version that knows no groups, several queues or shared memory"};
    }
    made.struct_bytes = room;
    std::memset(static_cast<void*>(variant), 0, room);
    std::memcpy(variant, &made, std::min(room, sizeof made));
  });
}

const char* klap_module_explain(const klap_module* module) {
  return module == nullptr ? "" : module->explanation.c_str();
}

uint64_t klap_queue_bytes(const klap_variant* variant, uint64_t records) {
  const runtime::QueueShape shape = api::queue_shape(variant, records);
  return shape.capacity == 0 ? 0 : shape.bytes();
}

size_t klap_queue_header(const klap_variant* variant, uint64_t records, uint64_t device_address, void* header,
                         size_t header_bytes) {
  const runtime::QueueShape shape = api::queue_shape(variant, records);
  if (shape.capacity == 0 || header == nullptr || header_bytes < sizeof(KlapQueue)) return 0;
  const KlapQueue queue = shape.header(device_address, 0);
  std::memcpy(header, &queue, sizeof queue);
  return sizeof queue;
}

const char* klap_error_text(void) { return api::error_shown; }

}  // extern "C"
