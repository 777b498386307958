// Writing and reading go through one description of each structure's fields. The structured bindings name
// every field: adding one to the structure without adding it here does not compile.
#include "jit/cache/cache_entry.h"

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstring>

#include "support/error.h"
#include "support/hash.h"

namespace klap::jit {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic("klapjit\n", 8);
constexpr uint32_t kFormat = 20;
constexpr size_t kChecksumBytes = 16;

class Writer {
 public:
  template <typename Number>
  requires std::integral<Number> || std::is_enum_v<Number>
  void operator()(const Number& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void operator()(const std::string& text) {
    (*this)(uint64_t{text.size()});
    bytes += text;
  }
  template <typename Item>
  void operator()(const std::vector<Item>& items) {
    (*this)(uint64_t{items.size()});
    for (const Item& item : items) fields(*this, item);
  }
  template <typename Item>
  void operator()(const std::optional<Item>& item) {
    (*this)(item.has_value());
    if (item) fields(*this, *item);
  }

  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  requires std::integral<Number> || std::is_enum_v<Number>
  void operator()(Number& number) { std::memcpy(&number, take(sizeof number).data(), sizeof number); }
  void operator()(bool& flag) { flag = take(1)[0] != 0; }
  void operator()(std::string& text) { text = take(length()); }
  template <typename Item>
  void operator()(std::vector<Item>& items) {
    // Not resized at once: the length is only as good as the bytes that follow.
    for (uint64_t left = length(); left != 0; --left) fields(*this, items.emplace_back());
  }
  template <typename Item>
  void operator()(std::optional<Item>& item) {
    bool is_there = false;
    (*this)(is_there);
    if (is_there) fields(*this, item.emplace());
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  uint64_t length() {
    uint64_t n = 0;
    (*this)(n);
    return n;
  }
  std::string_view take(uint64_t n) {
    if (n > rest_.size()) throw Error(ErrorCode::Io, "ends too early");
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  std::string_view rest_;
};

template <typename Archive, typename Text>
requires std::same_as<std::remove_const_t<Text>, std::string>
void fields(Archive& archive, Text& text) { archive(text); }

template <typename Archive, typename T>
requires std::same_as<std::remove_const_t<T>, ToolFile>
void fields(Archive& archive, T& tool) {
  auto& [library, version, path, bytes, modified] = tool;
  archive(library), archive(version), archive(path), archive(bytes), archive(modified);
}

template <typename Archive, typename Number>
requires std::integral<Number>
void fields(Archive& archive, Number& number) { archive(number); }

template <typename Archive, typename N>
requires std::same_as<std::remove_const_t<N>, ParameterNumber>
void fields(Archive& archive, N& number) {
  auto& [offset, bytes, is_signed] = number;
  archive(offset), archive(bytes), archive(is_signed);
}

template <typename Archive, typename P>
requires std::same_as<std::remove_const_t<P>, ParameterProduct>
void fields(Archive& archive, P& product) {
  auto& [coefficient, factors] = product;
  archive(coefficient), archive(factors);
}

template <typename Archive, typename D>
requires std::same_as<std::remove_const_t<D>, Distance>
void fields(Archive& archive, D& distance) { archive(distance.products), archive(distance.divisor); }

template <typename Archive, typename L>
requires std::same_as<std::remove_const_t<L>, BlockLimit>
void fields(Archive& archive, L& limit) {
  auto& [axis, step, bound] = limit;
  archive(axis), archive(step), fields(archive, bound);
}

template <typename Archive, typename M>
requires std::same_as<std::remove_const_t<M>, MemoryPair>
void fields(Archive& archive, M& pair) {
  auto& [first, second] = pair;
  archive(first.offset), archive(first.variable), archive(first.only_upwards), archive(first.distances);
  archive(second.offset), archive(second.variable), archive(second.only_upwards), archive(second.distances);
}

template <typename Archive, typename N>
requires std::same_as<std::remove_const_t<N>, ParameterBytes>
void fields(Archive& archive, N& number) {
  auto& [offset, bytes] = number;
  archive(offset), archive(bytes);
}

// The extents of a grid or a block.
template <typename Archive, typename Extents>
void extents(Archive& archive, Extents& three) {
  for (auto& extent : three) archive(extent);
}

template <typename Archive, typename K>
requires std::same_as<std::remove_const_t<K>, ChildKernel>
void fields(Archive& archive, K& kernel) {
  auto& [name, block_threads] = kernel;
  archive(name), archive(block_threads);
}

template <typename Archive, typename B>
requires std::same_as<std::remove_const_t<B>, FollowingBlock>
void fields(Archive& archive, B& following) {
  auto& [kernel, block, fills, full_warps] = following;
  archive(kernel), extents(archive, block), archive(fills), archive(full_warps);
}

template <typename Archive, typename L>
requires std::same_as<std::remove_const_t<L>, SharedLimit>
void fields(Archive& archive, L& limit) {
  auto& [kernel, bytes, is_limit] = limit;
  archive(kernel), archive(bytes), archive(is_limit);
}

template <typename Archive, typename B>
requires std::same_as<std::remove_const_t<B>, ThreadBound>
void fields(Archive& archive, B& bound) {
  auto& [block, or_parents, threads] = bound;
  extents(archive, block), extents(archive, or_parents), archive(threads);
}

template <typename Archive, typename Q>
requires std::same_as<std::remove_const_t<Q>, ChildQueue>
void fields(Archive& archive, Q& queue) {
  auto& [child, consumer, record_bytes, consumer_threads, child_threads, shared_bytes, is_work_queue,
         double_buffered, others, concurrency, following, shared_limits, bounds, counted] = queue;
  archive(child), archive(consumer), archive(record_bytes);
  archive(consumer_threads), archive(child_threads), archive(shared_bytes), archive(is_work_queue),
      archive(double_buffered);
  archive(others), archive(concurrency), archive(following), archive(shared_limits), archive(bounds),
      archive(counted);
}

template <typename Archive, typename C>
requires std::same_as<std::remove_const_t<C>, PromotedChain>
void fields(Archive& archive, C& chain) {
  auto& [mode, block, shared_bytes, slot_bytes, double_buffered] = chain;
  archive(mode), extents(archive, block), archive(shared_bytes), archive(slot_bytes),
      archive(double_buffered);
}

template <typename Archive, typename V>
requires std::same_as<std::remove_const_t<V>, Variant>
void fields(Archive& archive, V& variant) {
  auto& [parent, parent_variant, launcher, granularity, group_blocks, param_count, param_bytes, queue_offset,
         queues, pool_bytes, buffer, shared_limits, block, grid, several_blocks, block_limits, apart,
         not_negative, param_offsets, param_sizes, may_refuse, kept_records, fixed_launches,
         words_without_effect, unread, in_slices, consumers_await, in_blocks, fused_threads, where_few,
         more_threads, more_blocks, parent_waits, stops, promoted, pool, concurrency] = variant;
  archive(parent), archive(parent_variant), archive(launcher), archive(granularity), archive(group_blocks);
  archive(param_count), archive(param_bytes), archive(queue_offset), archive(queues), archive(pool_bytes);
  extents(archive, block), extents(archive, grid);
  archive(several_blocks), archive(block_limits), archive(apart), archive(not_negative),
      archive(param_offsets), archive(param_sizes);
  archive(may_refuse), archive(kept_records), archive(fixed_launches), archive(words_without_effect),
      archive(unread);
  archive(buffer), archive(shared_limits), archive(in_slices), archive(consumers_await), archive(in_blocks),
      archive(fused_threads), archive(where_few), archive(more_threads), archive(more_blocks),
      archive(parent_waits), archive(stops);
  archive(promoted);
  archive(pool), archive(concurrency);
}

template <typename Archive, typename F>
requires std::same_as<std::remove_const_t<F>, Fact>
void fields(Archive& archive, F& fact) {
  auto& [key, value] = fact;
  archive(key), archive(value);
}

template <typename Archive, typename S>
requires std::same_as<std::remove_const_t<S>, SiteRemark>
void fields(Archive& archive, S& remark) {
  auto& [unit, parent, child, line, column, source, rewritten, granularity, launcher, group_blocks, reason,
         detail, brief, facts, notes] = remark;
  archive(unit), archive(parent), archive(child), archive(line), archive(column);
  archive(source.file), archive(source.line), archive(source.column);
  archive(rewritten);
  archive(granularity), archive(launcher), archive(group_blocks), archive(reason), archive(detail),
      archive(brief), archive(facts), archive(notes);
}

template <typename Archive, typename E>
requires std::same_as<std::remove_const_t<E>, CacheEntry>
void fields(Archive& archive, E& entry) {
  auto& [key, sm, tools, made_for, module] = entry;
  // Timings and cache use are of the process, not of the module.
  auto& [cubin, variants, remarks, timings, from_memory, cache, module_key] = module;
  (void)timings, (void)from_memory, (void)cache, (void)module_key;
  archive(key), archive(sm), archive(tools), archive(made_for);
  archive(cubin), archive(variants), archive(remarks);
}

void append_checksum(std::string& bytes) {
  Writer checksum;
  for (const uint64_t half : content_hash(bytes)) checksum(half);
  bytes += checksum.bytes;
}

[[noreturn]] void damaged(const std::string& how) { throw Error(ErrorCode::Io, how); }

// Everything between the header and the checksum, both verified.
std::string_view verified_body(std::string_view bytes) {
  constexpr size_t kHeaderBytes = kMagic.size() + sizeof(uint32_t) + sizeof(uint64_t);
  if (bytes.size() < kHeaderBytes + kChecksumBytes) damaged("is too short");
  if (!bytes.starts_with(kMagic)) damaged("is no cache entry");
  uint32_t format = 0;
  uint64_t size = 0;
  Reader header(bytes.substr(kMagic.size()));
  header(format), header(size);
  if (format != kFormat) damaged(fmt::format("has format version {}, not {}", format, kFormat));
  if (size != bytes.size()) damaged(fmt::format("has {} bytes, not {}", bytes.size(), size));
  const std::string_view checked = bytes.substr(0, bytes.size() - kChecksumBytes);
  std::array<uint64_t, 2> checksum{};
  std::memcpy(checksum.data(), bytes.data() + checked.size(), kChecksumBytes);
  if (checksum != content_hash(checked)) damaged("has a wrong checksum");
  return checked.substr(kHeaderBytes);
}

}  // namespace

std::string encode(const CacheEntry& entry) {
  Writer body;
  fields(body, entry);
  Writer file;
  file.bytes = kMagic;
  file(kFormat);
  file(uint64_t{kMagic.size() + sizeof kFormat + sizeof(uint64_t) + body.bytes.size() + kChecksumBytes});
  file.bytes += body.bytes;
  append_checksum(file.bytes);
  return std::move(file.bytes);
}

CacheEntry decode(std::string_view bytes) {
  Reader body(verified_body(bytes));
  CacheEntry entry;
  fields(body, entry);
  if (!body.at_end()) damaged("has more in it than it should");
  return entry;
}

}  // namespace klap::jit
