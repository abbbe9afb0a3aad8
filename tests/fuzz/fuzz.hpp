#pragma once
// Fuzz targets: one for each kind of file, and of text that a person types, that redblue reads. A
// target is a function of any bytes. It returns where the reader keeps its promises: it succeeds
// with a value that is well formed and, where there is a writer, survives writing and reading; or
// it throws the documented error with one line that names the culprit. The target throws Broken
// where it does not, and lets through whatever else the reader throws.
//
// libFuzzer calls one target (fuzzer_main.cpp); the tests give each target its corpus.

#include <concepts>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "memsim/words.hpp"

namespace redblue::fuzz {

struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

// Throws: Broken.
void demand(bool holds, const std::string& what);

// A file with this content, in a directory of the process that is removed when it ends. Files of
// the same name are one file.
std::filesystem::path scratch(const std::string& name, std::string_view content);
std::string content_of(const std::filesystem::path& file);
// That nothing is in the directory but what scratch() put there. Throws: Broken.
void demand_nothing_left();

// One line with the culprit, neither silent nor endless. Throws: Broken.
void demand_message(const std::exception& error, std::string_view culprit);

// What the reader returns; nothing where it throws one of `Errors`.
template <class... Errors, std::invocable Read>
auto read_or_refused(std::string_view culprit, const Read& read)
    -> std::optional<std::invoke_result_t<Read>> {
  try {
    return read();
  } catch (const std::exception& error) {
    if (!(... || (dynamic_cast<const Errors*>(&error) != nullptr))) {
      throw;
    }
    demand_message(error, culprit);
    return std::nullopt;
  }
}

// The first line of an input says for which n and m, each from 1 to `most`, the rest is read.
// Nothing where it does not.
struct Sized {
  Index n = 0, m = 0;
  std::string_view rest;
};
std::optional<Sized> sized(std::string_view input, Index most);

void calibration(std::string_view input);
void callgrind(std::string_view input);
void checkpoint(std::string_view input);
void device(std::string_view input);
void entries(std::string_view input);
void graph(std::string_view input);
void dinero(std::string_view input);
void journal(std::string_view input);
void layout(std::string_view input);
void mask(std::string_view input);
void mtx(std::string_view input);
void npy(std::string_view input);
void npz(std::string_view input);
void offsets(std::string_view input);
void recording(std::string_view input);
void safetensors(std::string_view input);
void sizes(std::string_view input);
void smtx(std::string_view input);
void store(std::string_view input);
void suite(std::string_view input);
void sweep(std::string_view input);

struct Target {
  const char* name;  // of its source, and of the directory with its corpus
  void (*feed)(std::string_view input);
};
inline constexpr Target kTargets[] = {{"calibration", calibration},
                                      {"callgrind", callgrind},
                                      {"checkpoint", checkpoint},
                                      {"device", device},
                                      {"entries", entries},
                                      {"graph", graph},
                                      {"dinero", dinero},
                                      {"journal", journal},
                                      {"layout", layout},
                                      {"mask", mask},
                                      {"mtx", mtx},
                                      {"npy", npy},
                                      {"npz", npz},
                                      {"offsets", offsets},
                                      {"recording", recording},
                                      {"safetensors", safetensors},
                                      {"sizes", sizes},
                                      {"smtx", smtx},
                                      {"store", store},
                                      {"suite", suite},
                                      {"sweep", sweep}};

}  // namespace redblue::fuzz
