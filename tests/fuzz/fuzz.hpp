#pragma once
// Fuzz targets, one for each kind of file or typed text that redblue reads. A target is a function
// of any bytes. It returns if the reader keeps its promise, which has two cases. The reader returns
// a well-formed value, which survives writing and reading if there is a writer. Or it throws the
// documented error, with one line that names the culprit. Otherwise the target throws Broken. Any
// other exception of the reader passes through.
//
// libFuzzer calls one target (fuzzer_main.cpp). The tests give each target its corpus.

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

// Throws Broken with `what` unless `holds`.
void demand(bool holds, const std::string& what);

// Writes a file with this content, in a directory that is removed when the process ends. The same
// name gives the same file.
std::filesystem::path scratch(const std::string& name, std::string_view content);
std::string content_of(const std::filesystem::path& file);
// Demands that the directory has only the files of scratch(). Throws: Broken.
void demand_nothing_left();

// Demands one line that names the culprit and is not too long. Throws: Broken.
void demand_message(const std::exception& error, std::string_view culprit);

// Returns the reader's value, or no value if it throws one of `Errors`.
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

// Returns n and m from the first line of an input, each from 1 to `most`, and the rest of the
// input. Returns no value if the first line does not give them.
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
void nest(std::string_view input);
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
void tuned(std::string_view input);

struct Target {
  const char* name;  // name of its source file and of its corpus directory
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
                                      {"nest", nest},
                                      {"npy", npy},
                                      {"npz", npz},
                                      {"offsets", offsets},
                                      {"recording", recording},
                                      {"safetensors", safetensors},
                                      {"sizes", sizes},
                                      {"smtx", smtx},
                                      {"store", store},
                                      {"suite", suite},
                                      {"sweep", sweep},
                                      {"tuned", tuned}};

}  // namespace redblue::fuzz
