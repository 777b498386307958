# Writes a source file with a hash over everything that decides what the pipeline produces.
#
# A cached module must not outlive the code that made it, and the version number alone does not change while
# the library is being worked on. The hash is over file contents only, so that equal sources give equal caches
# wherever and whenever they are built.
#
# Called with -DSOURCES=a;b;c -DROOT=folder -DVERSION=... -DOUT=file.
set(contents "")
foreach(file IN LISTS SOURCES)
  file(SHA256 ${file} hash)
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND contents "${name} ${hash}\n")
endforeach()
string(SHA256 id "${contents}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUT} "namespace klap::jit {\nextern const char kBuildId[];\nconst char kBuildId[] = \"${VERSION}-${id}\";\n}\n")
