// Addresses are given out in rising order and not twice, until the range is used up: only then are the places
// of freed pieces collected and used again. So a wrong address is nearly always one whose story is known.
#include "emulator/memory_model/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "support/error.h"

namespace klap::emulator {
namespace {

constexpr uint64_t kGap = 256;                    // at least, behind every piece
constexpr uint64_t kFirstPlace = 0x200000000000;  // where nothing else lies in a Linux process
constexpr uint64_t kPage = 4096, kSpare = 4ull << 30;
constexpr uint64_t kGiveBack = 64 << 10;  // freed pieces from this size on give their pages back

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

bool counts(Owner owner) { return owner == Owner::Host || owner == Owner::Module; }

bool comes_and_goes(Owner owner) { return owner == Owner::Shared || owner == Owner::Local; }

// Sizes that are recycled for each other: four steps to each doubling, so that at most a quarter is wasted.
uint64_t size_class(uint64_t bytes) {
  if (bytes <= 256) return 256;
  uint64_t step = 64;
  while (step * 8 < bytes) step *= 2;
  return align_up(bytes, step);
}

// Maps at `hint` or not at all, so that addresses do not depend on other mappings of the process.
void* map_at(uint64_t hint, uint64_t bytes) {
  void* wanted = reinterpret_cast<void*>(hint);  // NOLINT(performance-no-int-to-ptr)
  void* got = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  if (hint == 0 || got == wanted) return got;
  munmap(got, bytes);
  return nullptr;
}

void* map_somewhere(uint64_t bytes) {
  for (uint64_t hint = kFirstPlace; hint < 2 * kFirstPlace; hint += kFirstPlace / 16)
    if (void* got = map_at(hint, bytes)) return got;
  return map_at(0, bytes);
}

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): device addresses are ours
}

// The pages of a large piece go back to the system: a freed piece is kept for its address only.
void wipe(uint64_t address, uint64_t bytes) {
  uint64_t first = align_up(address, kPage), last = (address + bytes) & ~(kPage - 1);
  if (bytes < kGiveBack) {
    std::memset(pointer(address), std::to_integer<int>(Memory::kFreed), bytes);
  } else {
    madvise(pointer(first), last - first, MADV_DONTNEED);
  }
}

// Zero, and untouched but for pages at its ends, which it may share with other pieces.
void make_new(uint64_t address, uint64_t bytes) {
  const uint64_t end = address + bytes, first = std::min(align_up(address, kPage), end);
  const uint64_t last = std::max(first, end & ~(kPage - 1));
  std::memset(pointer(address), 0, first - address);
  std::memset(pointer(last), 0, end - last);
  if (last == first) return;
  madvise(pointer(first), last - first, MADV_DONTNEED);
  madvise(pointer(first), last - first, MADV_NOHUGEPAGE);  // a page that is touched would bring 511 others
}

uint64_t touched_bytes(uint64_t address, uint64_t bytes) {
  const uint64_t first = address & ~(kPage - 1), pages = (address + bytes - first + kPage - 1) / kPage;
  std::vector<unsigned char> is_touched(pages);
  if (mincore(pointer(first), pages * kPage, is_touched.data()) != 0) return bytes;
  return kPage * static_cast<uint64_t>(std::ranges::count_if(is_touched, [](auto page) { return page & 1; }));
}

