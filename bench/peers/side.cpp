// One side of tools/bench: computes a problem on request, by a kernel or by OpenBLAS. peers.py
// describes the requests.
//
//   redblue_peer redblue|OpenBLAS INPUTS RESULTS PROBLEM N D MASK THREADS
//
// Variants of redblue: KERNEL@M, such as gradients/score-rows@L3*0.1. Variants of OpenBLAS: rows:R,
// in blocks of R queries (bench/materialised.hpp).

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "bench/materialised.hpp"
#include "kernels/kernel.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/options.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/system/build_info.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

struct Case {
  std::string problem;  // forward, g, gradients, or backward: g, with O and L made beforehand
  Index n, d;
  std::string mask;
  Index threads;
  Views given;
};

// A variant of a case, ready to run.
class Variant {
 public:
  Variant() = default;
  Variant(const Variant&) = delete;
  Variant& operator=(const Variant&) = delete;
  virtual ~Variant() = default;
  virtual void run() = 0;
  [[nodiscard]] virtual Views results() const = 0;
  // The flops of the last run.
  [[nodiscard]] virtual double flops() const { return 0; }
};

class ByKernel final : public Variant {
 public:
  ByKernel(const Case& of, const std::string& text, const Topology& topology)
      : given_(of.given), topology_(topology), from_nothing_(of.problem != "backward") {
    const std::size_t at = text.find('@');
    if (at == std::string::npos) {
      throw std::invalid_argument(text + ": expected KERNEL@M");
    }
    Settings settings(Spelling::key);
    settings.add("kernel", text.substr(0, at));
    settings.add("M", text.substr(at + 1));
    settings.add("n", std::to_string(of.n));
    settings.add("d", std::to_string(of.d));
    settings.add("mask", of.mask);
    settings.add("threads", std::to_string(of.threads));
    settings.add("objective", "time");
    Request request;
    fill(settings, machine_at_hand(), request);
    report_ = resolve(request, requested_problem(request, requested_kernel(request), {}), false);
    results_ = buffers_of(report_.kernel);
    if (report_.forward) {
      forward_ = buffers_of(*report_.forward);
      given_.merge(views_of(forward_));
      run_forward();
    }
  }

  void run() override {
    if (report_.forward && from_nothing_) {
      run_forward();
    }
    run_in_memory(report_.kernel, given_, viewed_results(results_), topology_);
  }
  [[nodiscard]] Views results() const override { return views_of(results_); }
  [[nodiscard]] double flops() const override {
    const auto of = [](const Part& part) {
      return static_cast<double>(part.counted->total.operations.flops);
    };
    return of(report_.kernel) + (report_.forward && from_nothing_ ? of(*report_.forward) : 0);
  }

 private:
  void run_forward() {
    run_in_memory(*report_.forward, given_, viewed_results(forward_), topology_);
  }
  static Buffers buffers_of(const Part& part) {
    return result_buffers(find_kernel(part.plan.kernel), part.plan.problem, part.team.heads);
  }

  Views given_;
  const Topology& topology_;
  bool from_nothing_;
  Report report_;
  Buffers results_, forward_;
};

class ByOpenBlas final : public Variant {
 public:
  ByOpenBlas(const Case& of, const std::string& text)
      : of_(of),
        scale_(1 / std::sqrt(static_cast<float>(of.d))),
        peer_({of.n, of.n, of.d}, of.mask == "causal", std::stoll(text.substr(text.find(':') + 1)),
              static_cast<int>(of.threads)) {}

  void run() override {
    const auto in = [&](const char* name) { return of_.given.at(name).data(); };
    if (of_.problem == "forward") {
      peer_.attention(in("Q"), in("K"), in("V"), scale_);
    } else if (of_.problem == "g") {
      peer_.gradient(in("A1"), in("A2"), in("A3"), in("X"), in("Y"), in("dO"));
    } else {
      peer_.gradients(in("Q"), in("K"), in("V"), in("dO"), scale_);
    }
  }
  [[nodiscard]] Views results() const override {
    return of_.problem == "forward" ? Views{{"O", peer_.O}}
           : of_.problem == "g"     ? Views{{"g", peer_.g}}
                                    : Views{{"dQ", peer_.dQ}, {"dK", peer_.dK}, {"dV", peer_.dV}};
  }

 private:
  const Case& of_;
  float scale_;
  Materialised peer_;
};

std::vector<float> words_of_file(const std::filesystem::path& path) {
  std::vector<float> words(std::filesystem::file_size(path) / sizeof(float));
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.read(reinterpret_cast<char*>(words.data()),
            static_cast<std::streamsize>(words.size() * sizeof(float)));
  return words;
}

void write_file(const std::filesystem::path& path, std::span<const float> words) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.write(reinterpret_cast<const char*>(words.data()),
             static_cast<std::streamsize>(words.size_bytes()));
}

class Side {
 public:
  Side(bool ours, Case of, std::filesystem::path results)
      : ours_(ours), of_(std::move(of)), directory_(std::move(results)) {}

  std::string answer(const std::string& word, const std::string& text) {
    if (word == "use") {
      variant_.reset();  // two variants may not fit in memory
      if (ours_) {
        variant_ = std::make_unique<ByKernel>(of_, text, topology_);
      } else {
        variant_ = std::make_unique<ByOpenBlas>(of_, text);
      }
      return "ok";
    }
    if (variant_ == nullptr) {
      throw std::logic_error(word + ": expected `use` first");
    }
    if (word == "run") {
      const auto start = std::chrono::steady_clock::now();
      variant_->run();
      seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return fmt::format("{:.4f}", 1e3 * seconds_);
    }
    if (word == "peak") {
      return fmt::format("{:.4f}",
                         variant_->flops() / seconds_ / fma_peak(of_.threads, topology_) * 1e-9);
    }
    for (const auto& [name, words] : variant_->results()) {
      write_file(directory_ / name, words);
    }
    return "ok";
  }

 private:
  bool ours_;
  Case of_;
  std::filesystem::path directory_;
  const Topology topology_ = machine_topology();
  std::unique_ptr<Variant> variant_;
  double seconds_ = 0;
};

}  // namespace
}  // namespace redblue

int main(int count, char** words) {
  using namespace redblue;
  if (count != 9) {
    std::cerr << "usage: redblue_peer redblue|OpenBLAS INPUTS RESULTS PROBLEM N D MASK THREADS\n";
    return 2;
  }
  const bool ours = std::string(words[1]) == "redblue";
  Case of{words[4], std::stoll(words[5]), std::stoll(words[6]), words[7], std::stoll(words[8]), {}};
  Buffers inputs;
  for (const auto& file : std::filesystem::directory_iterator(words[2])) {
    inputs[file.path().filename()] = words_of_file(file.path());
  }
  of.given = views_of(inputs);
  Side side(ours, std::move(of), words[3]);
  std::cout << (ours ? fmt::format("redblue {}", build_info::kVersion) : openblas_get_config())
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t space = std::min(line.find(' '), line.size());
    std::string answer;
    try {
      answer = side.answer(line.substr(0, space), line.substr(std::min(space + 1, line.size())));
    } catch (const std::exception& error) {
      answer = std::string("failed: ") + error.what();
    }
    std::cout << answer << std::endl;
  }
}
