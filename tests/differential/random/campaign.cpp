#include "random/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <list>
#include <thread>

#include "case_file.h"
#include "random/sample.h"
#include "support/file.h"

namespace klap::differential::random {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBatchLimit{300}, kTryLimit{60};

// The kind of failure of one program: what a smaller one must share.
std::string kind_of(const Report& report, const std::string& name) {
  for (const Line& line : report.lines) {
    if (line.name != name || line.result == "equal") continue;
    // Of a refusal by the driver the call matters, not the numbers in it.
    return line.result + (line.result == "failed" ? " " + line.detail.substr(0, line.detail.find(':')) : "");
  }
  return report.lines.empty() ? fmt::format("status {}", report.outcome.status) : "";
}

class Campaign {
 public:
  explicit Campaign(const Plan& plan) : plan_(plan), end_(Clock::now() + plan.time), next_(plan.seed) {}

  Tally run() {
    while (!is_over() || !running_.empty()) {
      while (!is_over() && running_.size() < plan_.processes) start_next();
      collect();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return std::move(tally_);
  }

 private:
  struct Batch {
    std::vector<std::unique_ptr<Sample>> programs;
    TemporaryFolder folder;
    std::vector<std::filesystem::path> files;
    size_t started = 0, ended = 0;  // configurations
    bool is_looked_at = false;      // for programs that are refused
  };
  struct Started {
    std::shared_ptr<Batch> batch;
    std::unique_ptr<Run> run;
  };

  bool is_over() const {
    const bool enough = plan_.programs != 0 && next_ - plan_.seed >= plan_.programs &&
                        (batch_ == nullptr || batch_->started == plan_.configurations.size());
    return enough || tally_.is_missing_device || tally_.failures.size() >= plan_.most_failures ||
           Clock::now() > end_;
  }

  void start_next() {
    if (batch_ == nullptr || batch_->started == plan_.configurations.size()) make_batch();
    Work work;
    work.configuration = plan_.configurations[batch_->started++];
    work.files = batch_->files;
    work.first_seed = batch_->programs.front()->seed();
    work.last_seed = work.first_seed + plan_.seeds - 1;
    work.limit = kBatchLimit;
    // Programs of every kind have children that their thread may run.
    static constexpr std::array kThresholds = {"auto", "8", "40"};
    work.variables["KLAP_THRESHOLD"] = kThresholds.at(work.first_seed / plan_.batch % kThresholds.size());
    keep_rewritten(batch_->folder, work);
    if (std::ranges::any_of(batch_->programs, [](const auto& program) { return program->needs_places(); }))
      work.variables["KLAP_EMULATOR_RESIDENT_BLOCKS"] = "32";
    for (const auto& [name, value] : plan_.settings) work.variables[name] = value;
    if (!plan_.faulty_library.empty() && work.configuration.is_preloaded)
      work.variables["LD_PRELOAD"] = plan_.faulty_library.string();
    running_.push_back({batch_, std::make_unique<Run>(std::move(work))});
  }

  // Each program is rewritten once for all of its seeds, which takes longer than they do. Libraries with
  // faults have the same names of what they keep, so no folder is for several of them.
  static void keep_rewritten(const TemporaryFolder& folder, Work& work) {
    work.variables["KLAP_CACHE_DISABLE"] = "0";
    work.variables["KLAP_CACHE_DIR"] = (folder.path() / "rewritten").string();
  }

  void make_batch() {
    batch_ = std::make_shared<Batch>();
    for (uint64_t i = 0; i < plan_.batch; ++i) {
      if (plan_.programs != 0 && next_ - plan_.seed >= plan_.programs && i > 0) break;
      const uint64_t seed = next_++;
      batch_->programs.push_back(make_sample(seed, plan_.mixes[seed % plan_.mixes.size()]));
      batch_->files.push_back(batch_->folder.path() / fmt::format("{}.json", seed));
      write(*batch_->programs.back(), batch_->files.back());
    }
  }

  void write(const Sample& program, const std::filesystem::path& file) const {
    Case c = program.to_case();
    if (plan_.plant) plan_.plant(c);
    write_case(c, file);
  }

  // Which of the programs the library leaves as they are, once it has left a launch of some of them.
  void look_for_refusals(Batch& batch, uint64_t left) {
    if (!plan_.refusal || left == 0 || batch.is_looked_at) return;
    batch.is_looked_at = true;
    for (const auto& program : batch.programs) {
      if (const std::string reason = plan_.refusal(program->to_case()); !reason.empty())
        ++tally_.refused[reason];
    }
  }

  void collect() {
    for (auto started = running_.begin(); started != running_.end();) {
      if (!started->run->has_ended()) {
        ++started;
        continue;
      }
      const Started ended = std::move(*started);
      started = running_.erase(started);
      judge(*ended.batch, *ended.run);
    }
  }

  void judge(Batch& batch, Run& run) {
    const Report report = run.wait();
    if (report.is_missing_device()) {
      tally_.is_missing_device = true;
      return;
    }
    tally_.runs += report.lines.size();
    look_for_refusals(batch, add_statistics(report.statistics));
    if (++batch.ended == plan_.configurations.size()) tally_.programs += batch.programs.size();
    if (report.problem(run.work()).empty()) return;
    for (size_t i = 0; i < batch.programs.size() && tally_.failures.size() < plan_.most_failures; ++i) {
      look_at(*batch.programs[i], run.work());
    }
  }

  // The number of launch sites that were left.
  uint64_t add_statistics(const nlohmann::json& statistics) {
    uint64_t left = 0;
    if (!statistics.is_object()) return left;
    tally_.rewritten += statistics.at("sites").at("rewritten").get<uint64_t>();
    for (const auto& [reason, count] : statistics.at("sites").at("left").items()) {
      tally_.left[reason] += count.get<uint64_t>();
      left += count.get<uint64_t>();
    }
    for (const auto& [parent, count] : statistics.at("launches").at("redirected").items()) {
      tally_.redirected += count.get<uint64_t>();
    }
    return left;
  }

  // Runs one program of a batch that failed alone; reduces it if it is the culprit.
  void look_at(const Sample& program, const Work& work) {
    const auto [text, kind] = run_alone(program, work, kBatchLimit);
    if (kind.empty()) return;
    if (!plan_.faulty_library.empty()) {
      Work usual = work;
      usual.variables.erase("LD_PRELOAD");
      if (run_alone(program, usual, kBatchLimit).second.empty()) keep(program, program, work, text);
      return;
    }
    fmt::print(stderr, "klap_random: program {} in {}: {}", program.seed(), work.configuration.name, text);
    const auto fails = [&](const Sample& smaller) {
      return run_alone(smaller, work, kTryLimit).second == kind &&
             (!smaller.may_be_wrong_when_reduced() || is_right_natively(smaller, work));
    };
    keep(program, *program.reduced(fails, plan_.most_tries), work, text);
  }

  bool is_right_natively(const Sample& program, const Work& work) const {
    Work native = work;
    native.configuration = chosen_configurations("native")[0];
    return !work.configuration.is_preloaded || run_alone(program, native, kTryLimit).second.empty();
  }

  // What was wrong, for people, and its kind; both empty if nothing was.
  std::pair<std::string, std::string> run_alone(const Sample& program, const Work& work,
                                                std::chrono::seconds limit) const {
    const TemporaryFolder folder;
    Work alone = work;
    alone.limit = limit;
    alone.files = {folder.path() / "program.json"};
    keep_rewritten(folder, alone);
    write(program, alone.files[0]);
    Run run(alone);
    const Report report = run.wait();
    const std::string text = report.problem(alone);
    if (text.empty()) return {};
    return {text + report.first_errors(), kind_of(report, "random_" + std::to_string(program.seed()))};
  }

  void keep(const Sample& program, const Sample& small, const Work& work, const std::string& text) {
    const std::string name = fmt::format("random_{}_{}", program.seed(), work.configuration.name);
    Work again = work;
    again.files = {plan_.out / (name + ".json")};
    again.variables.erase("KLAP_CACHE_DISABLE");
    again.variables.erase("KLAP_CACHE_DIR");
    write(small, again.files[0]);
    write(program, plan_.out / (name + "_whole.json"));
    tally_.failures.push_back(fmt::format("program {} in {} ({} of {} parts after reduction)\n{}again: {}\n",
                                          program.seed(), work.configuration.name, small.size(),
                                          program.size(), text, command_line(again)));
    tally_.failing.push_back(program.seed());
    write_file(plan_.out / (name + ".txt"), tally_.failures.back());
  }

  const Plan& plan_;
  Clock::time_point end_;
  uint64_t next_;
  std::shared_ptr<Batch> batch_;
  std::list<Started> running_;
  Tally tally_;
};

}  // namespace

Tally run_campaign(const Plan& plan) { return Campaign(plan).run(); }

}  // namespace klap::differential::random
