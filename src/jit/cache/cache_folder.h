// The cache's folder: files that appear whole or not at all, locks that die with their owner, and a size cap.
//
// Everything goes through a descriptor of the folder that was checked after it was opened: machine code that
// is loaded into other programs must not come from a folder that someone else can write to. The descriptor is
// opened for each use and not kept, because programs that turn into daemons close descriptors that they do
// not know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klap::jit {

// The files of measured times (runtime/parents/guard_profile.h) end so.
inline constexpr std::string_view kProfileEnding = ".profile";
// The files with the inputs of links that programs made (runtime/links/link_files.h) end so.
inline constexpr std::string_view kLinkEnding = ".link";
// The files of tuned settings (runtime/load/tuned_settings.h) end so.
inline constexpr std::string_view kTunedEnding = ".tuned";

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct CachedFile {
  std::string name;
  uint64_t bytes = 0;
  int64_t used = 0;  // nanoseconds since the epoch
};

class CacheFolder {
 public:
  // Opens the folder, making it (0700) where it is missing. Throws Error(Io) when it cannot be had, belongs
  // to someone else, or others may write to it.
  static CacheFolder open(const std::filesystem::path& path);

  // The file's bytes; nothing when there is none. Throws Error(Io) for what is no regular file of ours.
  [[nodiscard]] std::optional<std::string> read(const std::string& name) const;
  // Puts a whole file into place under its name. Throws Error(Io), leaving nothing behind.
  void write(const std::string& name, std::string_view bytes) const;
  // These do what they can: a folder that cannot be written to still serves entries.
  void touch(const std::string& name) const;
  bool remove(const std::string& name) const;

  // Modules, profiles, links and tuned settings, the one that was used longest ago first.
  [[nodiscard]] std::vector<CachedFile> entries() const;
  [[nodiscard]] std::vector<CachedFile> profiles() const;
  [[nodiscard]] std::vector<CachedFile> links() const;
  [[nodiscard]] std::vector<CachedFile> tuned() const;
  // Removes the modules, profiles and links that were used longest ago until all fit into `max_bytes`, and
  // what dead processes left behind. Does nothing while another process does it. Tuned settings are small,
  // and took somebody minutes, so they stay.
  void trim(uint64_t max_bytes) const;
  // Removes everything that belongs to the cache; returns how many files of each kind that were.
  struct Removed {
    size_t modules = 0, profiles = 0, links = 0, tuned = 0;
  };
  Removed clear() const;

 private:
  friend class CacheLock;
  CacheFolder(Descriptor descriptor, std::filesystem::path path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  [[nodiscard]] std::vector<CachedFile> list(std::string_view ending) const;
  void write_temporary(const std::string& name, std::string_view bytes) const;

  Descriptor descriptor_;
  std::filesystem::path path_;
};

// A lock between processes and threads, by a file of its own in the folder. The kernel drops it when its
// owner dies, however that happens.
class CacheLock {
 public:
  enum class Result { Taken, Busy, Impossible };

  CacheLock(const CacheFolder& folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  // Never waits. Impossible: the folder is read-only, or its file system has no locks.
  Result try_take();

 private:
  const CacheFolder& folder_;
  std::string name_;
  std::optional<Descriptor> held_;
};

}  // namespace klap::jit
