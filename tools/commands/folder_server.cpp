#include "tools/commands/folder_server.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/system/system_call.hpp"

namespace redblue {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestRequest = 16384;
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};  // for a client that does nothing

std::string_view type_of(const fs::path& file) {
  const std::string extension = file.extension();
  return extension == ".html"  ? "text/html; charset=utf-8"
         : extension == ".css" ? "text/css; charset=utf-8"
         : extension == ".js"  ? "text/javascript; charset=utf-8"
                               : "application/octet-stream";
}

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     bool with_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n\r\n{}",
      status, type, body.size(), with_body ? body : "");
}

// Returns the regular file that a path of a request names; empty if there is none in the folder.
// Symbolic links may not lead out of it.
fs::path file_of(const fs::path& folder, std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  if (!path.starts_with('/') || path.find('%') != std::string_view::npos) {
    return {};
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) {
    return {};  // the folder is gone
  }
  const fs::path file = fs::canonical(root / (path == "/" ? "index.html" : path.substr(1)), error);
  const bool inside =
      std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first == root.end();
  return !error && inside && fs::is_regular_file(file, error) ? file : fs::path();
}

std::string answer(const fs::path& folder, std::string_view request) {
  const std::string_view method = request.substr(0, request.find(' '));
  const bool is_get = method == "GET";
  constexpr std::string_view kText = "text/plain";
  if (!is_get && method != "HEAD") {
    return response("405 Method Not Allowed", kText, "only GET and HEAD\n", true);
  }
  const std::string_view rest = request.substr(method.size() + 1);
  const fs::path file = file_of(folder, rest.substr(0, rest.find(' ')));
  std::ifstream in(file, std::ios::binary);
  if (file.empty() || !in) {
    return response("404 Not Found", kText, "no such file\n", is_get);
  }
  const std::string body(std::istreambuf_iterator<char>(in), {});
  return response("200 OK", type_of(file), body, is_get);
}

void send_all(int client, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent =
        retry([&] { return ::send(client, text.data(), text.size(), MSG_NOSIGNAL); });
    if (sent <= 0) {
      return;  // the client left, or does not read
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Answers one request.
void attend(int client, const fs::path& folder) {
  std::string request;
  char part[4096];
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < kLongestRequest) {
    const ssize_t got = retry([&] { return ::recv(client, part, sizeof part, 0); });
    if (got <= 0) {
      return;  // the client left, or asks nothing
    }
    request.append(part, static_cast<std::size_t>(got));
  }
  send_all(client, answer(folder, request));
}

}  // namespace

FolderServer::FolderServer(fs::path folder, std::uint16_t port)
    : folder_(std::move(folder)), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const std::string what = fmt::format("port {} of 127.0.0.1", port);
  if (listening_ < 0) {
    fail(what);
  }
  constexpr int kYes = 1;
  ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listening_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listening_, SOMAXCONN) != 0) {
    const int error = errno;
    ::close(listening_);
    errno = error;
    fail(what);
  }
}

FolderServer::~FolderServer() {
  ::close(listening_);
}

std::string FolderServer::address() const {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  if (::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    fail("the address of a socket");
  }
  return fmt::format("http://127.0.0.1:{}/", ntohs(at.sin_port));
}

void FolderServer::serve() {
  // A thread for each connection, because a browser opens some before it needs them, and a slow
  // reader would keep the others waiting.
  while (true) {
    Descriptor client(::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() < 0) {
      continue;  // the client left, or too many are there
    }
    for (const int way : {SO_RCVTIMEO, SO_SNDTIMEO}) {
      ::setsockopt(client.get(), SOL_SOCKET, way, &kPatience, sizeof kPatience);
    }
    std::thread([this, own = std::move(client)] { attend(own.get(), folder_); }).detach();
  }
}

}  // namespace redblue
