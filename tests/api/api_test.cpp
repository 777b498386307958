// The C API as a program meets it: what comes back for every kind of image, what is said about wrong calls,
// and that structs of other versions are met with care. The example, embed.c, runs as a program of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "klap/klap.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using Module = std::unique_ptr<klap_module, decltype(&klap_module_free)>;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Options that do not depend on whoever runs the tests.
klap_options options(uint32_t flags = 0, const char* settings = nullptr) {
  klap_options made{};
  made.struct_bytes = sizeof made;
  made.compute_capability = 90;
  made.flags = flags | KLAP_IGNORE_ENVIRONMENT;
  made.settings = settings;
  return made;
}

Module rewrite(const std::string& image, const klap_options& with) {
  klap_module* module = nullptr;
  EXPECT_EQ(KLAP_OK, klap_rewrite(image.data(), image.size(), &with, &module)) << klap_error_text();
  EXPECT_STREQ("", klap_error_text());
  return {module, klap_module_free};
}

size_t image_bytes(const Module& module) {
  size_t bytes = 1;
  const void* const image = klap_module_image(module.get(), &bytes);
  EXPECT_EQ(image == nullptr, bytes == 0);
  return bytes;
}

// Fails as expected, with a text, and without a module.
void expect_failure(klap_status expected, const std::string& image, const klap_options& with,
                    const std::string& text) {
  auto* module = reinterpret_cast<klap_module*>(1);
  EXPECT_EQ(expected, klap_rewrite(image.data(), image.size(), &with, &module)) << text;
  EXPECT_EQ(nullptr, module);
  EXPECT_THAT(klap_error_text(), HasSubstr(text));
}

TEST(Api, VersionIsTheHeaders) {
  EXPECT_EQ(KLAP_API_VERSION, klap_api_version());
  EXPECT_STREQ(KLAP_VERSION, klap_version());
}

TEST(Api, PtxFatbinAndProgramAreRewritten) {
  for (const char* const name : {"launches.ptx", "launches.fatbin", "program"}) {
    SCOPED_TRACE(name);
    klap_module* raw = nullptr;
    const klap_options with = options();
    ASSERT_EQ(KLAP_OK, klap_rewrite_file((PROGRAMS + std::string(name)).c_str(), &with, &raw))
        << klap_error_text();
    const Module module(raw, klap_module_free);
    EXPECT_GT(image_bytes(module), 1000u);
    EXPECT_EQ(0, std::memcmp(klap_module_image(raw, nullptr),
                             "\x7f"
                             "ELF",
                             4));
    EXPECT_EQ(1u, klap_module_variant_count(raw));
  }
}

TEST(Api, VariantSaysHowToLaunch) {
  const Module module = rewrite(read(PROGRAMS "launches.ptx"), options());
  klap_variant variant{};
  variant.struct_bytes = sizeof variant;
  ASSERT_EQ(KLAP_OK, klap_module_variant(module.get(), 0, &variant));
  EXPECT_EQ(sizeof variant, variant.struct_bytes);
  EXPECT_STREQ("_Z6parentPii", variant.parent);
  EXPECT_STREQ("_Z5childPii", variant.child);
  EXPECT_EQ(uint32_t{KLAP_LAUNCHER_HOST}, variant.launcher);
  EXPECT_EQ(2u, variant.parent_param_count);
  EXPECT_EQ(12u, variant.parent_param_bytes);
  EXPECT_EQ(16u, variant.queue_param_offset);
  EXPECT_EQ(32u, variant.child_block_threads);
  EXPECT_EQ(0u, variant.child_shared_bytes);
  EXPECT_EQ(0u, variant.consumer_block_threads % 32);
  const std::string image(static_cast<const char*>(klap_module_image(module.get(), nullptr)),
                          image_bytes(module));
  EXPECT_THAT(image, HasSubstr(std::string(".text.") + variant.parent_variant));
  EXPECT_THAT(image, HasSubstr(std::string(".text.") + variant.consumer));
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_module_variant(module.get(), 1, &variant));
  EXPECT_THAT(klap_error_text(), HasSubstr("no variant"));
}

