#include "kernels/cuda/emulator/statics.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>

namespace mgc::cuda::emulator {
namespace {

constexpr std::string_view kOurs = "N3mgc4cuda";
constexpr std::string_view kEmulators = "N3mgc4cuda8emulator";

bool StartsWith(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// The program's place in memory, and that of this thread's variables; null where it has none.
struct Places {
  uintptr_t program = 0;
  char* variables = nullptr;
};
Places Find() {
  Places places;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* to) {
        *static_cast<Places*>(to) = {info->dlpi_addr, static_cast<char*>(info->dlpi_tls_data)};
        return 1;  // the program is the first
      },
      &places);
  return places;
}

}  // namespace

const Statics& Statics::Get() {
  static const Statics* const statics = new Statics;
  return *statics;
}

Statics::Statics() {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status;
  if (fstat(file, &status) == 0) {
    const auto bytes = static_cast<size_t>(status.st_size);
    void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      Read(static_cast<const char*>(mapped), bytes);
      munmap(mapped, bytes);
    }
  }
  close(file);
}

void Statics::Read(const char* file, uintptr_t bytes) {
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(file);
  if (bytes < sizeof(*header) || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return;
  }
  program_ = Find().program;
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* const names = file + sections[sections[s].sh_link].sh_offset;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(file + sections[s].sh_offset);
    for (uint64_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
      const Elf64_Sym& symbol = symbols[i];
      const std::string_view name = names + symbol.st_name;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC && StartsWith(name, "_Z") && name.find(kOurs) != name.npos) {
        functions_[program_ + symbol.st_value] = std::string(name.substr(2));
      } else if (type == STT_TLS && StartsWith(name, "_ZZ") && StartsWith(name.substr(3), kOurs) &&
                 !StartsWith(name.substr(3), kEmulators)) {
        locals_.push_back({std::string(name.substr(3)), {symbol.st_value, symbol.st_size}});
      }
    }
  }
}

std::vector<Statics::Variable> Statics::Of(const void* kernel) const {
  const auto found = functions_.find(reinterpret_cast<uintptr_t>(kernel));
  std::vector<Variable> variables;
  for (const Local& local : locals_) {
    const bool of_kernel = local.function.find("Kernel") != std::string::npos;
    const bool used =
        found == functions_.end() || !of_kernel || StartsWith(local.function, found->second);
    if (used) variables.push_back(local.variable);
  }
  return variables;
}

std::string Statics::NameOf(const void* kernel) const {
  const auto found = functions_.find(reinterpret_cast<uintptr_t>(kernel));
  if (found == functions_.end()) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> whole(
      abi::__cxa_demangle(("_Z" + found->second).c_str(), nullptr, nullptr, &status), std::free);
  if (whole == nullptr) return "";
  std::string name = whole.get();
  constexpr std::string_view kNowhere = "(anonymous namespace)::";
  for (size_t at; (at = name.find(kNowhere)) != name.npos;) name.erase(at, kNowhere.size());
  name = name.substr(0, name.find_first_of("<("));
  return name.substr(name.find_last_of(": ") + 1);
}

std::string Statics::PlaceOf(const void* place) const {
  std::ostringstream text;
  text << "0x" << std::hex << reinterpret_cast<uintptr_t>(place) - program_ << " (addr2line)";
  return text.str();
}

std::vector<Range> RangesOf(const std::vector<Statics::Variable>& variables) {
  std::vector<Range> ranges;
  char* const base = variables.empty() ? nullptr : Find().variables;
  if (base == nullptr) return ranges;
  for (const Statics::Variable& v : variables) ranges.push_back({base + v.offset, v.bytes, true});
  return ranges;
}

}  // namespace mgc::cuda::emulator
