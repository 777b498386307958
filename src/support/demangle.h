// C++ names of kernels as people know them.
#pragma once

#include <string>

namespace klap {

// "_Z5childPi" -> "child(int*)". A name that is not mangled comes back as it is. Names of kernels in
// anonymous namespaces and of static ones lose the unit that nvcc adds.
std::string demangle(const std::string& name);

// "child(int*) [_Z5childPi]", or just the name where it is not mangled.
std::string both_names(const std::string& name);

}  // namespace klap
