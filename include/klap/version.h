// The version of klap_jit, in one place: CMake, klap-ptx and programs that embed the rewriter read it from
// here.
#pragma once

#define KLAP_VERSION "0.1.0"
