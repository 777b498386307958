#include "jit/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <random>

#include "support/error.h"

namespace klap::jit {
namespace {

constexpr std::string_view kEntry = ".klap", kTemporary = ".tmp", kLock = ".lock";
constexpr int64_t kNanoseconds = 1'000'000'000;
// Writing an entry takes milliseconds, building one seconds: what is older was left by a process that died.
constexpr int64_t kAbandoned = 3600 * kNanoseconds;

[[noreturn]] void fail(const std::string& what, const std::filesystem::path& where) {
  throw Error(ErrorCode::Io, fmt::format("{}: {}", what, std::strerror(errno))).at(where.string());
}

timespec now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kNanoseconds + time.tv_nsec; }

void make_folders(const std::filesystem::path& path) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : path) {
    made /= part;
    struct stat status {};
    if (stat(made.c_str(), &status) == 0) continue;
    if (mkdir(made.c_str(), 0700) != 0 && errno != EEXIST) fail("cannot make the cache folder", made);
  }
}

// "name.host.process.random.tmp"; the host, because the folder may be shared by several.
std::string temporary_name(const std::string& name) {
  char host[65] = {};
  (void)gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}.{}.{}.{:08x}{:08x}{}", name, host, getpid(), random(), random(), kTemporary);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw Error(ErrorCode::Io, std::string("cannot write: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// Writing beyond the process's limit would not fail but kill the program with SIGXFSZ.
void check_file_size_limit(size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)
    return;
  throw Error(ErrorCode::Io, fmt::format("cannot write {} bytes: the process may write files of {} bytes",
                                         bytes, limit.rlim_cur));
}

bool is_own_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

CacheFolder CacheFolder::open(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  int fd = ::open(path.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT) {
    make_folders(path);
    fd = ::open(path.c_str(), kFlags);
  }
  Descriptor descriptor(fd);
  struct stat status {};
  if (!descriptor.valid() || fstat(fd, &status) != 0) fail("cannot open the cache folder", path);
  if (status.st_uid != geteuid()) {
    throw Error(ErrorCode::Io,
                fmt::format("the cache folder belongs to user {}, not to user {}", status.st_uid, geteuid()))
        .at(path.string())
        .fix("name a folder of your own in KLAP_CACHE_DIR");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorCode::Io, "others may write to the cache folder")
        .at(path.string())
        .fix(fmt::format("chmod 700 {}", path.string()));
  }
  return {std::move(descriptor), path};
}

std::optional<std::string> CacheFolder::read(const std::string& name) const {
  const Descriptor file(
      openat(descriptor_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) return std::nullopt;
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) fail("cannot open", path_ / name);
  if (!is_own_file(status))
    throw Error(ErrorCode::Io, "is no file of ours alone").at((path_ / name).string());
  // Read and not mapped: a mapped file that someone cuts short kills the program that looks at it.
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read", path_ / name);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

void CacheFolder::write_temporary(const std::string& name, std::string_view bytes) const {
  const Descriptor file(
      openat(descriptor_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) fail("cannot create", path_ / name);
  write_all(file.get(), bytes);
  const timespec times[2] = {now(), now()};  // finer than the kernel's own clock for files
  (void)futimens(file.get(), times);
}

void CacheFolder::write(const std::string& name, std::string_view bytes) const {
  check_file_size_limit(bytes.size());
  const std::string temporary = temporary_name(name);
  try {
    write_temporary(temporary, bytes);
    if (renameat(descriptor_.get(), temporary.c_str(), descriptor_.get(), name.c_str()) != 0) {
      fail("cannot rename", path_ / temporary);
    }
  } catch (const Error&) {
    remove(temporary);
    throw;
  }
}

void CacheFolder::touch(const std::string& name) const {
  const timespec times[2] = {now(), now()};
  (void)utimensat(descriptor_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

bool CacheFolder::remove(const std::string& name) const {
  return unlinkat(descriptor_.get(), name.c_str(), 0) == 0;
}

std::vector<CachedFile> CacheFolder::list(std::string_view ending) const {
  const int fd = openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fd < 0 ? nullptr : fdopendir(fd), closedir);
  if (!folder) fail("cannot list the cache folder", path_);
  std::vector<CachedFile> files;
  while (const dirent* const item = readdir(folder.get())) {
    const std::string_view name = item->d_name;
    struct stat status {};
    if (!name.ends_with(ending) || fstatat(fd, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    files.push_back({std::string(name), static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim)});
  }
  std::ranges::sort(files, {}, [](const CachedFile& file) { return std::pair(file.used, file.name); });
  return files;
}

std::vector<CachedFile> CacheFolder::entries() const { return list(kEntry); }

std::vector<CachedFile> CacheFolder::profiles() const { return list(kProfileEnding); }

std::vector<CachedFile> CacheFolder::links() const { return list(kLinkEnding); }

std::vector<CachedFile> CacheFolder::tuned() const { return list(kTunedEnding); }

void CacheFolder::trim(uint64_t max_bytes) const {
  CacheLock lock(*this, fmt::format("clean-up{}", kLock));
  if (lock.try_take() != CacheLock::Result::Taken) return;
  uint64_t total = 0;
  std::vector<CachedFile> all = entries();
  std::ranges::copy(profiles(), std::back_inserter(all));
  std::ranges::copy(links(), std::back_inserter(all));
  std::ranges::sort(all, {}, &CachedFile::used);
  for (const CachedFile& file : all) total += file.bytes;
  for (const CachedFile& file : all) {
    if (total <= max_bytes) break;
    remove(file.name);
    total -= file.bytes;
  }
  for (const std::string_view ending : {kTemporary, kLock}) {
    for (const CachedFile& file : list(ending)) {
      if (nanoseconds(now()) - file.used > kAbandoned) remove(file.name);
    }
  }
}

CacheFolder::Removed CacheFolder::clear() const {
  for (const std::string_view ending : {kTemporary, kLock}) {
    for (const CachedFile& file : list(ending)) remove(file.name);
  }
  const auto removed = [this](const std::vector<CachedFile>& files) {
    return static_cast<size_t>(
        std::ranges::count_if(files, [this](const CachedFile& file) { return remove(file.name); }));
  };
  return {.modules = removed(entries()),
          .profiles = removed(profiles()),
          .links = removed(links()),
          .tuned = removed(tuned())};
}

CacheLock::Result CacheLock::try_take() {
  const int folder = folder_.descriptor_.get();
  Descriptor file(openat(folder, name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Result::Impossible;
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK || errno == EINTR ? Result::Busy : Result::Impossible;
  }
  // The owner before may have removed the file between our opening and locking it.
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || status.st_nlink == 0) return Result::Busy;
  held_.emplace(std::move(file));
  return Result::Taken;
}

CacheLock::~CacheLock() {
  // Removed while still held. Should two processes ever hold files of one name, both build the same entry.
  if (held_) folder_.remove(name_);
}

}  // namespace klap::jit
