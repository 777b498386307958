#include "klap_ptx/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "klap_ptx/colour.h"

namespace klap::tool {

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr size_t kUsualWidth = 80;

size_t width_of_terminal() {
  winsize size = {};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return is_known ? size.ws_col : kUsualWidth;
}

}  // namespace

Progress::Progress(std::string doing, Clock::duration silence) : doing_(std::move(doing)) {
  if (is_terminal(stderr)) thread_ = std::thread([this, silence] { draw_until_end(silence); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void Progress::at(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

std::unique_lock<std::mutex> Progress::pause() {
  std::unique_lock lock(mutex_);
  erase();
  return lock;
}

void Progress::draw_until_end(Clock::duration silence) {
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return has_ended_; };
  for (auto next = silence; !ends_.wait_for(lock, next, has_ended); next = kRedraw) draw();
  erase();
}

// A line that is wider than the terminal could not be taken away again.
void Progress::draw() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_).count();
  const std::string end = fmt::format(" ({} s)", seconds);
  std::string line = fmt::format("klap: {} {}", doing_, what_);
  const size_t width = width_of_terminal();
  if (line.size() + end.size() >= width) line.resize(width > end.size() ? width - end.size() - 1 : 0);
  fmt::print(stderr, "\r\x1b[K{}{}", line, end);
  is_drawn_ = true;
}

void Progress::erase() {
  if (is_drawn_) fmt::print(stderr, "\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace klap::tool
