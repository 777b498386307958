#include "runtime/remark_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "support/demangle.h"

namespace klap::runtime {

namespace {

Json source_json(const ptx::SourcePlace& source) {
  if (!source.is_known()) return {};
  return Json::Object{{"file", source.file}, {"line", source.line}, {"column", source.column}};
}

}  // namespace

Json remark_json(const jit::SiteRemark& remark) {
  Json::Object facts;
  for (const jit::Fact& fact : remark.facts) facts[fact.key] = fact.value;
  Json::Object site = {{"unit", remark.unit},
                       {"line", remark.line},
                       {"column", remark.column},
                       {"source", source_json(remark.source)},
                       {"facts", std::move(facts)},
                       {"parent", remark.parent},
                       {"parent_demangled", demangle(remark.parent)},
                       {"child", remark.child},
                       {"child_demangled", demangle(remark.child)},
                       {"notes", remark.notes},
                       {"detail", remark.detail},
                       {"verdict", remark.rewritten ? "rewritten" : "left"}};
  if (remark.rewritten) {
    site["granularity"] = remark.granularity;
    site["launcher"] = remark.launcher;
    if (remark.group_blocks != 0) site["group_blocks"] = remark.group_blocks;
  } else {
    site["reason"] = remark.reason;
  }
  return site;
}

nlohmann::json to_json(const jit::SiteRemark& remark) {
  return nlohmann::json::parse(remark_json(remark).text());
}

}  // namespace klap::runtime
