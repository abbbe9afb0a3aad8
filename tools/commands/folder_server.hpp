#pragma once
// Serves the files of a folder to browsers on this machine, over HTTP.

#include <cstdint>
#include <filesystem>
#include <string>

namespace redblue {

// Listens on 127.0.0.1 from construction on.
class FolderServer {
 public:
  // Port 0 is any free one. Throws: std::system_error, for example if the port is taken.
  FolderServer(std::filesystem::path folder, std::uint16_t port);
  FolderServer(const FolderServer&) = delete;
  FolderServer& operator=(const FolderServer&) = delete;
  ~FolderServer();

  // http://127.0.0.1:PORT/
  [[nodiscard]] std::string address() const;
  // Answers requests until a signal ends the process. Throws: std::system_error.
  [[noreturn]] void serve();

 private:
  std::filesystem::path folder_;
  int listening_;
};

}  // namespace redblue
