// Arrays that are written once, side by side in a few blocks of memory, and the views of them.
//
// A module has millions of small arrays: the operands of each instruction, the statements of each scope. As
// vectors each would be an allocation with its own slack, which took more time and memory than reading the
// text. A pool packs them, never moves its contents, and frees all of them at once. So a view stays good
// while its pool lives, even if the pool is moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace klap::ptx {

// A constant array that someone else owns. Like std::span, which a type cannot have of itself.
template <class T>
class View {
 public:
  View() = default;
  View(const T* data, size_t size) : data_(data), size_(size) {}

  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T& operator[](size_t index) const { return data_[index]; }
  [[nodiscard]] const T& front() const { return data_[0]; }
  [[nodiscard]] const T& back() const { return data_[size_ - 1]; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
class Pool {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // Copies the items from `first` of `items` on into the pool and takes them away from `items`.
  View<T> take(std::vector<T>& items, size_t first = 0) {
    const size_t count = items.size() - first;
    if (count == 0) return {};
    if (count > left_) grow(count);
    std::uninitialized_copy_n(items.data() + first, count, free_);
    items.erase(items.begin() + static_cast<ptrdiff_t>(first), items.end());
    const View<T> kept(free_, count);
    free_ += count;
    left_ -= count;
    return kept;
  }

 private:
  struct Release {
    void operator()(T* block) const { ::operator delete(block); }
  };

  // Each block is as large as all before it, up to a limit, so that small modules take little.
  void grow(size_t least) {
    constexpr size_t kFirst = 64, kMost = size_t{1} << 14;
    next_ = std::clamp(next_ * 2, kFirst, kMost);
    left_ = std::max(least, next_);
    blocks_.emplace_back(static_cast<T*>(::operator new(left_ * sizeof(T))));
    free_ = blocks_.back().get();
  }

  std::vector<std::unique_ptr<T, Release>> blocks_;
  T* free_ = nullptr;
  size_t left_ = 0, next_ = 0;
};

}  // namespace klap::ptx
