#include "jit/strategy/groups.h"

#include "jit/strategy/device_grid.h"

namespace klap::jit {
namespace {

// The templates get the size of a group from the site, so only the name differs.
class Groups final : public DeviceGrid {
 public:
  [[nodiscard]] std::string_view name() const override { return "groups"; }
};

}  // namespace

const Strategy& groups_strategy() {
  static const auto& strategy = *new Groups;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
