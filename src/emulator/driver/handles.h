// Objects that the program holds by pointer. A pointer is believed only if it is known, so a wrong or an old
// one is an error and not a crash.
//
// The owner of the handles need not know the objects' types. Only make() does, which also notes how to
// destroy its object.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

namespace klap::emulator::driver {

template <typename T>
class Handles {
 public:
  template <typename... Arguments>
  T* make(Arguments&&... arguments) {
    Owned object(new T(std::forward<Arguments>(arguments)...), [](T* made) { delete made; });
    T* const handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  [[nodiscard]] bool knows(const T* handle) const { return objects_.contains(handle); }
  void destroy(const T* handle) { objects_.erase(handle); }
  template <typename Which>
  void destroy_if(Which which) {
    std::erase_if(objects_, [&](const auto& object) { return which(*object.second); });
  }
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& object : objects_) visit(*object.second);
  }

 private:
  using Owned = std::unique_ptr<T, void (*)(T*)>;
  std::unordered_map<const T*, Owned> objects_;
};

}  // namespace klap::emulator::driver