std::string hex(uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), kDigits[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

std::string count_of_bytes(uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

const char* allocated_by(Owner owner) {
  switch (owner) {
    case Owner::Host:
      return "allocated by the host";
    case Owner::Managed:
      return "of managed memory";
    case Owner::Pinned:
      return "of pinned host memory";
    case Owner::Module:
      return "of a module";
    case Owner::DeviceHeap:
      return "allocated on the device";
    case Owner::Shared:
      return "of shared memory";
    case Owner::Local:
      return "of local memory";
    case Owner::Runtime:
      return "of the device runtime";
  }
  return "";
}

std::string in_words(const Allocation& piece) {
  std::string text = count_of_bytes(piece.bytes);
  text += piece.name.empty() ? std::string(" ") + allocated_by(piece.owner) : " of variable " + piece.name;
  return text + " at " + hex(piece.address);
}

}  // namespace

Memory::Memory(uint64_t bytes) : bytes_(bytes) {
  // Reserves room for freed memory, too, as far as the system gives it.
  for (uint64_t more : {3 * bytes + kSpare, bytes, bytes / 4 + kPage}) {
    range_ = align_up(bytes + more, kPage);
    if (void* range = map_somewhere(range_)) {
      base_ = next_ = reinterpret_cast<uint64_t>(range);
      return;
    }
  }
  throw Error(ErrorCode::Io, "cannot reserve " + std::to_string(bytes) + " bytes of addresses")
      .fix("give the emulated device less memory");
}

Memory::~Memory() { munmap(pointer(base_), range_); }

std::optional<uint64_t> Memory::allocate(uint64_t bytes, Owner owner, uint64_t align, std::string name) {
  if (counts(owner) && (bytes > bytes_ || used() > bytes_ - bytes)) return std::nullopt;
  bool reusable = comes_and_goes(owner);
  Allocation* piece = reusable && align <= kGap ? recycle(bytes, owner) : nullptr;
  if (!piece) {
    auto address = place(reusable ? size_class(bytes) : bytes, std::max(align, reusable ? kGap : 16));
    if (!address) return std::nullopt;
    piece = &pieces_[*address];
    piece->address = *address;
  }
  piece->bytes = bytes;
  piece->owner = owner;
  piece->name = std::move(name);
  piece->freed = false;
  if (counts(owner)) used_ += bytes;
  if (owner == Owner::Managed) {
    managed_.insert(piece->address);
    make_new(piece->address, bytes);
  } else {
    std::memset(pointer(piece->address), std::to_integer<int>(kNew), std::min(bytes, fill_limit_));
  }
  return piece->address;
}

void Memory::touch(uint64_t address, uint64_t bytes) {
  for (uint64_t at = address; at < address + bytes; at = (at & ~(kPage - 1)) + kPage)
    *reinterpret_cast<const volatile std::byte*>(pointer(at));
}

uint64_t Memory::used_of_managed() const {
  uint64_t bytes = 0;
  for (const uint64_t address : managed_) bytes += touched_bytes(address, pieces_.at(address).bytes);
  return bytes;
}

// A piece of this size that was freed, for memory that comes and goes.
Allocation* Memory::recycle(uint64_t bytes, Owner owner) {
  auto ready = ready_.find({owner, size_class(bytes)});
  if (ready == ready_.end() || ready->second.empty()) return nullptr;
  Allocation* piece = ready->second.back();
  ready->second.pop_back();
  return piece;
}

// A place for the bytes and the gap behind them.
std::optional<uint64_t> Memory::place(uint64_t bytes, uint64_t align) {
  if (bytes > range_ || align > range_) return std::nullopt;
  uint64_t address = align_up(next_, align), end = base_ + range_;
  if (address <= end && end - address >= bytes + kGap) {
    next_ = align_up(address + bytes + kGap, 16);
    return address;
  }
  if (auto hole = place_in_hole(bytes, align)) return hole;
  collect();
  return place_in_hole(bytes, align);
}

std::optional<uint64_t> Memory::place_in_hole(uint64_t bytes, uint64_t align) {
  for (auto hole = holes_.lower_bound(bytes + kGap); hole != holes_.end(); ++hole) {
    auto [size, start] = *hole;
    uint64_t address = align_up(start, align), end = address + bytes + kGap;
    if (end > start + size) continue;
    holes_.erase(hole);
    if (end < start + size) holes_.emplace(start + size - end, end);
    return address;
  }
  return std::nullopt;
}

// Forgets freed pieces: all memory between living pieces may be used again.
void Memory::collect() {
  std::erase_if(pieces_, [](const auto& entry) { return entry.second.freed; });
  ready_.clear();
  recent_.fill(nullptr);
  holes_.clear();
  uint64_t from = base_;
  auto add = [&](uint64_t to) {
    if (to > from) holes_.emplace(to - from, from);
  };
  for (const auto& [address, piece] : pieces_) {
    add(address);
    uint64_t bytes = comes_and_goes(piece.owner) ? size_class(piece.bytes) : piece.bytes;
    from = address + bytes + kGap;
  }
  add(base_ + range_);
  next_ = base_ + range_;
}

bool Memory::free(uint64_t address, Owner owner) {
  auto found = pieces_.find(address);
  if (found == pieces_.end() || found->second.freed || found->second.owner != owner) return false;
  Allocation& piece = found->second;
  piece.freed = true;
  if (counts(owner)) used_ -= piece.bytes;
  managed_.erase(address);
  bool reusable = comes_and_goes(owner) && !quarantine_everything_;
  if (reusable) {
    ready_[{owner, size_class(piece.bytes)}].push_back(&piece);
  } else {
    wipe(address, piece.bytes);
  }
  return true;
}

void Memory::add_foreign(uint64_t address, uint64_t bytes) {
  foreign_[address] = {
      .address = address, .bytes = bytes, .owner = Owner::Pinned, .name = {}, .freed = false};
}

bool Memory::remove_foreign(uint64_t address) {
  recent_.fill(nullptr);
  return foreign_.erase(address) != 0;
}

bool Memory::is_foreign(uint64_t address, uint64_t bytes) const {
  auto after = foreign_.upper_bound(address);
  return after != foreign_.begin() && holds(std::prev(after)->second, address, bytes);
}

const Allocation* Memory::find_slowly(uint64_t address, uint64_t bytes) const {
  const Pieces& where = address - base_ < range_ ? pieces_ : foreign_;
  auto after = where.upper_bound(address);
  if (after == where.begin()) return nullptr;
  const Allocation& piece = std::prev(after)->second;
  if (!holds(piece, address, bytes)) return nullptr;
  recent_[recent_slot(address)] = &piece;
  return &piece;
}

std::string Memory::describe(uint64_t address, uint64_t bytes) const {
  std::string what = count_of_bytes(bytes) + " at " + hex(address) + ": ";
  auto after = pieces_.upper_bound(address);
  const Allocation* before = after == pieces_.begin() ? nullptr : &std::prev(after)->second;
  if (address - base_ >= range_ || (!before && after == pieces_.end()))
    return what + (address < kPage ? "a null pointer" : "memory that was never allocated");
  uint64_t past = before ? address - before->address : 0;
  if (before && past < before->bytes && before->freed) return what + "inside freed " + in_words(*before);
  if (before && past < before->bytes)
    return what + "begins inside " + in_words(*before) + " and ends " +
           count_of_bytes(past + bytes - before->bytes) + " past its end";
  uint64_t to_next = after == pieces_.end() ? UINT64_MAX : after->first - address;
  if (before && past - before->bytes <= to_next)
    return what + count_of_bytes(past - before->bytes) + " past the end of " +
           (before->freed ? "freed " : "") + in_words(*before);
  const Allocation& next = after->second;
  return what + count_of_bytes(to_next) + " before " + (next.freed ? "freed " : "") + in_words(next);
}

}  // namespace klap::emulator
