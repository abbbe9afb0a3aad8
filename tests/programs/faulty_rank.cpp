// redblue-mpi as a rank that fails or lies. REDBLUE_FAULT=KIND:K names what happens to the K-th
// message that it sends, from 0, or to the K-th fact that it tells all ranks. The transport calls
// the MPI_Isend of this file, which calls MPI's own (PMPI_Isend), as the MPI standard allows.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <mpi.h>
#include <unistd.h>

#include "memsim/ranks/transport.hpp"

namespace {

using redblue::MessageHeader;

// The tags of mpi_transport.cpp.
constexpr int kHeaderTag = 1;
constexpr int kFactTag = 3;

struct Fault {
  std::string kind;
  int at = 0;
};

const Fault& fault() {
  static const Fault its = [] {
    const char* const text = std::getenv("REDBLUE_FAULT");
    const std::string given = text == nullptr ? "none:0" : text;
    const std::size_t colon = given.find(':');
    return Fault{given.substr(0, colon), std::stoi(given.substr(colon + 1))};
  }();
  return its;
}

// Returns a copy that lives until the process ends, because MPI may read it after the call.
template <class T>
T* lasting(const T* from, std::size_t count) {
  auto* copy = new std::vector<T>(from, from + count);
  return copy->data();
}

void falsify(MessageHeader& header, const std::string& kind) {
  const std::pair<const char*, std::uint64_t*> numbers[] = {{"run", &header.run},
                                                            {"phase", &header.phase},
                                                            {"number", &header.number},
                                                            {"words", &header.words},
                                                            {"checksum", &header.checksum}};
  for (const auto& [name, number] : numbers) {
    *number += kind == name ? 1 : 0;
  }
  header.magic += kind == "magic" ? 1 : 0;
  header.version += kind == "version" ? 1 : 0;
}

// A fact begins with "redblue 0.1.0 (GNU 12.2.0, RelWithDebInfo), ".
std::string false_fact(std::string fact, const std::string& kind) {
  if (fact.starts_with("redblue ")) {
    if (kind == "release") {
      fact.replace(8, 1, "9");
    } else if (kind == "build") {
      fact.insert(fact.find(')'), " of another compiler");
    }
  }
  return fact;
}

}  // namespace

extern "C" int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  static int sent = -1;
  static const void* header = nullptr;
  const std::string& kind = fault().kind;
  if (tag == kFactTag) {
    static int said = 0;
    if (kind == "silent" && said++ == fault().at) {
      ::kill(::getpid(), SIGSTOP);
    }
    const std::string fact =
        false_fact({static_cast<const char*>(from), static_cast<std::size_t>(count)}, kind);
    return PMPI_Isend(lasting(fact.data(), fact.size()), static_cast<int>(fact.size()), type, to,
                      tag, comm, request);
  }
  if (tag == kHeaderTag) {
    ++sent;
    auto* its = lasting(static_cast<const MessageHeader*>(from), 1);
    if (sent == fault().at) {
      falsify(*its, kind);
    }
    header = its;
    *request = MPI_REQUEST_NULL;
    return sent == fault().at && kind == "lost"
               ? MPI_SUCCESS
               : PMPI_Isend(its, count, type, to, tag, comm, request);
  }
  const auto pass_on = [&](const void* words, int how_many) {
    return PMPI_Isend(words, how_many, type, to, tag, comm, request);
  };
  if (sent != fault().at) {
    return pass_on(from, count);
  }
  // Here the header has been sent, and its words have not.
  if (kind == "killed") {
    ::kill(::getpid(), SIGKILL);
  } else if (kind == "exits") {
    ::_exit(5);
  } else if (kind == "leaves") {
    ::_exit(0);
  } else if (kind == "stopped") {
    ::kill(::getpid(), SIGSTOP);
  } else if (kind == "lost") {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  } else if (kind == "cut") {
    return pass_on(from, count / 2);
  } else if (kind == "longer") {
    auto* words = new std::vector<float>(static_cast<std::size_t>(count) + 3);
    std::copy_n(static_cast<const float*>(from), count, words->begin());
    return pass_on(words->data(), count + 3);
  } else if (kind == "changed") {
    auto* words = lasting(static_cast<const float*>(from), static_cast<std::size_t>(count));
    words[count / 2] += 1;
    return pass_on(words, count);
  } else if (kind == "doubled") {
    pass_on(from, count);
    PMPI_Isend(header, sizeof(MessageHeader), MPI_BYTE, to, kHeaderTag, comm, request);
  }
  return pass_on(from, count);
}
