// A text file of the source tree that is part of the library (klap_embed_files() in src/CMakeLists.txt).
#pragma once

namespace klap {

struct EmbeddedFile {
  const char* name;  // path below the folder that is embedded; null behind the last file
  const char* text;
};

}  // namespace klap