TEST(Api, ExplanationHasEverySiteAndItsReason) {
  const Module module = rewrite(read(PROGRAMS "launches.ptx"), options());
  const json sites = json::parse(klap_module_explain(module.get()))["sites"];
  std::map<std::string, std::string> verdicts;
  for (const json& site : sites) verdicts[site["parent_demangled"]] = site["verdict"];
  EXPECT_EQ((std::map<std::string, std::string>{{"parent(int*, int)", "rewritten"},
                                                {"looping_parent(int*, int)", "left"}}),
            verdicts);
}

TEST(Api, ExplainOnlyBuildsNothing) {
  const Module module = rewrite(read(PROGRAMS "launches.ptx"), options(KLAP_EXPLAIN_ONLY));
  EXPECT_EQ(0u, image_bytes(module));
  EXPECT_EQ(0u, klap_module_variant_count(module.get()));
  EXPECT_EQ(2u, json::parse(klap_module_explain(module.get()))["sites"].size());
}

TEST(Api, SettingsAreThoseOfTheConfigFile) {
  const Module module = rewrite(read(PROGRAMS "launches.ptx"),
                                options(0, "[[kernel]]\nname = \"parent(*\"\ngranularity = \"none\"\n"));
  EXPECT_EQ(0u, image_bytes(module));
  EXPECT_THAT(klap_module_explain(module.get()), HasSubstr("config-none"));
  expect_failure(KLAP_ERROR_SETTINGS, read(FIXTURE), options(0, "[defaults]\ngranularty = \"none\"\n"),
                 "settings:2:1: unknown key 'granularty' in [defaults] (fix: did you mean 'granularity'?");
}

klap_variant variant_with(const char* settings) {
  static std::map<std::string, Module> kept;  // the names in a variant are the module's
  const klap_options with = options(0, settings);
  const Module& module = kept.emplace(settings, rewrite(read(PROGRAMS "launches.ptx"), with)).first->second;
  klap_variant variant{};
  variant.struct_bytes = sizeof variant;
  EXPECT_EQ(KLAP_OK, klap_module_variant(module.get(), 0, &variant)) << settings;
  return variant;
}

// A module is kept for the process, and must be found again only with the settings it was made for.
TEST(Api, OtherSettingsOfTheSameImageGiveAnotherModule) {
  EXPECT_EQ(256u, variant_with("[defaults]\nconsumer_threads = 256\n").consumer_block_threads);
  EXPECT_EQ(512u, variant_with("[defaults]\nconsumer_threads = 512\n").consumer_block_threads);
  EXPECT_LT(variant_with("[defaults]\noptimise = \"+pack_records\"\n").record_bytes,
            variant_with("[defaults]\noptimise = \"-pack_records\"\n").record_bytes);
  EXPECT_EQ(256u, variant_with("[[kernel]]\nname = \"*\"\nconsumer_threads = 256\n").consumer_block_threads);
}

TEST(Api, EnvironmentCountsUnlessItIsIgnored) {
  setenv("KLAP_GRANULARITY", "none", 1);
  klap_options with = options();
  EXPECT_NE(0u, image_bytes(rewrite(read(FIXTURE), with)));
  with.flags = 0;
  EXPECT_EQ(0u, image_bytes(rewrite(read(FIXTURE), with)));
  unsetenv("KLAP_GRANULARITY");
  EXPECT_NE(0u, image_bytes(rewrite(read(FIXTURE), with)));
  setenv("KLAP_DISABLE", "1", 1);
  EXPECT_EQ(0u, image_bytes(rewrite(read(FIXTURE), with)));
  unsetenv("KLAP_DISABLE");
}

TEST(Api, PtxasOptionsReachThePtx) {
  klap_options with = options();
  const auto image = [&] {
    const Module module = rewrite(read(FIXTURE), with);
    return std::string(static_cast<const char*>(klap_module_image(module.get(), nullptr)),
                       image_bytes(module));
  };
  const std::string plain = image();
  with.ptxas_options = "-maxrregcount=16";
  EXPECT_NE(plain, image());
}

TEST(Api, NothingToRewriteIsNoFailure) {
  klap_module* raw = nullptr;
  const klap_options with = options();
  ASSERT_EQ(KLAP_OK, klap_rewrite_file(PROGRAMS "whole_program", &with, &raw)) << klap_error_text();
  const Module module(raw, klap_module_free);
  EXPECT_EQ(0u, image_bytes(module));
  EXPECT_EQ(json::array(), json::parse(klap_module_explain(raw))["sites"]);
}

