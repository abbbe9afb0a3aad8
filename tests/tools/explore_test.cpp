// Tests `redblue explore`. A browser on this machine gets the files of the folder, byte by byte,
// and no other file. A connection that asks nothing, or reads nothing, does not keep the others
// waiting.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cli.hpp"
#include "tools/commands/folder_server.hpp"

namespace redblue {
namespace {

class Explore : public Cli {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_ / "page/part");
    directory_.write("secret", "secret");
    directory_.write("page/index.html", "<title>page</title>");
    directory_.write("page/part/script.js", std::string("a\0b", 3));
    std::filesystem::create_symlink("../secret", directory_ / "page/way-out");
    server_.emplace(directory_ / "page", std::uint16_t{0});
    const std::string address = server_->address();
    port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    child_ = ::fork();
    if (child_ == 0) {
      server_->serve();
    }
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  [[nodiscard]] int connected() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port_);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return socket;
  }
  // Returns a connection that has sent a request such as "GET /".
  [[nodiscard]] int asked(const std::string& request) const {
    const int socket = connected();
    const std::string text = request + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    EXPECT_EQ(::send(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return socket;
  }
  // Returns the whole response.
  [[nodiscard]] std::string response(const std::string& request) const {
    const int socket = asked(request);
    std::string all;
    char part[512];
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(socket, part, sizeof part, 0);
      all.append(part, got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    ::close(socket);
    return all;
  }

  std::optional<FolderServer> server_;
  std::uint16_t port_ = 0;
  pid_t child_ = 0;
};

TEST_F(Explore, ServesTheFilesOfAFolder) {
  const std::string page = response("GET /");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html")) << page;
  EXPECT_TRUE(page.ends_with("\r\n\r\n<title>page</title>")) << page;
  EXPECT_EQ(response("GET /index.html?a=b#c"), page);
  const std::string script = response("GET /part/script.js");
  EXPECT_NE(script.find("text/javascript"), std::string::npos) << script;
  EXPECT_TRUE(script.ends_with(std::string("\r\n\r\na\0b", 7))) << script;
  const std::string head = response("HEAD /");
  EXPECT_NE(head.find("Content-Length: 19\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(Explore, ServesNothingElse) {
  for (const char* path : {"/none", "/part", "/..", "/../secret", "/part/../../secret",
                           "/%2e%2e/secret", "/way-out", "//etc/passwd", "/part//etc/passwd",
                           "secret", "", "/\\..\\secret", "/./../page/../secret"}) {
    const std::string refused = response(std::string("GET ") + path);
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 404")) << path << ": " << refused;
  }
  EXPECT_TRUE(response("POST /").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(response("").starts_with("HTTP/1.1 405"));
}

TEST_F(Explore, IdleConnectionsDoNotKeepOthersWaiting) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_GE(connected(), 0);  // open until the test ends
  }
  EXPECT_TRUE(response("GET /").starts_with("HTTP/1.1 200"));
}

TEST_F(Explore, SlowReadersDoNotKeepOthersWaiting) {
  directory_.write("page/large", std::string(64 << 20, 'x'));  // more than sockets buffer
  const int slow = asked("GET /large");
  char byte = 0;
  EXPECT_EQ(::recv(slow, &byte, 1, 0), 1);  // the server is sending
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(response("GET /").starts_with("HTTP/1.1 200"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));  // gives up after 5
}

TEST_F(Explore, NamesAPortThatIsTaken) {
  expect_refused(process(fmt::format("explore --no-open --folder page --port {}", port_)), 1,
                 fmt::format("port {} of 127.0.0.1: Address already in use", port_));
}

}  // namespace
}  // namespace redblue
