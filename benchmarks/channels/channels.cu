// Colour channels of pictures, each processed in a created stream whose handle stands in memory.
//
// A block works on a picture, with a thread for each channel. The thread creates a stream and stores its
// handle with the channel. For each of three stages every thread takes the next channel, reads the handle
// that another thread has stored there, and launches the stage into that stream. A barrier between the stages
// gives the launches into a stream their order. In the end each thread destroys the stream that it has
// created.
//
// `--variant flat` launches each stage once for all channels of all pictures.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 128;
constexpr int kChannels = 3;
constexpr int kStages = 3;
constexpr int kBrightest = 255;

struct Channel {
  int* pixels;
  int* blurred;
  int width;
  int height;

  [[nodiscard]] __host__ __device__ int size() const { return width * height; }
};

// One after another: the channels of a picture, and pictures.
struct Channels {
  Channel first;

  [[nodiscard]] __host__ __device__ Channel at(unsigned i) const {
    const size_t offset = static_cast<size_t>(i) * first.size();
    return {first.pixels + offset, first.blurred + offset, first.width, first.height};
  }
};

// Twice the pixel and both neighbours, divided by 4. The border is its own neighbour.
__host__ __device__ inline int blurred(const int* pixels, int i, int at, int count, int distance) {
  const int before = at > 0 ? pixels[i - distance] : pixels[i];
  const int after = at + 1 < count ? pixels[i + distance] : pixels[i];
  return (before + 2 * pixels[i] + after) / 4;
}

__host__ __device__ inline int stretched(int value) {
  const int centred = 2 * value - kBrightest / 2;
  return centred < 0 ? 0 : centred > kBrightest ? kBrightest : centred;
}

// What stage 0, 1 or 2 makes of a pixel: blurred along its row, along its column, and with more contrast.
__host__ __device__ inline void process_pixel(const Channel& channel, int stage, int i) {
  if (stage == 0) {
    channel.blurred[i] = blurred(channel.pixels, i, i % channel.width, channel.width, 1);
  } else if (stage == 1) {
    channel.pixels[i] = blurred(channel.blurred, i, i / channel.width, channel.height, channel.width);
  } else {
    channel.pixels[i] = stretched(channel.pixels[i]);
  }
}

__global__ void process(Channel channel, int stage) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < channel.size()) process_pixel(channel, stage, i);
}

// `streams` has a place for each channel of each picture.
template <bool kCount>
__global__ void __launch_bounds__(kChannels)
    process_picture(Channels channels, cudaStream_t* streams, unsigned long long* lost) {
  const unsigned first = kChannels * blockIdx.x;
  const unsigned own = first + threadIdx.x;
  cudaStreamCreateWithFlags(&streams[own], cudaStreamNonBlocking);
  for (int stage = 0; stage < kStages; ++stage) {
    __syncthreads();
    const unsigned taken = first + (threadIdx.x + stage) % kChannels;
    const Channel channel = channels.at(taken);
    process<<<bench::blocks_for(channel.size(), kBlock), kBlock, 0, streams[taken]>>>(channel, stage);
    bench::count_if_lost<kCount>(lost);
  }
  __syncthreads();
  cudaStreamDestroy(streams[own]);
}

// A row of blocks for each channel.
__global__ void process_flat(Channels channels, int stage) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const Channel channel = channels.at(blockIdx.y);
  if (i < channel.size()) process_pixel(channel, stage, i);
}

namespace {

struct Sizes {
  long long pictures = 100;
  long long width = 64;
  long long height = 64;

  [[nodiscard]] long long channels() const { return kChannels * pictures; }
  [[nodiscard]] long long pixels() const { return channels() * width * height; }
};

std::vector<int> random_pictures(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> pixels(static_cast<size_t>(sizes.pixels()));
  for (int& pixel : pixels) pixel = static_cast<int>(random.below(kBrightest + 1));
  return pixels;
}

std::vector<int> cpu_processed(std::vector<int> pixels, const Sizes& sizes) {
  std::vector<int> other(pixels.size());
  const Channels channels = {
      {pixels.data(), other.data(), static_cast<int>(sizes.width), static_cast<int>(sizes.height)}};
  for (unsigned i = 0; i < sizes.channels(); ++i) {
    const Channel channel = channels.at(i);
    for (int stage = 0; stage < kStages; ++stage) {
      for (int pixel = 0; pixel < channel.size(); ++pixel) process_pixel(channel, stage, pixel);
    }
  }
  return pixels;
}

class ChannelsProgram final : public bench::ArrayProgram<int> {
 public:
  ChannelsProgram(const Sizes& sizes, const std::vector<int>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "pixels", input, cpu_processed(input, sizes)),
        sizes_(sizes),
        blurred_(input.size()),
        streams_(static_cast<size_t>(sizes.channels())) {}

 private:
  [[nodiscard]] Channels channels() const {
    return {{data(), blurred_.data(), static_cast<int>(sizes_.width), static_cast<int>(sizes_.height)}};
  }

  void launch(bool count) override {
    (count ? process_picture<true>
           : process_picture<false>)<<<static_cast<unsigned>(sizes_.pictures), kChannels>>>(
        channels(), streams_.data(), lost());
  }

  void launch_flat() override {
    const dim3 grid(bench::blocks_for(sizes_.width * sizes_.height, kBlock),
                    static_cast<unsigned>(sizes_.channels()));
    for (int stage = 0; stage < kStages; ++stage) process_flat<<<grid, kBlock>>>(channels(), stage);
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("pictures", sizes_.pictures).add("width", sizes_.width).add("height", sizes_.height);
    report.add("child_streams", sizes_.channels());
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = kStages * sizes_.channels(),
            .bytes_to_move = 8 * sizes_.pixels(),
            .flat_kernels = kStages};
  }

  Sizes sizes_;
  bench::DeviceArray<int> blurred_;
  bench::DeviceArray<cudaStream_t> streams_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("channels",
                         "colour channels of pictures, in created streams whose handles stand in memory");
  options.integer("pictures", sizes.pictures, 1, "pictures");
  options.integer("width", sizes.width, 1, "pixels in a row");
  options.integer("height", sizes.height, 1, "rows");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("channels", "pictures", sizes.pictures, 20000);
  bench::require_at_most("channels", "width", sizes.width, 1 << 14);
  bench::require_at_most("channels", "height", sizes.height, 1 << 14);
  bench::require_device("channels");
  ChannelsProgram program(sizes, random_pictures(sizes, common.seed), common);
  return bench::run_benchmark("channels", common, program);
}