TEST(Api, LinkedImageGivenAgainHasNothingToRewrite) {
  const Module first = rewrite(read(FIXTURE), options());
  const std::string cubin(static_cast<const char*>(klap_module_image(first.get(), nullptr)),
                          image_bytes(first));
  EXPECT_EQ(0u, image_bytes(rewrite(cubin, options())));
}

TEST(Api, UnknownLengthIsReadToItsEnd) {
  const std::string ptx = read(FIXTURE);
  const klap_options with = options();
  klap_module* raw = nullptr;
  ASSERT_EQ(KLAP_OK, klap_rewrite(ptx.c_str(), 0, &with, &raw)) << klap_error_text();
  const Module module(raw, klap_module_free);
  EXPECT_EQ(1u, klap_module_variant_count(raw));
}

TEST(Api, BadImagesAreNamed) {
  expect_failure(KLAP_ERROR_IMAGE, "short", options(), "too short");
  expect_failure(KLAP_ERROR_IMAGE, "this is no device code", options(), "not device code");
  std::string fatbin = read(PROGRAMS "launches.fatbin");
  expect_failure(KLAP_ERROR_IMAGE, fatbin.substr(0, fatbin.size() / 2), options(), "fatbin");
  std::string ptx = read(FIXTURE);
  expect_failure(KLAP_ERROR_IMAGE, ptx.substr(0, ptx.rfind('}')), options(), "PTX module");
  // White space to the last byte: only the length says where it ends.
  expect_failure(KLAP_ERROR_IMAGE, std::string(4096, ' '), options(), "not device code");
  klap_module* module = nullptr;
  const klap_options with = options();
  EXPECT_EQ(KLAP_ERROR_IO, klap_rewrite_file("/nonexistent/file", &with, &module));
  EXPECT_THAT(klap_error_text(), HasSubstr("/nonexistent/file"));
}

TEST(Api, WrongCallsAreRefused) {
  const std::string image = read(FIXTURE);
  klap_options with = options();
  klap_module* module = nullptr;
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_rewrite(nullptr, 1, &with, &module));
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_rewrite(image.data(), image.size(), &with, nullptr));
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_rewrite(image.data(), image.size(), nullptr, &module));
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_rewrite_file(nullptr, &with, &module));
  with.compute_capability = 9;
  expect_failure(KLAP_ERROR_ARGUMENT, image, with, "compute_capability");
  with = options(1u << 31);
  expect_failure(KLAP_ERROR_ARGUMENT, image, with, "flags");
  with = options();
  with.struct_bytes = 8;
  expect_failure(KLAP_ERROR_ARGUMENT, image, with, "struct_bytes");
  klap_module_free(nullptr);
  EXPECT_EQ(0u, klap_module_variant_count(nullptr));
  EXPECT_EQ(nullptr, klap_module_image(nullptr, nullptr));
}

// A program compiled against a later header, whose structs are longer.
TEST(Api, LongerStructsAreMetWithCare) {
  struct LaterOptions {
    klap_options now;
    uint64_t later;
  } with{options(), 0};
  with.now.struct_bytes = sizeof with;
  const Module module = rewrite(read(FIXTURE), with.now);
  with.later = 1;
  expect_failure(KLAP_ERROR_ARGUMENT, read(FIXTURE), with.now, "does not know");

  struct LaterVariant {
    klap_variant now;
    uint64_t later, behind;
  } variant{};
  variant.later = variant.behind = 7;
  variant.now.struct_bytes = offsetof(LaterVariant, behind);
  ASSERT_EQ(KLAP_OK, klap_module_variant(module.get(), 0, &variant.now));
  EXPECT_EQ(0u, variant.later);
  EXPECT_EQ(7u, variant.behind);
  variant.now.struct_bytes = 8;
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_module_variant(module.get(), 0, &variant.now));
}

