// A line on standard error that says what a command is at. It is there once the command takes longer than a
// second, and only where somebody looks: on a terminal. It goes away with the command's results.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace klap::tool {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // `doing` begins the line: "rewriting".
  explicit Progress(std::string doing, Clock::duration silence = std::chrono::seconds(1));
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // Names what comes next, such as the label of an image.
  void at(const std::string& what);
  // Takes the line away while the command prints. It comes back after the lock.
  [[nodiscard]] std::unique_lock<std::mutex> pause();

 private:
  void draw_until_end(Clock::duration silence);
  void draw();
  void erase();

  const std::string doing_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable ends_;
  std::string what_;
  bool is_drawn_ = false, has_ended_ = false;
  std::thread thread_;  // none where nobody looks
};

}  // namespace klap::tool