TEST(Api, QueueIsLaidOutInItsOwnMemory) {
  const Module module = rewrite(read(FIXTURE), options());
  klap_variant variant{};
  variant.struct_bytes = sizeof variant;
  ASSERT_EQ(KLAP_OK, klap_module_variant(module.get(), 0, &variant));
  const uint64_t few = klap_queue_bytes(&variant, 1), many = klap_queue_bytes(&variant, 1000001);
  EXPECT_GE(few, variant.record_bytes + 8u);
  EXPECT_GE(many - few, uint64_t{1000000} * (variant.record_bytes + 8));
  EXPECT_EQ(0u, klap_queue_bytes(&variant, 0));
  EXPECT_EQ(0u, klap_queue_bytes(&variant, 1u << 24));
  EXPECT_EQ(0u, klap_queue_bytes(nullptr, 1));

  std::array<unsigned char, KLAP_QUEUE_HEADER_BYTES> header{};
  EXPECT_EQ(0u, klap_queue_header(&variant, 5, 0x1000, header.data(), 8));
  const size_t bytes = klap_queue_header(&variant, 5, 0x100000, header.data(), header.size());
  ASSERT_GT(bytes, 8u);
  ASSERT_LE(bytes, header.size());
  uint64_t packed = 1;
  std::memcpy(&packed, header.data(), sizeof packed);
  EXPECT_EQ(0u, packed) << "an empty queue";
}

TEST(Api, QueueOfAVariantWithGroupsHasRoomToCountThem) {
  klap_options with = options();
  with.settings = "[defaults]\ngranularity = \"multiblock\"\nmultiblock = 4\n";
  const Module module = rewrite(read(FIXTURE), with);
  klap_variant variant{};
  variant.struct_bytes = sizeof variant;
  ASSERT_EQ(KLAP_OK, klap_module_variant(module.get(), 0, &variant));
  EXPECT_STREQ("multiblock", variant.granularity);
  EXPECT_EQ(4u, variant.group_blocks);
  EXPECT_EQ(uint32_t{KLAP_LAUNCHER_DEVICE}, variant.launcher);
  klap_variant of_grid = variant;
  of_grid.group_blocks = 0;
  // A block has at least one thread.
  EXPECT_GE(klap_queue_bytes(&variant, 1 << 20), klap_queue_bytes(&of_grid, 1 << 20) + (1 << 18) * 16u);

  variant.struct_bytes = offsetof(klap_variant, granularity);  // of version 1
  EXPECT_EQ(KLAP_ERROR_ARGUMENT, klap_module_variant(module.get(), 0, &variant));
  EXPECT_THAT(klap_error_text(), HasSubstr("groups"));
}

// ---- the example ----

struct Outcome {
  int exit_code;
  std::string text;
};

Outcome embed(const std::string& arguments) {
  const std::string line =
      "FAKE_CUDA_LOG=\"$PWD/embed-calls.$$\"; export FAKE_CUDA_LOG; " EMBED " " + arguments +
      " 2>&1; code=$?; cat \"$FAKE_CUDA_LOG\" 2>/dev/null; rm -f \"$FAKE_CUDA_LOG\"; exit $code";
  Outcome outcome{};
  FILE* const pipe = popen(line.c_str(), "r");
  std::array<char, 4096> buffer{};
  for (size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;)
    outcome.text.append(buffer.data(), got);
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

TEST(Example, RewritesTheFixture) {
  const Outcome outcome = embed(FIXTURE);
  EXPECT_EQ(0, outcome.exit_code);
  EXPECT_THAT(outcome.text, HasSubstr("variant of "));
}

TEST(Example, LaunchesVariantAndConsumerOnOneQueue) {
  for (const char* const image : {PROGRAMS "launches.ptx", PROGRAMS "launches.fatbin", PROGRAMS "program"}) {
    SCOPED_TRACE(image);
    const Outcome outcome = embed(std::string(image) + " " FAKE_CUDA);
    EXPECT_EQ(0, outcome.exit_code) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("launched: "));
    const size_t parent = outcome.text.find("cuLaunchKernel ");
    ASSERT_NE(std::string::npos, parent) << outcome.text;
    const size_t consumer = outcome.text.find("cuLaunchKernel ", parent + 1);
    ASSERT_NE(std::string::npos, consumer) << outcome.text;
    // Three parameters of the parent, of which the last is the consumer's only one.
    const auto params = [&](size_t from) {
      const size_t begin = outcome.text.find("params=", from) + 7;
      return outcome.text.substr(begin, outcome.text.find_first_of(" \n", begin) - begin);
    };
    EXPECT_THAT(params(parent), testing::EndsWith(":" + params(consumer)));
  }
}

TEST(Example, FailureSaysWhy) {
  const Outcome outcome = embed("/nonexistent/image.ptx");
  EXPECT_EQ(1, outcome.exit_code);
  EXPECT_THAT(outcome.text, HasSubstr("/nonexistent/image.ptx: cannot be read"));
  EXPECT_EQ(2, embed("").exit_code);
}

}  // namespace
